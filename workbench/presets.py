"""Presets: the scenarios that come with the workbench, found by name."""

from __future__ import annotations

from pathlib import Path


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
