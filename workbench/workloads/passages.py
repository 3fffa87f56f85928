"""Reads passages with questions about them: one JSON object a line, or a file in SQuAD's layout.

A line has `text`, `questions` (a list) and a `title`; passages under one title are about one subject.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from workbench.workloads import lines
from workbench.workloads.traffic import File


@dataclass(frozen=True)
class Passage:
    """A passage, its subject, and what is asked about it."""

    title: str
    text: str
    questions: list[str]


def read(path: File) -> tuple[list[Passage], lines.Tally]:
    """All passages of a file. Raises ReadError when it cannot be read or holds none."""
    return lines.collect(path, parsed, "passage", _squad(path))


def _squad(path: File) -> Iterator[tuple[str, Any]] | None:
    """The passages of a file in SQuAD's layout; None where it is another."""
    try:
        data = json.loads(lines.raw(path).decode())
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict) or not isinstance(data.get("data"), list):
        return None
    articles = [article for article in data["data"] if isinstance(article, dict)]
    return (
        (f"article {a}, passage {p}", _as_line(article, paragraph))
        for a, article in enumerate(articles, 1)
        for p, paragraph in enumerate(article.get("paragraphs") or [], 1)
    )


def _as_line(article: dict[str, Any], paragraph: Any) -> Any:
    if not isinstance(paragraph, dict):
        return paragraph
    asked = [one.get("question") for one in paragraph.get("qas") or [] if isinstance(one, dict)]
    return {"title": str(article.get("title", "")), "text": paragraph.get("context"), "questions": asked}


def parsed(record: Any) -> Passage:
    """One record as a passage. Raises ValueError saying what is wrong with it."""
    if not isinstance(record, dict):
        raise ValueError("is no JSON object")
    text = lines.whole_text(record.get("text"), "its text")
    questions = record.get("questions")
    if not isinstance(questions, list) or not questions:
        raise ValueError("has no list of questions")
    return Passage(str(record.get("title", "")), text, [lines.whole_text(one, "a question") for one in questions])
