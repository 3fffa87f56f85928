"""YAML text as plain data, within bounds: the text may come from anybody, and a few lines of aliases can stand for billions of values."""

from __future__ import annotations

from typing import Any

import yaml

VALUES = 1_000_000
"""Most values, with every alias written out."""
DEPTH = 50
"""Deepest nesting."""
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class YamlError(ValueError):
    """The text is no YAML that can be taken; one sentence says why."""


def read(text: str) -> Any:
    """The data of a YAML text. Raises YamlError."""
    try:
        data = yaml.load(text, Loader=LOADER)
        if _values(data, {}, 0) > VALUES:
            raise YamlError(f"not readable as YAML: aliases repeat it to more than {VALUES:,} values")
    except YamlError:
        raise
    except RecursionError:
        raise YamlError("not readable as YAML: it is nested too deeply") from None
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a date that does not exist, a number of thousands of digits
        raise YamlError(f"not readable as YAML: {' '.join(str(error).split())}") from None
    return data


def _values(data: Any, known: dict[int, int], depth: int) -> int:
    """How many values there are, each shared one counted wherever it is referred to; `known` has those counted before."""
    if not isinstance(data, (dict, list)):
        return 1
    if id(data) not in known:
        if depth > DEPTH:
            raise YamlError(f"not readable as YAML: it is nested more than {DEPTH} deep, or contains itself")
        parts = data.values() if isinstance(data, dict) else data
        known[id(data)] = 1 + sum(_values(part, known, depth + 1) for part in parts)
    return known[id(data)]
