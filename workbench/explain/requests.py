"""Where a request stands: what it reused and why no more, why it waits, what it holds, how it ended."""

from __future__ import annotations

from engine import events as ev
from workbench.explain import misses, routing
from workbench.explain.answer import Answer, ExplainError, Link
from workbench.explain.moment import Moment, to_event, to_node, to_request, unique
from workbench.explain.sentences.requests import decided, finish_reason, limit
from workbench.explain.standing import in_order, promised, standing
from workbench.explain.words import capital, count, listed, node_name, number, request_name, seconds
from workbench.replay import RequestState


def explain(moment: Moment, id: str) -> Answer:
    """The request with this id. Raises ExplainError where the trace has none such."""
    arrivals = moment.index.requests[id].get(ev.RequestArrived) if id in moment.index.requests else None
    if not arrivals:
        raise ExplainError(f"request: {id!r} is no request of this run")
    if arrivals[0] > moment.seq:
        return Answer(headline=f"{id} has not arrived yet; it does at event {arrivals[0]}.", links=[to_event(arrivals[0], "arrives")])
    r = moment.state.requests[id]
    answer = Answer(headline="", links=[to_event(arrivals[0], "arrives")])
    matched = moment.last(r.id, ev.RequestMatched)
    if matched is not None:
        reused(moment, matched, answer)
    if r.status == "waiting":
        _waiting(moment, r, answer)
    elif r.status in ("prefill", "decode"):
        answer.detail.append(_split(r))
        _running(moment, r, answer)
    else:
        if r.cached is not None:
            answer.detail.append(_split(r))
        _ended(moment, r, answer)
    _routed(moment, r, answer)
    answer.links = unique(answer.links)
    return answer


def _routed(moment: Moment, r: RequestState, answer: Answer) -> None:
    event = moment.last(r.id, ev.RequestRouted)
    if event is not None:
        answer.detail.append(routing.told(event))
        answer.table = routing.table(event)
        answer.links.append(to_event(event.seq, "routed"))


def reused(moment: Moment, m: ev.RequestMatched, answer: Answer) -> None:
    """Put into an answer what one look-up found, and why no more."""
    state = moment.at(m.seq)
    r = state.requests[m.request]
    size = len(r.prompt) + len(r.output)
    reason = misses.why(moment, m)
    verb, what = ("found again", "tokens") if r.cached is not None else ("reused", "prompt tokens")
    admitted = moment.last(r.id, ev.RequestAdmitted)
    admitted = admitted if admitted is not None and admitted.seq > m.seq else None
    loaded = 0 if admitted is None else admitted.loaded
    answer.headline = f"{request_name(state, r.id)} {verb} {number(m.length + loaded)} of its {number(size)} {what}: {reason.text}."
    if admitted is not None and admitted.host:
        answer.detail.append(f"{capital(decided(admitted))}.")
        answer.links.append(to_event(admitted.seq, "admitted"))
    answer.detail += reason.detail
    answer.rows = reason.rows
    answer.reason = reason.code
    answer.links += [to_event(m.seq, "look-up"), *reason.links]


def _split(r: RequestState) -> str:
    """Its tokens by where they came from."""
    again = f"; after retraction {number(r.recovered)} recovered, {number(r.recomputed)} recomputed" if r.retractions else ""
    return f"Prompt of {count(len(r.prompt), 'token')}: {number(r.cached or 0)} from the cache, {number(r.computed or 0)} to compute{again}."


# --- waiting -----------------------------------------------------------------------------------


def _waiting(moment: Moment, r: RequestState, answer: Answer) -> None:
    state = moment.state
    running = [o.id for o in state.requests.values() if o.status in ("prefill", "decode")]
    why, links = _held_by(moment, r)
    if answer.headline:
        answer.detail.insert(0, f"At its last look-up: {answer.headline}")
    answer.headline = f"{request_name(state, r.id)} waits: {why}."
    answer.detail.insert(0, standing(moment, r))
    held = _passed_over(moment, r)
    if held is not None and held.limit == "pages":
        answer.detail.append(promised(moment.at(held.seq), held))
    runs = f"{listed(running)} {'runs' if len(running) == 1 else 'run'}" if running else "Nobody runs"
    answer.detail.append(f"{runs} now.")
    over = _overtaken(moment, r)
    if over:
        answer.detail.append(f"Later arrivals have computed {count(over, 'prompt token')} since it came.")
    if r.retractions:
        answer.detail.append(f"It was sent back {count(r.retractions, 'time')} and keeps {count(len(r.output), 'output token')}.")
    answer.links += [*links, *map(to_request, running)]


def _held_by(moment: Moment, r: RequestState) -> tuple[str, list[Link]]:
    """The limit that holds it, or the request before it that is held."""
    own = _passed_over(moment, r)
    if own is not None:
        return limit(own), [to_event(own.seq, "passed over")]
    back = moment.last(r.id, ev.RequestRetracted)
    if back is not None and back.step == moment.state.step:
        return "decode ran out of pages and sent it back", [to_event(back.seq, "sent back")]
    queue = in_order(moment)
    for other in queue[: queue.index(r.id)]:
        event = _passed_over(moment, moment.state.requests[other])
        if event is not None and event.limit not in ("prefix in flight", "leader room"):
            return f"{other} is before it and {limit(event)}", [to_event(event.seq, f"{other} is passed over"), to_request(other)]
    return "the next step has not been planned yet", []


def _passed_over(moment: Moment, r: RequestState) -> ev.RequestPassedOver | None:
    """The last time it was passed over since it joined the queue."""
    event: ev.RequestPassedOver | None = moment.last(r.id, ev.RequestPassedOver)
    back = moment.last(r.id, ev.RequestRetracted)
    return None if event is None or (back is not None and back.seq > event.seq) else event


def _overtaken(moment: Moment, r: RequestState) -> int:
    """Prompt tokens computed since it came for requests that arrived later."""
    everyone = list(moment.state.requests)
    later = [moment.state.requests[id] for id in everyone[everyone.index(r.id) + 1 :]]
    return sum((o.computed or 0) if o.retractions else max(0, min(o.kv, len(o.prompt)) - o.cached) for o in later if o.cached is not None)


# --- running -----------------------------------------------------------------------------------


def _running(moment: Moment, r: RequestState, answer: Answer) -> None:
    state = moment.state
    path = state.path(r.node)
    shared = sum(len(state.nodes[n].pages) for n in path)
    done = f"{number(r.kv)} of {number(r.target)} tokens written" if r.status == "prefill" else f"{count(len(r.output), 'output token')} of at most {number(r.max_new_tokens)}"
    tree = f"{count(shared, 'page')} in the tree, locked down to {node_name(state, r.node, moment.texts)}" if path else "no page in the tree"
    answer.detail.append(f"It is in {r.status}: {done}.")
    answer.detail.append(f"It holds {tree}, and {count(len(r.pages), 'private page')}.")
    answer.links += map(to_node, path)


# --- ended -------------------------------------------------------------------------------------


def _ended(moment: Moment, r: RequestState, answer: Answer) -> None:
    state = moment.state
    for kind in (ev.RequestFinished, ev.RequestAborted, ev.RequestRefused):
        event = moment.last(r.id, kind)
        if event is None:
            continue
        if isinstance(event, ev.RequestFinished):
            how = f"It {r.status} after {count(event.outputs, 'output token')}: {finish_reason(event, moment.texts)}"
        elif isinstance(event, ev.RequestAborted):
            how = f"It was aborted with {count(len(r.output), 'output token')}; it was {event.was}"
        else:
            unit = "page" if event.reason == "pages" else "token"
            how = f"It was refused: it needs {count(event.needed, unit)}, there are {number(event.available)}"
        if answer.headline:
            answer.detail.append(f"{how}.")
        else:
            answer.headline = f"{request_name(state, r.id)}{how.removeprefix('It')}."
        answer.links.append(to_event(event.seq, "ends"))
    answer.detail.append(_times(moment, r))


def _times(moment: Moment, r: RequestState) -> str:
    """The split of its time; a part that never was is left out."""
    ended = r.arrived if r.ended is None else r.ended
    if r.admitted is None:
        parts = [f"{seconds(ended - r.arrived)} in the queue, never admitted"]
    elif r.first_token is None:
        parts = [f"{seconds(r.admitted - r.arrived)} in the queue", f"{seconds(ended - r.admitted)} in prefill without a first token"]
    else:
        parts = [
            f"{seconds(r.admitted - r.arrived)} in the queue", f"{seconds(r.first_token - r.admitted)} in prefill",
            f"{seconds(ended - r.first_token)} in decode",
        ]  # fmt: skip
    simulated = " (simulated)" if moment.header.clock == "virtual" else ""
    return f"Its time{simulated}: {', '.join(parts)}."
