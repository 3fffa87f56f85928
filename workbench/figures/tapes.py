"""Two tapes of the same request side by side: aligned by their text, and told in sentences.

Pure functions of decodings; the page and the notebooks show the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from workbench.decoding import Decoding, Token

NOTICEABLE = 1.02
"""Two times count as different from this ratio on."""


class Column(NamedTuple):
    """Tokens [a, a_end) of one tape beside tokens [b, b_end) of the other; `same`: the same text."""

    a: int
    a_end: int
    b: int
    b_end: int
    same: bool


def align(a: Sequence[Token], b: Sequence[Token]) -> list[Column]:
    """Cut two tapes where both have a border in their text; from the first difference on, token beside token."""
    columns: list[Column] = []
    i = j = 0
    while i < len(a) and j < len(b):
        step = (1, 1) if a[i].id == b[j].id else _border(a[i:], b[j:])
        if step is None:
            break
        columns.append(Column(i, i + step[0], j, j + step[1], True))
        i, j = i + step[0], j + step[1]
    for k in range(max(len(a) - i, len(b) - j)):
        columns.append(
            Column(min(i + k, len(a)), min(i + k + 1, len(a)), min(j + k, len(b)), min(j + k + 1, len(b)), False)
        )
    return columns


def _border(a: Sequence[Token], b: Sequence[Token]) -> tuple[int, int] | None:
    """How many tokens of each say the same text; None where they say something else."""
    left = right = ""
    i = j = 0
    while not left or left != right:
        behind, tape, at = (left, a, i) if len(left) <= len(right) else (right, b, j)
        if at == len(tape) or tape[at].text is None:
            return None
        longer = behind + str(tape[at].text)
        if tape is a:
            left, i = longer, i + 1
        else:
            right, j = longer, j + 1
        if not (left.startswith(right) or right.startswith(left)):
            return None
    return i, j


def parted(columns: Sequence[Column]) -> Column | None:
    """The first column in which the texts differ."""
    return next((c for c in columns if not c.same), None)


def sentences(jump: Decoding, plain: Decoding | None) -> list[str]:
    """What came of it, the most telling sentence first."""
    if plain is None:
        return [_alone(jump), *_cut([jump])]
    return [_passes(jump, plain), _texts(jump, plain), *_cut([jump, plain]), *_times(jump, plain)]


def _alone(d: Decoding) -> str:
    if d.status == "refused" or not d.tokens:
        return f"{d.request} gave no token{f': {d.error}' if d.error else ''}."
    if d.mode == "off":
        return f"Plain decoding: {_count(len(d.tokens), 'token')} in {_count(d.passes, 'pass', 'passes')}."
    return (
        f"{_count(len(d.tokens), 'token')} in {_count(d.passes, 'pass', 'passes')}: jump-forward saved {d.saved} "
        f"({d.saved / (d.passes + d.saved):.0%} of what these tokens would have taken one by one)."
    )


def _passes(jump: Decoding, plain: Decoding) -> str:
    if not (jump.tokens and plain.tokens):
        return " ".join(_alone(d) for d in (jump, plain))
    used = (
        f"Jump-forward took {_count(jump.passes, 'pass', 'passes')} for {_count(len(jump.tokens), 'token')}, "
        f"plain decoding {plain.passes} for {len(plain.tokens)}"
    )
    saved = plain.passes - jump.passes
    if not _same_text(jump, plain):
        own = f"{jump.saved} of jump-forward's own took no pass of their own"
        return f"{used}. The answers differ, so the two cannot be set off against each other; {own}."
    if saved > 0:
        return f"{used}: {saved} saved, {saved / plain.passes:.0%}."
    why = (
        "The model spells every forced run otherwise than it was drafted."
        if jump.rolled_back
        else "The grammar forces no run here that could be jumped."
    )
    return f"{used}: nothing saved. {why}"


def _same_text(jump: Decoding, plain: Decoding) -> bool:
    return parted(align(jump.tokens, plain.tokens)) is None


def _texts(jump: Decoding, plain: Decoding) -> str:
    if [t.id for t in jump.tokens] == [t.id for t in plain.tokens]:
        return "The answers are identical, token for token."
    part = parted(align(jump.tokens, plain.tokens))
    if part is None:
        return f"The answers say the same, spelt in other tokens: {len(jump.tokens)} against {len(plain.tokens)}."
    told = [_at(d.tokens, at) for d, at in ((jump, part.a), (plain, part.b))]
    return f"They part at token {part.b + 1}: {told[0]} with jump-forward, {told[1]} in plain decoding.{_gap(plain, part.b)}{_because(jump)}"


def _gap(plain: Decoding, at: int) -> str:
    """How far apart the two best tokens were that the mask allowed there."""
    allowed = [c.logprob for c in plain.tokens[at].top if not c.forbidden] if at < len(plain.tokens) else []
    return (
        f" The two best allowed tokens were {allowed[0] - allowed[1]:.4f} apart there (log-probability)."
        if len(allowed) > 1
        else ""
    )


def _because(jump: Decoding) -> str:
    if jump.mode == "unverified":
        return " An unverified jump spells its run as the tokenizer would, and behind another spelling the model may go on otherwise."
    return ""


def _cut(arms: list[Decoding]) -> list[str]:
    out = []
    for d in arms:
        if d.incomplete and d.reason in ("length", "capacity"):
            needed = (
                f" At least {_count(d.still_needed, 'token')} more would have completed it." if d.still_needed else ""
            )
            out.append(
                f"{_name(d)}: the answer was cut after {_count(len(d.tokens), 'token')}, before its document was whole.{needed}"
            )
        elif d.status == "failed":
            out.append(f"{_name(d)} failed: {d.error}.")
    return out


def _times(jump: Decoding, plain: Decoding) -> list[str]:
    a, b = jump.duration, plain.duration
    if not a or not b or jump.simulated:
        return ["Times are simulated here." if jump.simulated else "Times are not known."]
    whole = (
        f"As measured in this run, once each, jump-forward took {_seconds(a)} in all and plain decoding {_seconds(b)}"
    )
    ratio = b / a
    if 1 / NOTICEABLE < ratio < NOTICEABLE:
        verdict = ": no difference worth telling."
    else:
        verdict = f": {ratio:.2f} times sooner" if ratio > 1 else f": {1 / ratio:.2f} times later"
        verdict += "." if _same_text(jump, plain) else ", for another answer."
    return [whole + verdict]


def _name(d: Decoding) -> str:
    return "Plain decoding" if d.mode == "off" else "Jump-forward"


def _at(tokens: Sequence[Token], at: int) -> str:
    if at >= len(tokens):
        return "the end"
    text = tokens[at].text
    return f"token {tokens[at].id}" if text is None else f"“{text}”"


def _seconds(value: float) -> str:
    return f"{value * 1000:.0f} ms" if value < 1 else f"{value:.2f} s"


def _count(n: int, one: str, many: str | None = None) -> str:
    return f"{n:,} {one if n == 1 else many or f'{one}s'}"
