"""The ranking behind an eviction: who went, who stayed, and by how much."""

from __future__ import annotations

from engine import events as ev
from workbench.explain.answer import Table
from workbench.explain.moment import Moment, to_node
from workbench.explain.words import capital, count, number
from workbench.replay import NodeState, State

COLUMNS = ["node", "key", "tokens", "idle, ticks", "hits", "taken, tokens"]


def table(e: ev.Eviction) -> Table:
    """The head of an eviction's ranking, first to go first."""
    return Table(
        title=f"{e.policy}: the smallest key goes first",
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
    first = stays[0]
    name = capital(moment.node(first.node))
    if e.policy == "lru":
        apart = int(first.key[0] - last.key[0])
        if not apart:
            return f"{name} is as old, and stays because it was created later."
        return f"{name} stays: it was used {count(apart, 'tick')} later than node #{last.node}, the last to go."
    keys = ", ".join(map(number, first.key)), ", ".join(map(number, last.key))
    return f"{name} stays: its key is {keys[0]}, that of node #{last.node}, the last to go, {keys[1]}."


def place(state: State, node: NodeState, policy: str | None) -> tuple[int, int] | None:
    """The place of an unlocked leaf in the order of eviction, and how many there are; None where it has none.

    Only the order of `lru` is known from the state.
    """
    if policy != "lru" or not evictable(node):
        return None
    key = (node.last_used, node.id)
    others = [(n.last_used, n.id) for n in state.nodes.values() if evictable(n)]
    return 1 + sum(other < key for other in others), len(others)


def evictable(node: NodeState) -> bool:
    """A leaf that nothing holds."""
    return not (node.locks or node.children or node.pins)
