"""Contract 3's `experiment`: what was asked, what came out here, and what was published."""

from __future__ import annotations

from typing import Literal

import msgspec

from workbench.report import Report

Kind = Literal["exact", "measured", "replay", "simulated"]
Number = int | float

HANDBOOK = "the handbook assistant, a public write-up on prefix caching"
MEASURED = "a public write-up that measured RadixAttention, scheduling and jump-forward"
SERVING = "a public write-up on prefix-cache serving"
PAPER = "Zheng et al., SGLang, NeurIPS 2024"


class Row(msgspec.Struct, kw_only=True):
    """One figure of ours beside the published one.

    `agrees` follows from `rule` alone, and is None where no agreement is asserted.
    """

    label: str
    ours: Number | None
    unit: str
    published: Number | None = None
    source: str | None = None
    kind: Kind
    agrees: bool | None = None
    rule: str | None = None


class Point(msgspec.Struct, frozen=True):
    """One point of a curve. `x` is a number, or a name where the axis has names."""

    x: Number | str
    y: Number
    label: str | None = None


class Curve(msgspec.Struct, kw_only=True):
    """A named line of points."""

    name: str
    points: list[Point]


class Chart(msgspec.Struct, kw_only=True):
    """What a figure shows; `kind` says which figure draws it (`workbench.figures.experiment`)."""

    kind: Literal["capacity", "fairness", "shares", "times", "distribution", "waterfall", "spans", "tradeoff"]
    title: str
    x: str
    y: str
    curves: list[Curve]
    ceiling: Number | None = None
    log_x: bool = False


class Experiment(msgspec.Struct, kw_only=True):
    """A finished experiment. `scenario` is the main run's, as YAML; `run` its report."""

    name: str
    question: str
    setup: str
    quick: bool
    rows: list[Row]
    differs_because: str | None
    seconds: float
    scenario: str | None = None
    charts: list[Chart] = []
    run: Report | None = None

    @property
    def failed(self) -> list[Row]:
        """Rows whose stated rule does not hold."""
        return [row for row in self.rows if row.agrees is False]


def exact(label: str, ours: Number, published: Number, unit: str, source: str, kind: Kind = "exact") -> Row:
    """A figure that must come out exactly."""
    return Row(
        label=label, ours=ours, unit=unit, published=published, source=source, kind=kind,
        agrees=ours == published, rule="equal",
    )  # fmt: skip


def within(label: str, ours: Number, low: Number | None, high: Number | None, unit: str, kind: Kind, *,
           rule: str, published: Number | None = None, source: str | None = None) -> Row:  # fmt: skip
    """A figure that must lie in a stated range, ends included; None: no end on that side."""
    holds = (low is None or ours >= low) and (high is None or ours <= high)
    return Row(
        label=label, ours=ours, unit=unit, published=published, source=source, kind=kind, agrees=holds, rule=rule
    )


def told(
    label: str, ours: Number | None, unit: str, kind: Kind, published: Number | None = None, source: str | None = None
) -> Row:
    """A figure that is shown beside another, and no agreement is asserted."""
    return Row(label=label, ours=ours, unit=unit, published=published, source=source, kind=kind)
