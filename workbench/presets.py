"""Presets: the scenarios that come with the workbench, found by name."""

from __future__ import annotations

from pathlib import Path

import yaml

ORDER = ("handbook", "walkthrough", "chat", "fork", "capacity-cyclic", "capacity-grouped", "passages", "burst")
"""Presets that come first, in this order; the others follow by name."""


def assets() -> Path:
    """The folder of scenarios, traces, workloads and style, in a checkout or in an installed wheel."""
    here = Path(__file__).resolve().parent
    packaged = here / "assets"
    return packaged if packaged.is_dir() else here.parent / "assets"


def preset_names() -> list[str]:
    """All preset names, sorted."""
    return sorted(p.stem for p in (assets() / "scenarios").glob("*.yaml"))


def preset_path(name: str) -> Path | None:
    """The file of a preset, or None."""
    return assets() / "scenarios" / f"{name}.yaml" if name in preset_names() else None


def recorded_path(name: str) -> Path | None:
    """The recorded trace of a preset, or None where none was recorded."""
    path = assets() / "traces" / f"{name}.jsonl"
    return path if path.is_file() else None


def titles() -> dict[str, str]:
    """The question that each preset answers -> its name, in the order in which a newcomer meets them."""
    found = {}
    for name in preset_names():
        path = preset_path(name)
        assert path is not None
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
        found[str(data.get("title") or name)] = name
    rank = {name: i for i, name in enumerate(ORDER)}
    return dict(sorted(found.items(), key=lambda item: (rank.get(item[1], len(rank)), item[1])))
