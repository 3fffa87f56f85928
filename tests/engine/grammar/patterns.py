"""Random patterns, and texts that are near to matching them."""

from __future__ import annotations

import random
import re

LETTERS = "abcé"
CLASSES = [
    "[ab]",
    "[^a]",
    "[a-c]",
    "[^b-cé]",
    ".",
    r"\w",
    r"\W",
    r"\d",
    r"[\da]",
    r"[^\w😀]",
    "[é-😀]",
    r"[\s-]",
    "[]a]",
]
CHARACTERS = [*LETTERS, "😀", r"\.", r"\x61", r"\u00e9", r"\U0001F600", r"\n", "\\", r"\-", "_", "7"]
BOUNDED = ["?", "{2}", "{1,2}", "{,2}", "{0,3}", "??", "{1,3}?"]
ENDLESS = ["*", "+", "{1,}", "*?", "+?"]
ALPHABET = [*LETTERS, "😀", "\n", "7", "_", " ", ".", "-", "\\"]


def pattern(draw: random.Random) -> str:
    """A pattern that `re` takes too, and works through without going back and forth for ever."""
    anchored = draw.choice(["{}", "{}", "{}", "^(?:{})", "(?:{})$", r"\A(?:{})\Z", "^{}|{}$"])
    return re.sub(r"\{\}", lambda _: _part(draw, 4)[0], anchored)


def _part(draw: random.Random, depth: int) -> tuple[str, int]:
    """A pattern, and how deep its repetitions are nested; endless ones stand around none."""
    kind = draw.randrange(8) if depth else draw.randrange(2)
    if kind == 0:
        char = draw.choice(CHARACTERS)
        return (r"\\" if char == "\\" else char), 0
    if kind == 1:
        return draw.choice(CLASSES), 0
    parts = [_part(draw, depth - 1) for _ in range(draw.randrange(1, 4))]
    nested = max(deep for _, deep in parts)
    if kind in (2, 3, 4):
        return "".join(source for source, _ in parts), nested
    if kind == 5:
        return draw.choice(["(", "(?:", "(?P<{}>"]).format(f"g{draw.randrange(10**9)}") + "|".join(
            s for s, _ in parts
        ) + ")", nested
    counts = [] if nested == 2 else BOUNDED if nested else BOUNDED + ENDLESS
    return f"(?:{parts[0][0]}){draw.choice(counts or [''])}", nested + bool(counts)


def texts(draw: random.Random, count: int = 60) -> list[str]:
    """Short random texts."""
    return [""] + ["".join(draw.choices(ALPHABET, k=draw.randrange(1, 9))) for _ in range(count)]
