"""The ranking behind an eviction: who went, who stayed, and by how much; and the order among those who are left."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from engine import events as ev
from workbench.explain.answer import Table
from workbench.explain.moment import Moment, to_node
from workbench.explain.words import capital, count, eviction_name, number
from workbench.replay import NodeState, State

COLUMNS = ["node", "key", "tokens", "idle, ticks", "hits", "taken, tokens"]


class Part(NamedTuple):
    """One part of a policy's key: what it is for a leaf, and how two leaves that differ in it are told apart."""

    value: Callable[[NodeState], int]
    apart: Callable[[ev.Ranked, ev.Ranked, str], str]
    """Why the first stays while the second went, who is named by the third."""


PROTECTED = 2
"""Hits from which slru protects a leaf."""

LATER = Part(lambda n: n.last_used, lambda a, b, went: f"it was used {count(b.age - a.age, 'tick')} later than {went}")
EARLIER = Part(lambda n: -n.last_used, lambda a, b, went: f"it was used {count(a.age - b.age, 'tick')} earlier than {went}")
NEWER = Part(lambda n: n.id, lambda a, b, went: f"it was stored later than {went}")
OLDER = Part(lambda n: -n.id, lambda a, b, went: f"it was stored earlier than {went}")
HITS = Part(lambda n: n.hits, lambda a, b, went: f"it has {count(a.hits, 'hit')} against the {number(b.hits)} of {went}")
SAFE = Part(lambda n: n.hits >= PROTECTED, lambda a, b, went: f"it is protected by {count(a.hits, 'hit')}, unlike {went}, with {number(b.hits)}")
SMALLER = Part(lambda n: -n.count, lambda a, b, went: f"it has {count(a.tokens, 'token')} against the {number(b.tokens)} of {went}")
WEIGHTIER = Part(lambda n: n.priority, lambda a, b, went: f"a more important request stored it than {went}")

JOINED = Part(lambda n: n.joined, lambda a, b, went: f"it joined the free queue after {went}")
NEARER = Part(lambda n: -n.depth, lambda a, b, went: f"it stands nearer to the beginning of the same chain than {went}")
FURTHER = Part(lambda n: n.depth, lambda a, b, went: f"it stands further from the beginning of the same chain than {went}")

RULES: dict[str, tuple[Part, ...]] = {
    "lru": (LATER,),
    "mru": (EARLIER,),
    "lfu": (HITS, LATER),
    "fifo": (NEWER,),
    "filo": (OLDER,),
    "slru": (SAFE, LATER),
    "priority": (WEIGHTIER, LATER),
    "size": (SMALLER, LATER),
    "tail-first": (JOINED, NEARER),
    "head-first": (JOINED, FURTHER),
}
"""Policies whose order can be told from the state, smallest key first; of others only what an eviction says is told."""


def rule(moment: Moment) -> str:
    """The name of this run's rule: how chains of blocks join their free queue, or the tree's policy."""
    return str(moment.config("block_order" if moment.config("cache") == "blocks" else "eviction"))


def table(e: ev.Eviction) -> Table:
    """The head of an eviction's ranking, first to go first."""
    order = "who joined the free queue first goes first" if e.unit == "block" else "the smallest key goes first"
    return Table(
        title=f"{eviction_name(e.policy)}: {order}",
        columns=COLUMNS,
        rows=[[f"#{r.node}", ", ".join(map(number, r.key)), r.tokens, r.age, r.hits, r.taken] for r in e.ranking],
        taken=[r.taken > 0 for r in e.ranking],
        links=[to_node(r.node) for r in e.ranking],
    )


def margin(e: ev.Eviction, moment: Moment) -> str | None:
    """What lost, and by how much: the last that was taken against the first that stays.

    None where nothing was taken, or where the ranking that the event shows ends before.
    """
    taken = [r for r in e.ranking if r.taken]
    stays = [r for r in e.ranking if not r.taken]
    if not taken:
        return None
    last = taken[-1]
    if not stays:
        part = last.taken < last.tokens
        if sum(r.taken for r in taken) < e.freed * moment.state.page_size:
            return None
        return f"Nothing else could be evicted; node #{last.node} keeps {count(last.tokens - last.taken, 'token')}." if part else "Nothing else could be evicted."
    return f"{capital(moment.node(stays[0].node))} stays: {_apart(rule(moment) if e.unit == 'block' else e.policy, stays[0], last)}."


def _apart(name: str, stays: ev.Ranked, last: ev.Ranked) -> str:
    went = f"node #{last.node}, the last to go"
    if name == "belady" and stays.key != last.key:
        return f"the next request that runs through it comes sooner in the file than that of {went}, if any"
    for part, mine, other in zip(RULES.get(name, ()), stays.key, last.key, strict=False):
        if mine != other:
            return part.apart(stays, last, went)
    if stays.key == last.key:
        return f"its key is that of {went}, and it was created later"
    keys = [", ".join(map(number, r.key)) for r in (stays, last)]
    return f"its key is {keys[0]}, that of {went}, {keys[1]}"


def place(state: State, node: NodeState, name: str) -> tuple[int, int] | None:
    """The place of an unlocked leaf or block in the order of eviction, and how many there are; None where it has none.

    None too for a policy that is not among the `RULES`.
    """
    parts = RULES.get(name)
    if parts is None or not evictable(node, name):
        return None

    def key(n: NodeState) -> tuple[int, ...]:
        return (*(part.value(n) for part in parts), n.id)

    others = [key(n) for n in state.nodes.values() if evictable(n, name)]
    return 1 + sum(other < key(node) for other in others), len(others)


def evictable(node: NodeState, name: str) -> bool:
    """A leaf of what lies on the device, that nothing holds; of blocks any that nothing holds."""
    return not (node.locks or node.pins or not node.pages or (node.resident and name not in ("tail-first", "head-first")))
