"""What happened at one position of a tape, in sentences: how the token came there, what the mask did to the model's choice."""

from __future__ import annotations

import math

from workbench.decoding import Candidate, Decoding, Token


def told(d: Decoding, at: int, vocabulary: int | None) -> str:
    """One sentence or two about the token at a position of an answer."""
    token = d.tokens[at]
    return (
        f"Token {at + 1} of {len(d.tokens)}, {named(token.id, token.text)}: {_how(d, token)}{_mask(token, vocabulary)}"
    )


def named(id: int, text: str | None) -> str:
    """A token by its text, whitespace made visible; by its number where the text is unknown."""
    return f"token {id}" if text is None else f"“{visible(text)}”"


def visible(text: str) -> str:
    """A token's text, whitespace made visible."""
    return text.replace(" ", "␣").replace("\n", "↵") or "∅"


def _how(d: Decoding, token: Token) -> str:
    where = f"pass {token.number}" if token.number is not None else "no pass"
    if token.source == "jumped" and d.mode == "verified":
        return f"jumped. The grammar forced its text, so it rode along in {where} as a draft, and the model agreed."
    if token.source == "jumped":
        return f"jumped without looking. The grammar forced its text; its keys and values were computed in {where}."
    if token.source == "respelt":
        return f"spelt anew. The tokenizer writes the text so far and the forced run behind it in other tokens; computed in {where}."
    if token.source == "forced":
        return f"forced in {where}. The mask left nothing else."
    return f"sampled in {where}."


def _mask(token: Token, vocabulary: int | None) -> str:
    if token.allowed is None:
        return ""
    of = f" of {vocabulary:,}" if vocabulary else ""
    words = f" The mask allowed {token.allowed:,}{of} {'token' if token.allowed == 1 and not of else 'tokens'}."
    if not token.top:
        return words
    first = token.top[0]
    if first.id == token.id:
        return f"{words} It was the model's first choice ({chance(first)})."
    if first.forbidden:
        return f"{words} The model's first choice, {named(first.id, first.text)} ({chance(first)}), was forbidden."
    return f"{words} The model's first choice was {named(first.id, first.text)} ({chance(first)})."


def share(token: Token) -> str:
    """How much of the model's top few the mask forbade."""
    bad = [c for c in token.top if c.forbidden]
    if not token.top:
        return ""
    worth = sum(math.exp(c.logprob) for c in token.top)
    if not bad:
        return f"None of the model's top {len(token.top)} was forbidden; together they had {percent(worth)}."
    lost = sum(math.exp(c.logprob) for c in bad)
    return (
        f"The mask forbade {len(bad)} of the model's top {len(token.top)}: {percent(lost)} of all probability at least."
    )


def chance(candidate: Candidate) -> str:
    """A log-probability as a share."""
    return percent(math.exp(candidate.logprob))


def percent(value: float) -> str:
    """A share in as many digits as tell something."""
    value *= 100
    return f"{value:.0f} %" if value >= 9.95 else f"{value:.1f} %" if value >= 0.095 else "under 0.1 %"
