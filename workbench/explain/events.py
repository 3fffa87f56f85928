"""The event under the cursor: its sentence, the ranking behind the decision, what lost and by how much."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine import events as ev
from workbench.explain import misses, nodes, rankings, requests, routing, summary
from workbench.explain.answer import Answer, Link, Table
from workbench.explain.moment import Moment, to_event, to_node, to_request, unique
from workbench.explain.sentences import sentence
from workbench.explain.standing import policy_words, promised
from workbench.explain.words import capital, count, listed, number, seconds
from workbench.replay import RequestState


def explain(moment: Moment) -> Answer:
    """The event at this moment."""
    event = moment.events[moment.seq]
    answer = Answer(headline=sentence(event, moment.state, moment.texts), links=_named(event))
    more = _MORE.get(type(event))
    if more is not None:
        more(moment, event, answer)
    answer.links = unique(answer.links)
    return answer


def _named(event: ev.Event) -> list[Link]:
    """The request and the node that an event names."""
    request, node = getattr(event, "request", None), getattr(event, "node", None)
    links = [] if request is None else [to_request(request)]
    return links + ([] if node in (None, ev.ROOT) else [to_node(node)])


def _matched(moment: Moment, e: ev.RequestMatched, answer: Answer) -> None:
    reason = misses.why(moment, e)
    answer.detail += [f"{capital(reason.text)}.", *reason.detail]
    answer.rows, answer.reason = reason.rows, reason.code
    answer.links += [*reason.links, *map(to_node, e.path)]


def _admitted(moment: Moment, e: ev.RequestAdmitted, answer: Answer) -> None:
    spare = e.available - e.needed
    if e.needed:
        answer.detail.append(f"{count(spare, 'page')} to spare, with a reserve of {number(e.reserve)} of what may still be produced.")
    if e.host:
        verdict = "took less, so it is loaded" if e.loaded else "did not take less, so it is computed again"
        answer.detail.append(f"The host holds {count(e.host, 'token')} of it. Loading them, behind what this step loads already, {verdict}.")
    if e.overtaken:
        answer.detail.append(f"Later arrivals computed {count(e.overtaken, 'prompt token')} while it waited.")


def _first_token(moment: Moment, e: ev.RequestFirstToken, answer: Answer) -> None:
    """The split of the time to first token."""
    r = moment.state.requests[e.request]
    if r.admitted is None:
        return
    queue, prefill = r.admitted - r.arrived, e.t - r.admitted
    simulated = " (simulated)" if moment.header.clock == "virtual" else ""
    again = ", with the time it was sent back," if r.retractions else ""
    answer.detail.append(
        f"Of that{simulated}: {seconds(queue)} in the queue and {seconds(prefill)}{again} in prefill, "
        f"for {count(r.computed or 0, 'token')} computed and {number(r.cached or 0)} from the cache."
    )


def _passed_over(moment: Moment, e: ev.RequestPassedOver, answer: Answer) -> None:
    if e.limit in ("pages", "budget", "chunk"):
        unit = "page" if e.limit == "pages" else "token"
        answer.detail.append(f"Short by {count(e.needed - e.available, unit)}.")
    if e.limit == "pages":
        answer.detail.append(promised(moment.state, e))
    running = [r.id for r in moment.state.requests.values() if r.status in ("prefill", "decode")]
    answer.links += map(to_request, running)
    if e.behind is not None:
        answer.links.append(to_request(e.behind))


def _ordered(moment: Moment, e: ev.QueueOrdered, answer: Answer) -> None:
    name, tell = policy_words(e.policy)
    answer.table = Table(
        title=name,
        columns=["request", "key"],
        rows=[[r, tell(e.keys[i]) if i < len(e.keys) else None] for i, r in enumerate(e.head)],
        taken=[False] * len(e.head),
        links=[to_request(r) for r in e.head],
    )


def _retracted(moment: Moment, e: ev.RequestRetracted, answer: Answer) -> None:
    """Who could have been sent back instead."""
    before = moment.at(moment.seq - 1)
    running = [r for r in before.requests.values() if r.status in ("prefill", "decode")]
    rule = moment.config("retract_victim") or "rule unknown"

    def order(r: RequestState) -> tuple[int, int]:
        return (len(r.output), -len(r.prompt)) if rule == "least-output" else (0, 0)

    running.sort(key=lambda r: (r.id != e.request, *order(r)))
    if rule == "least-output" and len(running) > 1:
        more = len(running[1].output) - len(running[0].output)
        said = f"it has produced {count(more, 'token')} more" if more > 0 else "it has produced as many, and ties go to the longest prompt, then the latest arrival"
        answer.detail.append(f"{running[1].id} stays: {said}.")
    answer.table = Table(
        title=f"Who runs when pages run out; {rule} goes back",
        columns=["request", "output tokens", "prompt tokens", "times sent back"],
        rows=[[r.id, len(r.output), len(r.prompt), r.retractions] for r in running],
        taken=[r.id == e.request for r in running],
        links=[to_request(r.id) for r in running],
    )


def _eviction(moment: Moment, e: ev.Eviction, answer: Answer) -> None:
    answer.table = rankings.table(e)
    lost = rankings.margin(e, moment)
    if lost is not None:
        answer.detail.append(lost)
    if e.freed < e.asked:
        answer.detail.append(f"{count(e.asked - e.freed, 'page')} short: {count(e.locked, 'page')} are locked.")
    regretted = [r.node for r in e.ranking if r.taken and any(moment.eviction_of(w.removed) is e for w in moment.index.wanted.get(r.node, []))]
    if regretted:
        answer.detail.append(f"Regretted: {', '.join(f'node #{n}' for n in regretted)} {'was' if len(regretted) == 1 else 'were'} wanted again.")
    answer.links += [to_node(r.node) for r in e.ranking if r.taken]


def _removed(moment: Moment, e: ev.NodeEvicted | ev.NodeTrimmed, answer: Answer) -> None:
    if isinstance(e, ev.NodeEvicted):
        told = nodes.explain(moment, e.node)
        answer.detail, answer.table = [told.headline, *told.detail], told.table
        answer.links += told.links
        return
    regret = nodes.regret(moment, e.node, e.seq)
    answer.detail += [regret] if regret else []
    eviction = moment.eviction_of(e.seq)
    if eviction is not None:
        answer.table = rankings.table(eviction)
        answer.links.append(to_event(eviction.seq, "eviction"))


def _planned(moment: Moment, e: ev.StepPlanned, answer: Answer) -> None:
    left_out = [r.id for r in moment.state.requests.values() if r.status == "decode" and r.id not in e.members]
    if left_out and e.prefills:
        answer.detail.append(f"Stalled: {listed(left_out)} would decode, but the prefill of {listed(e.members[: e.prefills])} runs instead.")
        answer.links += map(to_request, left_out)
    answer.table = Table(
        title="Who is in this step",
        columns=["request", "phase", "tokens"],
        rows=[[r, "prefill" if i < e.prefills else "decode", n] for i, (r, n) in enumerate(zip(e.members, e.tokens, strict=True))],
        taken=[True] * len(e.members),
        links=[to_request(r) for r in e.members],
    )


def _ended(moment: Moment, e: ev.RequestFinished | ev.RequestAborted | ev.RequestRefused, answer: Answer) -> None:
    told = requests.explain(moment, e.request)
    answer.detail += [d for d in (told.headline, *told.detail) if d]


def _broken(moment: Moment, e: ev.InvariantBroken, answer: Answer) -> None:
    if e.page is not None:
        answer.links.append(Link("page", e.page, f"page {e.page}"))


_MORE: dict[type[ev.Event], Callable[[Moment, Any, Answer], None]] = {
    ev.RunEnded: summary.explain,
    ev.RequestFirstToken: _first_token,
    ev.RequestRouted: routing.explain,
    ev.RequestMatched: _matched,
    ev.RequestAdmitted: _admitted,
    ev.RequestPassedOver: _passed_over,
    ev.QueueOrdered: _ordered,
    ev.RequestRetracted: _retracted,
    ev.RequestFinished: _ended,
    ev.RequestAborted: _ended,
    ev.RequestRefused: _ended,
    ev.Eviction: _eviction,
    ev.NodeEvicted: _removed,
    ev.NodeTrimmed: _removed,
    ev.StepPlanned: _planned,
    ev.InvariantBroken: _broken,
}
