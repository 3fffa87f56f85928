"""Answers about requests, nodes, pages and events at any moment of a run."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from engine import events as ev
from engine.cache.eviction import POLICIES
from tests.workbench.explaining import TIERS, busy, made
from workbench.explain import Explainer, ExplainError, plain, rankings
from workbench.explain.remembered import Remembered
from workbench.replay import State, fold, pack

PAIR = [
    {"id": "R1", "tokens": "A6", "max_new_tokens": 4, "at": 0, "says": [901, 902, 903, 904]},
    {"id": "R2", "label": "big", "tokens": "B6", "max_new_tokens": 4, "at": 0, "says": [905, 906, 907, 908]},
    {"id": "R3", "tokens": "C2", "at": 0, "says": [909]},
]
TIGHT = {"pages": 12, "reserve_start": 1.0}


def test_a_waiting_request_says_why_and_where_it_stands() -> None:
    _, explainer = made(TIGHT, *PAIR)
    answer = explainer.request(7, "R2")
    assert answer.headline == "R2 (big) waits: it needs 10 pages and 2 can be had."
    spoken_for = "6 pages are free and 0 can be evicted, but 4 of them are promised to what those that run may still produce, or part of what it would reuse."
    assert answer.detail == ["It is first of two in the queue: first come, first served.", spoken_for, "R1 runs now."]
    assert explainer.event(7).detail == ["Short by 8 pages.", spoken_for]
    assert explainer.request(7, "R3").headline == "R3 waits: R2 is before it and it needs 10 pages and 2 can be had."
    assert explainer.request(3, "R3").headline == "R3 waits: the next step has not been planned yet."
    assert explainer.request(0, "R3").headline == "R3 has not arrived yet; it does at event 3."


def test_overtaken_by_how_many_tokens() -> None:
    requests = [
        {"id": "R0", "tokens": "A8"}, {"id": "R1", "tokens": "Z8", "at_step": 2},
        *({"id": f"H{i}", "tokens": f"A8+B{i}", "at_step": 2} for i in (1, 2, 3)),
    ]  # fmt: skip
    trace, explainer = made({"policy": "lpm", "max_running": 1}, *requests)
    over = [e for e in trace if isinstance(e, ev.RequestAdmitted) and e.request == "H3"][-1]
    last = max(e.seq for e in trace if isinstance(e, ev.StepFinished) and e.step == over.step)
    assert "Later arrivals have computed 3 prompt tokens since it came." in explainer.request(last, "R1").detail
    assert "Later arrivals computed 3 prompt tokens while it waited." in explainer.event(
        next(e.seq for e in trace if isinstance(e, ev.RequestAdmitted) and e.request == "R1")
    ).detail


def test_a_waiting_request_says_its_place_and_its_key() -> None:
    first = [{"id": "W1", "tokens": "A8"}, {"id": "W2", "tokens": "B6"}]
    burst = [
        {"id": f"R{i}", "tokens": tokens, "at_step": 3, "max_new_tokens": 6}
        for i, tokens in enumerate(("C4", "B6+D2", "A8+E2", "A8+F2", "A8+G2"), 1)
    ]  # fmt: skip
    trace, explainer = made({"policy": "lpm", "max_running": 1}, *first, *burst)
    order = next(e for e in trace if isinstance(e, ev.QueueOrdered))
    assert order.head == ["R3", "R4", "R5", "R2", "R1"] and order.keys == [-8, -8, -8, -6, 0]

    def place(request: str, seq: int = order.seq) -> str:
        return explainer.request(seq, request).detail[0]

    assert place("R3") == "It is first of five in the queue: longest prefix first, 8 tokens found."
    assert place("R5") == "It is third of five in the queue: longest prefix first, 8 tokens found; R3 and R4 have the same and stand before it."
    assert place("R2") == "It is fourth of five in the queue: longest prefix first puts R3, R4 and R5 (8 tokens found each) before it (6 tokens found)."
    assert place("R1") == (
        "It is fifth of five in the queue: longest prefix first puts R3 (8 tokens found), R4 (8 tokens found), R5 (8 tokens found) "
        "and 1 more before it (0 tokens found)."
    )
    admitted = next(e.seq for e in trace if isinstance(e, ev.RequestAdmitted) and e.request == "R4")
    assert place("R2", admitted) == "It is second of three in the queue: longest prefix first puts R5 (8 tokens found) before it (6 tokens found)."
    assert explainer.request(admitted - 4, "R1").headline.startswith("R1 waits: R")
    arrived = next(e.seq for e in trace if isinstance(e, ev.RequestArrived) and e.request == "R1")
    assert place("R1", arrived) == "It is first of one in the queue: longest prefix first."


def test_who_came_after_the_queue_was_ordered_has_no_key_yet() -> None:
    requests = [
        {"id": "R0", "tokens": "A8", "max_new_tokens": 9}, *({"id": f"R{i}", "tokens": f"{'BCD'[i - 1]}2", "at_step": 2} for i in (1, 2)),
        {"id": "R3", "tokens": "D2", "at_step": 5},
    ]  # fmt: skip
    trace, explainer = made({"policy": "lpm", "max_running": 1}, *requests)
    arrived = next(e.seq for e in trace if isinstance(e, ev.RequestArrived) and e.request == "R3")
    assert explainer.request(arrived, "R3").detail[0] == (
        "It is third of three in the queue; longest prefix first: it joined after the queue was last put in order."
    )


BURST = [{"id": "R0", "tokens": "A8", "max_new_tokens": 9}, *({"id": f"R{i}", "tokens": t, "at_step": 2} for i, t in enumerate(("B40+C2", "B40+D2"), 1))]


@pytest.mark.parametrize(
    ("engine", "says"),
    [
        ({"policy": "lpm", "cache": "off"}, "longest prefix first keeps the queue's own order, because the cache is off, so nobody's prefix is longer."),
        ({"policy": "lpm", "in_batch": "sort"}, "longest prefix first puts R1 (0 tokens found) before it (behind one that computes the same start)."),
        ({"policy": "lof"}, "longest output first, up to 1 output token; R1 has the same and stands before it."),
        ({"policy": "priority"}, "highest priority first, priority 0; R1 has the same and stands before it."),
    ],
)
def test_every_policy_tells_its_key(engine: dict[str, Any], says: str) -> None:
    trace, explainer = made({"max_running": 1, "pages": 256, **engine}, *BURST)
    planned = next(e.seq for e in trace if isinstance(e, ev.StepPlanned) and e.waiting == 2)
    assert explainer.request(planned, "R2").detail[0] == f"It is second of two in the queue: {says}"
    order = next((e for e in trace if isinstance(e, ev.QueueOrdered)), None)
    assert order is None or len(explainer.event(order.seq).table.rows) == 2  # type: ignore[union-attr]


def test_what_a_run_came_to() -> None:
    trace, explainer = made(TIGHT, *PAIR)
    answer = explainer.event(len(trace) - 1)
    assert answer.headline == "The run is over: 0 of 14 prompt tokens came from the cache (0 %)."
    assert answer.table is not None and answer.table.rows == [
        ["R1", 6, 0, "never seen", "1 s"], ["R2", 6, 0, "never seen", "5 s"], ["R3", 2, 0, "never seen", "6 s"],
    ]  # fmt: skip
    cycle = [{"id": f"R{i}", "tokens": f"{'ABCABC'[i]}8"} for i in range(6)]
    trace, explainer = made({"pages": 20}, *cycle)
    end = explainer.event(len(trace) - 1)
    evictions = [e for e in trace if isinstance(e, ev.Eviction)]
    assert end.detail == [f"{len(evictions)} evictions; 3 of them took what was wanted again (regretted)."]
    assert [row[3] for row in end.table.rows] == ["never seen"] * 3 + ["evicted"] * 3  # type: ignore[union-attr]
    trace, explainer = made({"pages": 4}, {"id": "R1", "tokens": "A9"})
    assert explainer.event(len(trace) - 1).headline == "The run ends: nothing is left to do.", "all were refused"


def test_a_step_says_who_was_left_out_and_for_whose_prefill() -> None:
    requests = [{"id": "R1", "tokens": "A4", "max_new_tokens": 8, "at_step": 0}, {"id": "R2", "tokens": "B12", "max_new_tokens": 2, "at_step": 3}]
    trace, explainer = made({"chunk": 4}, *requests)
    chunks = [e for e in trace if isinstance(e, ev.StepPlanned) and e.members == ["R2"] and e.prefills]
    assert len(chunks) == 3
    for e in chunks:
        assert explainer.event(e.seq).detail == ["Stalled: R1 would decode, but the prefill of R2 runs instead."]
    first = next(e for e in trace if isinstance(e, ev.StepPlanned))
    assert explainer.event(first.seq).detail == []


def test_the_time_to_first_token_is_split() -> None:
    trace, explainer = made(TIGHT, *PAIR)
    event = next(e for e in trace if isinstance(e, ev.RequestFirstToken) and e.request == "R2")
    assert explainer.event(event.seq).detail == ["Of that (simulated): 4 s in the queue and 1 s in prefill, for 6 tokens computed and 0 from the cache."]


def test_a_running_request_says_what_it_holds() -> None:
    trace, explainer = made({}, {"id": "R1", "tokens": "A6", "max_new_tokens": 3})
    prefill, decode = (e.seq for e in trace if isinstance(e, ev.StepPlanned) and e.step < 3)
    assert explainer.request(prefill, "R1").detail[1:] == ["It is in prefill: 0 of 6 tokens written.", "It holds no page in the tree, and 6 private pages."]
    assert explainer.request(decode, "R1").detail[1:] == [
        "It is in decode: 1 output token of at most 3.", "It holds 6 pages in the tree, locked down to node #1, and 1 private page.",
    ]  # fmt: skip


def test_an_ended_request_says_how_and_where_its_time_went() -> None:
    trace, explainer = made(TIGHT, *PAIR)
    assert explainer.request(len(trace) - 1, "R2").detail == [
        "Prompt of 6 tokens: 0 from the cache, 6 to compute.",
        "It finished after 4 output tokens: that was its limit.",
        "Its time (simulated): 4 s in the queue, 1 s in prefill, 4 s in decode.",  # R3's prefill holds it up for one step
    ]
    trace, explainer = made({"pages": 4}, {"id": "R1", "tokens": "A9"}, {"id": "R2", "tokens": "B3", "abort_at_step": 1, "at": 0})
    assert explainer.request(len(trace) - 1, "R1").headline == "R1 was refused: it needs 10 pages, there are 4."
    gone = explainer.request(len(trace) - 1, "R2")
    assert gone.headline == "R2 was aborted with 0 output tokens; it was waiting."
    assert gone.detail == ["Its time (simulated): 0 s in the queue, never admitted."]


def test_after_a_retraction_what_was_recovered_and_recomputed() -> None:
    pair = [{"id": "R1", "tokens": "A4", "max_new_tokens": 6, "at": 0}, {"id": "R2", "tokens": "B4", "max_new_tokens": 6, "at": 0}]
    trace, explainer = made({"pages": 12, "reserve_start": 0.0, "reserve_min": 0.0}, *pair)
    answer = explainer.request(len(trace) - 1, "R2")
    assert answer.headline == "R2 found again 3 of its 7 tokens: 1 more token of it had been stored and was evicted at event 43 for R1."
    assert "Prompt of 4 tokens: 0 from the cache, 4 to compute; after retraction 3 recovered, 3 recomputed." in answer.detail
    back = next(e.seq for e in trace if isinstance(e, ev.RequestRetracted))
    assert explainer.request(back, "R2").headline == "R2 waits: decode ran out of pages and sent it back."
    told = explainer.event(back)
    assert told.table is not None and told.table.rows == [["R2", 3, 4, 0], ["R1", 3, 4, 0]] and told.table.taken == [True, False]
    assert told.detail == ["R1 stays: it has produced as many, and ties go to the longest prompt, then the latest arrival."]


LEAF = {"pages": 10, "eviction_unit": "leaf"}
FOUR = [
    {"id": "A", "tokens": "A4", "label": "first", "says": [901]}, {"id": "H", "tokens": "C3", "says": [902]},
    {"id": "B", "tokens": "B6", "says": [903]}, {"id": "C", "tokens": "A4", "at_step": 8, "says": [901]},
]  # fmt: skip


def test_a_gone_node_says_why_it_went_for_whom_and_that_it_was_regretted() -> None:
    trace, explainer = made(LEAF, *FOUR)
    answer = explainer.node(len(trace) - 1, 1)
    assert answer.headline == "Node #1 was evicted at event 26 for B; regretted."
    assert answer.detail == [
        "It was number 1 in the ranking of lru: key 2, idle for 3 ticks, 0 hits, 3 ticks old.",
        "Node #2 stays: it was used 2 ticks later than node #1, the last to go.",
        "Regretted: C wanted 3 tokens of it 5 steps later, at event 39.",
        "Tokens 0 to 3 of its path: 256 257 258 259",
        "Written by A (first), in 4 pages below the root.",
    ]
    assert answer.table is not None
    assert answer.table.rows == [["#1", "2", 4, 3, 0, 4], ["#2", "4", 3, 1, 0, 0]] and answer.table.taken == [True, False]
    assert "Nobody wanted it again so far in this trace." in explainer.node(len(trace) - 1, 2).detail


def test_the_eviction_itself_says_what_lost_and_by_how_much() -> None:
    _, explainer = made(LEAF, *FOUR)
    answer = explainer.event(25)
    assert answer.headline == "B needs 3 pages: lru frees 4 of 7 evictable; first node #1, idle for 3 ticks, 0 hits."
    assert answer.detail == ["Node #2 stays: it was used 2 ticks later than node #1, the last to go.", "Regretted: node #1 was wanted again."]


def test_a_live_node_says_what_it_holds_who_uses_it_and_when_it_goes() -> None:
    trace, explainer = made({}, {"id": "R1", "tokens": "A4", "says": [901]}, {"id": "R2", "tokens": "A4+B4", "max_new_tokens": 2, "says": [902, 903]})
    running = next(e.seq for e in trace if isinstance(e, ev.StepPlanned) and e.mode == "decode")
    answer = explainer.node(running, 1)
    assert answer.headline == "Node #1 holds 4 tokens and is locked by R2."
    assert answer.detail[-1] == "1 hit; last used 0 ticks ago, stored 3 ticks ago."
    end = len(trace) - 1
    assert explainer.node(end, 1).headline == "Node #1 holds 4 tokens and is not locked, but 1 node below it goes first."
    assert explainer.node(end, 3).headline == "Node #3 holds 1 token and is the next to be evicted."
    assert explainer.node(0, 3).headline.startswith("Node #3 does not exist yet; event ")
    assert explainer.node(end, 0).headline == "The root holds no tokens; 1 branch begins here."


def test_a_page_says_who_holds_it_and_who_held_it_before() -> None:
    _, explainer = made(LEAF, *FOUR)
    answer = explainer.page(10, 0)
    assert answer.headline == "Page 0 is held by node #1 since event 9 (step 1)."
    assert answer.detail == [
        "It holds token 0 of the path: 256", "A (first) held it from event 3 to event 9.", "At event 27 it goes to the free list.",
    ]  # fmt: skip
    assert explainer.page(10, 9).headline == "Page 9 is free and was never used."


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda x: x.event(-1), "seq: must be 0 to"),
        (lambda x: x.event(10**6), "seq: must be 0 to"),
        (lambda x: x.request(0, "X"), "request: 'X' is no request of this run"),
        (lambda x: x.node(0, 99), "node: 99 is no node of this run"),
        (lambda x: x.page(0, 12), "page: must be 0 to 11; got 12"),
    ],
)
def test_what_the_trace_does_not_hold_is_refused_by_name(ask: object, says: str) -> None:
    _, explainer = made(TIGHT, *PAIR)
    with pytest.raises(ExplainError, match=says):
        ask(explainer)  # type: ignore[operator]


@pytest.mark.parametrize("more", [{}, TIERS, TIERS | {"host_policy": "write-back"}], ids=["one tier", "write-through", "write-back"])
@pytest.mark.parametrize("page", [1, 4])
def test_every_question_has_an_answer_at_every_moment(page: int, more: dict[str, Any]) -> None:
    trace = busy(5, page, **more)
    explainer, state = Explainer(trace), fold(trace.events)
    chance = random.Random(page)
    nodes = [*state.nodes, *state.gone]
    for seq in range(0, len(trace), 2):
        for answer in (
            explainer.event(seq), explainer.request(seq, chance.choice(list(state.requests))),
            explainer.node(seq, chance.choice(nodes)), explainer.page(seq, chance.randrange(state.pages)),
        ):  # fmt: skip
            assert answer.headline[-1] == "." and "None" not in plain(answer), plain(answer)


def test_a_live_run_is_explained_as_the_whole_trace_is() -> None:
    trace = busy(2)
    whole, live = Explainer(trace), Explainer([], trace.header, every=64)
    for i in range(0, len(trace), 97):
        live.extend(trace.events[i : i + 97])
    chance = random.Random(1)
    for seq in chance.sample(range(len(trace)), 60):
        assert live.event(seq) == whole.event(seq)
        assert live.request(seq, "R3") == whole.request(seq, "R3")


@pytest.mark.parametrize("more", [{}, TIERS], ids=["one tier", "two tiers"])
@pytest.mark.parametrize("seed", range(3))
def test_evicted_is_said_exactly_where_a_longer_start_had_once_been_in_the_tree(seed: int, more: dict[str, Any]) -> None:
    trace = busy(seed, 1 if seed else 4, **more)
    explainer, state, ever = Explainer(trace), State(), set()
    for event in trace:
        if isinstance(event, ev.RequestMatched):
            r = state.requests[event.request]
            ids = (r.prompt + r.output)[:-1]
            known = max((n for n in range(1, len(ids) + 1) if (r.namespace, tuple(ids[:n])) in ever), default=0)
            gain = known // state.page_size * state.page_size - event.length - event.host_length
            reason = explainer.event(event.seq).reason
            assert (reason == "evicted") <= (gain > 0)
            assert (gain > 0) <= (reason in ("evicted", "in flight", "namespace", "not kept")), (event, reason)
        state.apply(event)
        if isinstance(event, ev.NodeCreated | ev.NodeGrown):
            ids = state.sequence(event.request, 0, event.stop)
            space = state.requests[event.request].namespace
            ever |= {(space, tuple(ids[:n])) for n in range(event.start + 1, event.stop + 1)}


@pytest.mark.parametrize("more", [{}, TIERS, TIERS | {"host_policy": "write-back"}], ids=["one tier", "write-through", "write-back"])
def test_the_leaf_said_to_be_next_is_the_one_that_goes(more: dict[str, Any]) -> None:
    trace = busy(1, **more)
    explainer = Explainer(trace)
    evictions = [e for e in trace if isinstance(e, ev.Eviction) and e.ranking]
    assert len(evictions) > 20
    for e in evictions:
        assert explainer.node(e.seq - 1, e.ranking[0].node).headline.endswith("is the next to be evicted.")


@pytest.mark.parametrize("policy", sorted(set(POLICIES) & set(rankings.RULES)))
def test_the_order_of_every_known_policy_is_the_engine_s(policy: str) -> None:
    requests = [
        {"id": f"R{i}", "tokens": f"{'ABCD'[i % 4]}{4 + i % 5}+{chr(ord('E') + i % 20)}{2 + i % 4}", "max_new_tokens": 3, "at_step": i, "priority": i * i % 3} for i in range(50)
    ]
    trace, explainer = made({"pages": 40, "max_running": 3, "eviction": policy}, *requests)
    evictions = [e for e in trace if isinstance(e, ev.Eviction) and e.ranking]
    assert len(evictions) > 10
    for e in evictions:
        assert explainer.node(e.seq - 1, e.ranking[0].node).headline.endswith("is the next to be evicted.")


A, B = (ev.Ranked(node=n, key=[], tokens=t, age=a, hits=h) for n, t, a, h in ((1, 5, 9, 1), (2, 3, 4, 3)))


@pytest.mark.parametrize(
    ("policy", "keys", "stays", "says"),
    [
        ("lru", ([3], [8]), B, "it was used 5 ticks later than node #1, the last to go"),
        ("mru", ([-8], [-3]), A, "it was used 5 ticks earlier than node #2, the last to go"),
        ("lfu", ([1, 3], [3, 8]), B, "it has 3 hits against the 1 of node #1, the last to go"),
        ("lfu", ([1, 3], [1, 8]), B, "it was used 5 ticks later than node #1, the last to go"),
        ("fifo", ([1], [2]), B, "it was stored later than node #1, the last to go"),
        ("filo", ([-2], [-1]), A, "it was stored earlier than node #2, the last to go"),
        ("slru", ([0, 3], [1, 8]), B, "it is protected by 3 hits, unlike node #1, the last to go, with 1"),
        ("size", ([-5, 3], [-3, 8]), B, "it has 3 tokens against the 5 of node #1, the last to go"),
        ("belady", ([-9], [-7]), B, "the next request that runs through it comes sooner in the file than that of node #1, the last to go, if any"),
        ("priority", ([0, 3], [2, 1]), B, "a more important request stored it than node #1, the last to go"),
        ("lru", ([3], [3]), B, "its key is that of node #1, the last to go, and it was created later"),
    ],
)
def test_what_sets_the_one_that_stays_apart(policy: str, keys: tuple[list[int], list[int]], stays: ev.Ranked, says: str) -> None:
    last = A if stays is B else B
    moment = made({}, {"tokens": "A3"})[1]._moment(0)
    ranking = [msgspec.structs.replace(last, key=keys[0], taken=last.tokens), msgspec.structs.replace(stays, key=keys[1])]
    event = ev.Eviction(seq=0, t=0, step=1, asked=1, freed=1, unit="page", policy=policy, locked=0, evictable=2, ranking=ranking)
    assert rankings.margin(event, moment) == f"Node #{stays.node} stays: {says}."


@pytest.mark.parametrize("more", [{}, TIERS], ids=["one tier", "two tiers"])
def test_pages_are_told_as_the_state_has_them(more: dict[str, Any]) -> None:
    trace = busy(4, **more)
    explainer, state = Explainer(trace), State()
    for event in trace:
        state.apply(event)
        if event.commit and event.seq % 5 == 0:
            for page, owner in enumerate(state.owners):
                held = "is free" if owner is None else f"is held by {f'node #{owner}' if isinstance(owner, int) else owner} "
                assert explainer.page(event.seq, page).headline.startswith(f"Page {page} {held}")


def test_what_is_remembered_against_plain_sets() -> None:
    chance = random.Random(0)
    tree, ever = Remembered(), {}
    for seq in range(400):
        ids = [chance.randint(1, 3) for _ in range(chance.randint(1, 8))]
        start = next((n for n in range(len(ids)) if tuple(ids[: n + 1]) not in ever), len(ids))
        gone = None
        if start == len(ids):
            start, gone = chance.randrange(len(ids)), (seq, 1)
        tree.mark(pack(ids), start, gone=gone)
        ever |= {tuple(ids[:n]): gone for n in range(start + 1, len(ids) + 1)}
        ask = [chance.randint(1, 3) for _ in range(8)]
        known = next((n for n in range(8) if tuple(ask[: n + 1]) not in ever), 8)
        found = tree.find(pack(ask))
        assert (found[-1][2] if found else 0) == known
        told = {i: (g.seq, g.node) for g in tree.gone(pack(ask), 0) for i in range(g.start, g.stop)}
        assert told == {n: ever[tuple(ask[: n + 1])] for n in range(known) if ever[tuple(ask[: n + 1])] is not None}


def test_a_trace_without_rankings_is_explained_as_far_as_it_goes() -> None:
    trace, _ = made(LEAF, *FOUR)
    events = [e for e in trace if not isinstance(e, ev.Eviction)]
    events = [msgspec.structs.replace(e, seq=i) for i, e in enumerate(events)]
    explainer = Explainer(events, trace.header)
    answer = explainer.node(len(events) - 1, 1)
    assert answer.headline == "Node #1 was evicted at event 25; regretted." and answer.table is None
    assert answer.detail[0] == "The trace does not hold the ranking behind it."
    assert explainer.event(25).headline == "Node #1 is evicted: its 4 tokens are gone, 4 pages free."
    assert "evicted at event 25." in explainer.request(len(events) - 1, "C").headline
