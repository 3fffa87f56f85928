"""A result in words, the same on the command line and on the page."""

from __future__ import annotations

from workbench.experiments.result import Experiment, Number, Row


def amount(number: Number | None, unit: str) -> str:
    """A number with its unit; a dash where there is none."""
    if number is None:
        return "-"
    if 0 < abs(number) < 5e-5:
        digits = f"{number:.1e}"  # small, and not nothing
    else:
        digits = f"{number:,}" if isinstance(number, int) else f"{number:,.4f}".rstrip("0").rstrip(".")
    return f"{digits} {unit}".rstrip()


def verdict(row: Row) -> str:
    """Whether a row agrees, and by which rule; a dash where nothing is asserted."""
    if row.agrees is None:
        return "-"
    return f"{'yes' if row.agrees else 'NO'} ({row.rule})"


def table(result: Experiment) -> str:
    """The whole result as plain text."""
    cells = [("", "ours", "published", "agrees", "kind")]
    cells += [(r.label, amount(r.ours, r.unit), amount(r.published, r.unit), verdict(r), r.kind) for r in result.rows]
    widths = [max(len(row[i]) for row in cells) for i in range(5)]
    lines = [
        "  ".join(
            cell.rjust(width) if i in (1, 2) else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]
    sources = list(dict.fromkeys(r.source for r in result.rows if r.source))
    parts = [result.question, result.setup, "\n".join(lines)]
    if sources:
        parts.append("Published in: " + "; ".join(sources) + ".")
    if result.differs_because:
        parts.append(result.differs_because)
    parts.append(f"{result.seconds:.1f} s")
    return "\n\n".join(parts)
