"""Try the named mutations, or all, and print what noticed each; the exit code is how many went unnoticed."""

from __future__ import annotations

import sys

from tests.mutations import MUTATIONS, caught_by


def main(names: list[str]) -> int:
    """Returns how many went unnoticed."""
    missed = 0
    for name in names or list(MUTATIONS):
        found = caught_by(name)
        missed += found is None
        print(f"{name}: {f'{found.test} ({found.said})' if found else 'NOT NOTICED'}", flush=True)
    return missed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
