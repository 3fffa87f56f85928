"""Chunks by trying every cut, and the lanes that the lesson draws."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.figures.stalls import lanes, stalls
from workbench.lessons import Lesson
from workbench.lessons.checks import l10


@pytest.mark.parametrize(
    ("prompt", "chunk", "answers", "page", "chunks"),
    [(10, 4, 0, 1, [4, 4, 2]), (10, 4, 1, 1, [3, 3, 3, 1]), (10, None, 3, 1, [10]), (10, 6, 0, 4, [4, 6]), (10, 2, 0, 4, [4, 4, 2]), (8, 3, 3, 1, [1] * 8)],
)
def test_pieces_of_a_prompt(prompt: int, chunk: int | None, answers: int, page: int, chunks: list[int]) -> None:
    assert l10.pieces(prompt, chunk, answers, page) == chunks


@pytest.mark.parametrize("chunk", [None, 2000, 512, 128, 32])
def test_the_engine_cuts_as_counting_does_and_the_longest_pause_is_the_longest_step(chunk: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RADIX_PROGRESS", str(tmp_path / "progress.json"))
    run = Lesson("L10").run("stall", chunk=chunk)
    chunks, pauses = lanes(run.trace, "long", "A1")
    expected = l10.pieces(2000, chunk, 4)
    assert [n for _, _, n in chunks] == expected and sum(expected) == 2000
    assert max(took for _, took, _ in pauses) == pytest.approx(max(l10.pauses(expected, 4)))
    figure = stalls({"a": run.trace}, "long", "A1", 3000)
    assert len(figure.data) == 2 and "ms" in figure.layout.xaxis.title.text
