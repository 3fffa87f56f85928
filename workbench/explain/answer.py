"""What an explanation is made of: a headline, details, rows of tokens, a ranking, links."""

from __future__ import annotations

from typing import Literal

import msgspec


class ExplainError(ValueError):
    """A question about something that the trace does not hold."""


class Link(msgspec.Struct, frozen=True):
    """Something to look at next; an event's id is its seq, a replica's its number."""

    kind: Literal["event", "node", "request", "page", "replica"]
    id: int | str
    text: str


class TokenRow(msgspec.Struct, frozen=True):
    """A run of one sequence's tokens; a text is None where it is unknown."""

    name: str
    ids: list[int]
    texts: list[str | None]


class Parting(msgspec.Struct, frozen=True):
    """Two sequences around the place where they part, one below the other.

    Both rows begin at token position `start`; `differs` is the index into both rows of the first
    difference (it may lie one past the end of a row that ends there). `same_text`: other ids, equal text.
    """

    start: int
    differs: int
    asked: TokenRow
    stored: TokenRow
    same_text: bool = False


class Table(msgspec.Struct, frozen=True):
    """The ranking behind a decision; `taken` says for each row whether it was chosen."""

    title: str
    columns: list[str]
    rows: list[list[str | int | float | None]]
    taken: list[bool]
    links: list[Link]
    """One a row."""


class Answer(msgspec.Struct, kw_only=True):
    """An answer to one question at one moment. `reason` is a word of `misses.REASONS` where one applies."""

    headline: str
    detail: list[str] = []
    rows: list[Parting] = []
    table: Table | None = None
    links: list[Link] = []
    reason: str | None = None
