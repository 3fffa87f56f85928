"""An answer as plain text, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.explain.answer import Answer, Parting, Table, TokenRow
from workbench.explain.words import number, visible


def plain(answer: Answer) -> str:
    """Headline, details, token rows, ranking: a line each."""
    lines = [answer.headline, *(f"  {line}" for line in answer.detail)]
    for parting in answer.rows:
        lines += ["", *_rows(parting)]
    if answer.table is not None:
        lines += ["", *_table(answer.table)]
    return "\n".join(lines)


def _rows(parting: Parting) -> list[str]:
    """Both rows in columns, a ^ below the first difference."""
    cells = [[row.name, *_tokens(row)] for row in (parting.asked, parting.stored)]
    mark = [f"from token {number(parting.start)}", *[""] * parting.differs, "^"]
    return _columns([*cells, mark])


def _tokens(row: TokenRow) -> list[str]:
    return [str(i) if text is None else f"{visible(text)}|{i}" for i, text in zip(row.ids, row.texts, strict=True)]


def _table(table: Table) -> list[str]:
    rows = [["-" if cell is None else number(cell) if isinstance(cell, int | float) else cell for cell in row] for row in table.rows]
    marked = [[*row, "<" if taken else ""] for row, taken in zip(rows, table.taken, strict=True)]
    return [table.title, *_columns([[*table.columns, ""], *marked])]


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    width = max(map(len, rows))
    full = [[*row, *[""] * (width - len(row))] for row in rows]
    widths = [max(len(row[i]) for row in full) for i in range(width)]
    return ["  " + "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in full]
