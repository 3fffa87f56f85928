"""What a node holds, who uses it, how near it is to eviction; and for one that is gone, why it went."""

from __future__ import annotations

from engine import events as ev
from workbench.explain import rankings
from workbench.explain.answer import Answer, ExplainError, Link
from workbench.explain.index import Wanted
from workbench.explain.moment import Moment, to_event, to_node, to_request, unique
from workbench.explain.words import capital, count, eviction_name, listed, namespace, number, request_name, span, tokens
from workbench.replay import NodeState, State


def explain(moment: Moment, id: int) -> Answer:
    """The node with this id. Raises ExplainError where the trace has none such."""
    state, index = moment.state, moment.index
    if id == ev.ROOT:
        children = sum(n.parent == ev.ROOT for n in state.nodes.values())
        return Answer(headline=f"The root holds no tokens; {count(children, 'branch').replace('branchs', 'branches')} begin{'s' if children == 1 else ''} here.")
    if id not in index.nodes:
        raise ExplainError(f"node: {id} is no node of this run")
    first = index.nodes[id][0]
    if first > moment.seq:
        return Answer(headline=f"Node #{id} does not exist yet; event {first} brings it.", links=[to_event(first, "created")])
    return _live(moment, state.nodes[id]) if id in state.nodes else _gone(moment, *state.gone[id])


def _live(moment: Moment, node: NodeState) -> Answer:
    state = moment.state
    users = [r.id for r in state.requests.values() if r.status in ("prefill", "decode") and r.node and node.id in state.path(r.node)]
    detail = [*_lost(moment, node), *_contents(moment, node), *_trimmed(moment, node.id)]
    if node.tier == "host":
        used = f"lies on the host only, in {count(len(node.host), 'host page')}: its device pages were taken"
    elif node.locks:
        used = f"is locked by {listed(request_name(state, u) for u in users)}" if users else f"holds {count(node.locks, 'lock')}"
    elif not state.reachable(node.id):
        used = f"is unreachable; it {_place(moment, node)}"
    elif node.resident and moment.config("cache") != "blocks":
        used = f"is not locked, but {count(node.resident, 'node')} below it {'goes' if node.resident == 1 else 'go'} first"
    elif node.pins:
        used = f"is pinned until step {number(node.pins)}"
    else:
        used = _place(moment, node)
    idle = moment.index.tick(moment.seq) - node.last_used
    detail.append(f"{count(node.hits, 'hit')}; last used {count(idle, 'tick')} ago{_age(moment, node.id)}.")
    if node.tier == "both":
        detail.append(f"Copied to {count(len(node.host), 'host page')}: eviction will only take its device pages.")
    if len(users) > 3:
        detail.append(f"Locked by {', '.join(users)}.")
    return Answer(
        headline=f"{capital(moment.node(node.id))} holds {count(node.count, 'token')} and {used}.",
        detail=detail,
        links=unique([*map(to_request, users), *_origins(moment, node)]),
    )


def _lost(moment: Moment, node: NodeState) -> list[str]:
    """Why no look-up can find it, where that is so."""
    seq = moment.index.lost.get(node.id)
    if seq is None or seq > moment.seq:
        return []
    event = moment.events[seq]
    above = f"node #{event.node}, above it," if isinstance(event, ev.NodeEvicted) else "what stood above it"
    said = f"No look-up can find it since {above} was evicted at event {seq}; it keeps its {count(len(node.pages), 'page')} until its turn comes."
    return [f"{said} {regret(moment, node.id, seq)}".strip()]


def _contents(moment: Moment, node: NodeState) -> list[str]:
    """Its text, its writers, its place in the tree."""
    state = moment.state
    ids = state.tokens(node)
    writers = list(dict.fromkeys(r for r, _, _ in node.pieces))
    space = f" in {namespace(node.namespace)}" if node.namespace else ""
    pages = count(len(node.pages), "page") if node.pages else count(len(node.host), "host page")
    return [
        f"{capital(span(node.depth, node.depth + node.count))} of its path: {tokens(ids, moment.texts, 160)}",
        f"Written by {listed(request_name(state, w) for w in writers)}{space}, in {pages}"
        f" below {_parent(state, node)}.",
    ]


def _parent(state: State, node: NodeState) -> str:
    if node.parent == ev.ROOT:
        return "the root"
    return f"node #{node.parent}{'' if node.parent in state.nodes else ', which is gone'}"


def _trimmed(moment: Moment, id: int) -> list[str]:
    """Tokens that eviction took from its end so far."""
    out = []
    for seq in _before(moment, id):
        event = moment.events[seq]
        if isinstance(event, ev.NodeTrimmed):
            said = f"Eviction took its last {count(event.tokens, 'token')} at event {seq}{_for_whom(moment, seq)}."
            out.append(f"{said} {regret(moment, id, seq)}".strip())
    return out[-3:]


def _before(moment: Moment, id: int) -> list[int]:
    return [seq for seq in moment.index.nodes[id] if seq <= moment.seq]


def _place(moment: Moment, node: NodeState) -> str:
    place = rankings.place(moment.state, node, rankings.rule(moment))
    if place is None:
        return "is not locked"
    return "is the next to be evicted" if place[0] == 1 else f"is number {place[0]} of {place[1]} in the order of eviction"


def _age(moment: Moment, id: int) -> str:
    born = moment.index.born.get(id)
    return "" if born is None else f", stored {count(moment.index.tick(moment.seq) - born, 'tick')} ago"


def _origins(moment: Moment, node: NodeState) -> list[Link]:
    """Who wrote it, its parent, its first and last event."""
    links = [to_request(r) for r, _, _ in node.pieces]
    if node.parent != ev.ROOT:
        links.append(to_node(node.parent))
    seqs = _before(moment, node.id)
    kinds = {seq: moment.events[seq].__struct_config__.tag.removeprefix("node.") for seq in (seqs[0], seqs[-1])}  # type: ignore[union-attr]
    return links + [to_event(seq, kind) for seq, kind in kinds.items()]


def _gone(moment: Moment, seq: int, node: NodeState) -> Answer:
    lost = moment.index.lost.get(node.id)
    told = regret(moment, node.id, seq if lost is None else lost)
    wanted = moment.index.wanted.get(node.id, [])
    answer = Answer(
        headline=f"Node #{node.id} was evicted at event {seq}{_for_whom(moment, seq)}{'; regretted' if told else ''}.",
        links=[to_event(seq, "evicted"), *(to_event(w.seq, f"{w.request} looks for it") for w in wanted[:3]), *_origins(moment, node)],
    )
    if lost is not None:
        answer.detail.append(f"No look-up could find it since event {lost}, when what stood above it was evicted.")
        answer.links.append(to_event(lost, "unreachable"))
    _ranked(moment, node.id, seq, answer)
    answer.detail += [told or "Nobody wanted it again so far in this trace.", *_contents(moment, node)]
    answer.links = unique(answer.links)
    return answer


def _ranked(moment: Moment, id: int, seq: int, answer: Answer) -> None:
    """Its place in the ranking that took it, and what stayed."""
    eviction = moment.eviction_of(seq)
    if eviction is None:
        answer.detail.append("The trace does not hold the ranking behind it.")
        return
    answer.table = rankings.table(eviction)
    answer.links.insert(0, to_event(eviction.seq, "eviction"))
    for i, r in enumerate(eviction.ranking, 1):
        if r.node == id:
            answer.detail.append(
                f"It was number {i} in the ranking of {eviction_name(eviction.policy)}: key {', '.join(map(number, r.key))}, idle for {count(r.age, 'tick')}, "
                f"{count(r.hits, 'hit')}{_lived(moment, id, seq)}."
            )
            break
    else:
        answer.detail.append(f"It came after the first {len(eviction.ranking)} in the ranking of {eviction_name(eviction.policy)}, which are all that the event shows.")
    lost = rankings.margin(eviction, moment)
    if lost is not None:
        answer.detail.append(lost)


def _for_whom(moment: Moment, seq: int) -> str:
    eviction = moment.eviction_of(seq)
    return "" if eviction is None or eviction.request is None else f" for {request_name(moment.state, eviction.request)}"


def _lived(moment: Moment, id: int, seq: int) -> str:
    born = moment.index.born.get(id)
    return "" if born is None else f", {count(moment.index.tick(seq) - born, 'tick')} old"


def regret(moment: Moment, id: int, removed: int) -> str:
    """Who wanted again what one removal took; empty where nobody did."""
    wanted: list[Wanted] = [w for w in moment.index.wanted.get(id, []) if w.removed == removed]
    if not wanted:
        return ""
    w = wanted[0]
    steps = moment.events[w.seq].step - moment.events[removed].step
    more = f"; {count(len(wanted) - 1, 'other look-up')} wanted it as well" if len(wanted) > 1 else ""
    return (
        f"Regretted: {request_name(moment.state, w.request)} wanted {count(w.tokens, 'token')} of it {count(steps, 'step')} later, "
        f"at event {w.seq}{more}."
    )
