"""How numbers, tokens, nodes and requests are put into words. Every number has its unit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from engine import events as ev
from workbench.replay import State

Texts = Mapping[str, str]
"""Token id (as a string) -> its text; an id that is missing has no known text."""

EVICTIONS = {"belady": "farthest next use"}
"""What an eviction policy is called where its key is not its name."""

SPECIAL = {"\n": "↵", "\t": "⇥", "\r": "↤"}


def number(value: float) -> str:
    """Thousands apart, at most three decimals."""
    text = f"{value:,.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else f"{value:,}"
    return text or "0"


def count(value: int, what: str) -> str:
    """`1 token`, `2 tokens`, `1,024 pages`."""
    return f"{value:,} {what}{'' if value == 1 else 's'}"


def eviction_name(policy: str) -> str:
    """An eviction policy as it is called."""
    return EVICTIONS.get(policy, policy)


def seconds(value: float) -> str:
    """Seconds in a readable unit, three digits."""
    if value != 0 and abs(value) < 0.9995:
        return f"{number(float(f'{value * 1000:.3g}'))} ms"
    return f"{number(float(f'{value:.3g}' if abs(value) < 100 else f'{value:.4g}'))} s"


def visible(text: str) -> str:
    """Line ends and tabs drawn; blanks at the edges too, where nobody would see them."""
    for plain, drawn in SPECIAL.items():
        text = text.replace(plain, drawn)
    inner = text.strip(" ")
    if not inner:
        return "␣" * len(text)
    left = len(text) - len(text.lstrip(" "))
    return "␣" * left + inner + "␣" * (len(text) - left - len(inner))


def quoted(text: str, limit: int = 40) -> str:
    """In quotation marks, whitespace visible, shortened in the end."""
    drawn = visible(text)
    return f"“{drawn if len(drawn) <= limit else drawn[: limit - 1] + '…'}”"


def token(id: int, texts: Texts) -> str:
    """One token: its text, or its id where the text is unknown."""
    text = texts.get(str(id))
    return str(id) if text is None else quoted(text, 20)


def two_tokens(a: int, b: int, texts: Texts) -> tuple[str, str]:
    """Two different tokens; with their ids where they would read the same."""
    first, second = token(a, texts), token(b, texts)
    return (f"{first} (id {a})", f"{second} (id {b})") if first == second else (first, second)


def tokens(ids: Sequence[int], texts: Texts, limit: int = 40) -> str:
    """A run of tokens: their text in quotation marks, or the ids where a text is unknown."""
    head = ids[: limit + 1]
    if any(str(i) not in texts for i in head):
        return " ".join(map(str, ids[:8])) + (" …" if len(ids) > 8 else "")
    return quoted("".join(texts[str(i)] for i in head), limit)


def request_name(state: State, id: str) -> str:
    """A request's id, with its label where it has one."""
    request = state.requests.get(id)
    return f"{id} ({request.label})" if request is not None and request.label else id


def node_name(state: State, id: int, texts: Texts) -> str:
    """A node's id, with the start of its text where texts are known; the root by its name."""
    if id == ev.ROOT:
        return "the root"
    node = state.nodes.get(id) or (state.gone[id][1] if id in state.gone else None)
    if node is None or not texts:
        return f"node #{id}"
    return f"node #{id} {tokens(state.tokens(node), texts, 24)}"


def owner_name(owner: ev.Owner) -> str:
    """Who holds a page."""
    return "nobody" if owner is None else f"node #{owner}" if isinstance(owner, int) else owner


def span(start: int, stop: int) -> str:
    """Token positions [start, stop): `token 3`, `tokens 3 to 5`."""
    return f"token {number(start)}" if stop - start == 1 else f"tokens {number(start)} to {number(stop - 1)}"


def listed(names: Iterable[str], limit: int = 3) -> str:
    """The first few of a list, and how many more there are."""
    all_names = list(names)
    more = len(all_names) - limit
    return ", ".join(all_names[:limit]) + (f" and {more:,} more" if more > 0 else "")


def namespace(space: ev.Namespace | None) -> str:
    """A namespace by the fields it has."""
    if space is None:
        return "no namespace"
    fields = zip(("salt", "adapter", "content"), space, strict=True)
    return "namespace " + ", ".join(f"{name} {value}" for name, value in fields if value is not None)


def capital(text: str) -> str:
    """The first letter raised, the rest left alone."""
    return text[:1].upper() + text[1:]
