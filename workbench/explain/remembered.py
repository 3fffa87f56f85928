"""A tree of token runs that forgets nothing: what was ever stored, and what became of it.

It answers in one walk how far a prompt was known at any earlier time, which the live tree cannot say.
"""

from __future__ import annotations

from dataclasses import dataclass, field

WIDTH = 4
"""Bytes a packed token takes."""


@dataclass(slots=True)
class Gone:
    """Tokens [start, stop) of a path that `node` lost at event `seq`."""

    start: int
    stop: int
    seq: int
    node: int


@dataclass(slots=True)
class Run:
    """A run of packed tokens; `gone` is (seq, node) where it has left the live tree."""

    data: bytes
    children: dict[bytes, Run] = field(default_factory=dict)
    writer: str | None = None
    gone: tuple[int, int] | None = None


def shared(a: bytes, b: bytes, at: int = 0) -> int:
    """Tokens that `a` and b[at:] have in common from their start, by bisection over bulk compares."""
    low, high = 0, min(len(a), len(b) - at) // WIDTH + 1
    while low + 1 < high:
        middle = (low + high) // 2
        if a[low * WIDTH : middle * WIDTH] == b[at + low * WIDTH : at + middle * WIDTH]:
            low = middle
        else:
            high = middle
    return low


class Remembered:
    """Every token run that was ever marked."""

    def __init__(self) -> None:
        self.root = Run(b"")

    def mark(self, tokens: bytes, start: int = 0, *, writer: str | None = None, gone: tuple[int, int] | None = None) -> None:
        """Tokens [start, end) of this path: written by `writer`, or gone from the live tree."""
        at, node = 0, self.root
        start *= WIDTH
        while at < len(tokens):
            child = node.children.get(tokens[at : at + WIDTH])
            if child is None:
                node.children[tokens[at : at + WIDTH]] = Run(tokens[at:], writer=writer, gone=gone)
                return
            agree = shared(child.data, tokens, at) * WIDTH
            if at < start < at + agree:
                agree = start - at
            if agree < len(child.data):
                child = self._split(node, child, agree)
            if at >= start:
                child.gone = gone
                child.writer = writer or child.writer
            at += agree
            node = child

    def _split(self, parent: Run, run: Run, at: int) -> Run:
        front = Run(run.data[:at], writer=run.writer, gone=run.gone)
        run.data = run.data[at:]
        front.children[run.data[:WIDTH]] = run
        parent.children[front.data[:WIDTH]] = front
        return front

    def find(self, tokens: bytes) -> list[tuple[Run, int, int]]:
        """The runs that a sequence begins with: (run, start, stop) in tokens; the last may be shared in part."""
        found: list[tuple[Run, int, int]] = []
        at, node = 0, self.root
        while at < len(tokens):
            child = node.children.get(tokens[at : at + WIDTH])
            if child is None:
                break
            agree = shared(child.data, tokens, at) * WIDTH
            found.append((child, at // WIDTH, (at + agree) // WIDTH))
            at += agree
            if agree < len(child.data):
                break
            node = child
        return found

    def gone(self, tokens: bytes, start: int) -> list[Gone]:
        """What a sequence begins with and has left the live tree, from token `start` on."""
        out: list[Gone] = []
        for run, low, high in self.find(tokens):
            if run.gone is None or high <= start:
                continue
            last = out[-1] if out else None
            if last is not None and (last.seq, last.node) == run.gone and last.stop == low:
                last.stop = high
            else:
                out.append(Gone(max(low, start), high, *run.gone))
        return out
