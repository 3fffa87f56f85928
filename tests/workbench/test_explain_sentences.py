"""One plain sentence for every event kind."""

from __future__ import annotations

from typing import Any

import pytest

from engine import events as ev
from tests.workbench.explaining import TIERS, busy, made
from workbench.explain import Explainer, RunExplainer, sentence
from workbench.replay import NodeState, RequestState, State
from workbench.runner import run
from workbench.scenario import parse

WALK = [
    {"id": "R1", "label": "ask", "tokens": [10, 11, 12, 13], "max_new_tokens": 2, "says": [90, 91]},
    {"id": "R2", "tokens": [10, 11, 20], "says": [92]},
]
SAID = """\
The run starts with 6 free pages of 1 token each.
R1 (ask) arrives with 4 prompt tokens and may answer with up to 2 tokens.
R1 (ask) finds 0 of its 4 prompt tokens in the cache: nothing in the tree begins like it.
4 pages leave the free list for R1.
R1 (ask) is admitted: 0 tokens from the cache, 4 to compute; it needs 5 pages and 6 can be had.
Step 1 is prefill: 4 tokens of R1; 2 pages free.
The forward pass of step 1 begins: 4 tokens of R1.
Step 1 is done after 1 s: 1 new token (90).
R1 (ask) has its first token (90), 1 s after it arrived.
Node #1 is new below the root: it keeps 4 tokens of R1 (ask) in 4 pages.
Node #1 is dated tick 2.
Node #1 is dated tick 3.
Node #1 gets one more lock for R1 (ask) and cannot be evicted.
1 page leaves the free list for R1.
Step 2 is decode: 1 token of R1; 1 page free.
The forward pass of step 2 begins: 1 token of R1.
Step 2 is done after 1 s: 1 new token (91).
Node #2 is new below node #1: it keeps 1 token of R1 (ask) in 1 page.
Node #2 and the node above it are dated tick 4.
Node #1 loses one lock, that of R1 (ask); no lock left on node #1.
R1 (ask) ends after 2 output tokens: that was its limit.
R2 arrives with 3 prompt tokens and may answer with up to 1 token.
R2 finds 2 of its 3 prompt tokens in the cache: the last token must run.
Node #1 is split after 2 tokens: the front becomes node #3, the rest stays node #1.
Node #3 counts a hit and is dated tick 5.
Node #3 gets one more lock for R2 and cannot be evicted.
1 page leaves the free list for R2.
R2 is admitted: 2 tokens from the cache, 1 to compute; it needs 2 pages and 4 can be had.
Step 3 is prefill: 1 token of R2; 0 pages free.
The forward pass of step 3 begins: 1 token of R2.
Step 3 is done after 1 s: 1 new token (92).
R2 has its first token (92), 1 s after it arrived.
Node #4 is new below node #3: it keeps 1 token of R2 in 1 page.
Node #4 and the node above it are dated tick 6.
Node #3 loses one lock, that of R2; no lock left on node #3.
R2 ends after 1 output token: that was its limit.
The run ends: nothing is left to do."""


def said(engine: dict[str, Any], kind: type[ev.Event], *requests: dict[str, Any], texts: dict[str, str] | None = None) -> list[str]:
    """The sentences of one kind in a run."""
    trace, _ = made(engine, *requests)
    trace.header.texts = texts or {}
    explainer = Explainer(trace)
    return [explainer.sentence(e.seq) for e in trace if isinstance(e, kind)]


def test_a_whole_run_event_by_event() -> None:
    trace, explainer = made({"pages": 6}, *WALK)
    assert [explainer.sentence(i) for i in range(len(trace))] == SAID.splitlines()


def test_evictions_and_what_they_take() -> None:
    requests = [{"id": "A", "tokens": "A4"}, {"id": "B", "tokens": "B2"}, {"id": "C", "tokens": "C7"}]
    assert said({"pages": 8}, ev.Eviction, *requests) == ["C needs 5 pages: lru frees 5 of 6 evictable; first node #1, idle for 3 ticks, 0 hits."]
    assert said({"pages": 8}, ev.NodeEvicted, *requests) == ["Node #1 is evicted: its 4 tokens are gone, 4 pages free."]
    assert said({"pages": 8}, ev.NodeTrimmed, *requests) == ["Node #2 loses its last 1 token and keeps 1: 1 page evicted."]
    assert said({"pages": 8}, ev.PageFreed, *requests) == ["4 pages of node #1 are free again.", "1 page of node #2 is free again."]


def test_a_cap_on_the_cache_evicts_for_nobody() -> None:
    assert said({"pages": 8, "cache_pages": 2}, ev.Eviction, {"id": "A", "tokens": "A4"}) == [
        "Needed: 2 pages: lru frees 2 of 4 evictable; first node #1, idle for 0 ticks, 0 hits."
    ]


def test_a_prompt_in_chunks_grows_its_node() -> None:
    assert said({"chunk": 3}, ev.NodeGrown, {"id": "A", "tokens": "A8"}) == [
        "Node #1 grows by 3 tokens as A is computed.", "Node #1 grows by 2 tokens as A is computed."
    ]  # fmt: skip
    assert said({"chunk": 3}, ev.StepFinished, {"id": "A", "tokens": "A8"})[0] == "Step 1 is done after 1 s: no new token."


def test_waiting_retraction_and_coming_back() -> None:
    tight = {"pages": 12, "reserve_start": 0.0, "reserve_min": 0.0}
    pair = [{"id": "R1", "tokens": "A4", "max_new_tokens": 6, "at": 0}, {"id": "R2", "tokens": "B4", "max_new_tokens": 6, "at": 0}]
    assert said(tight, ev.RequestRetracted, *pair) == [
        "R2 goes back to the back of the queue: decode ran out of pages. It gives back 2 private pages and keeps its 3 output tokens; the reserve is now 1."
    ]
    assert said(tight, ev.RequestPassedOver, *pair)[0] == (
        "R2 waits: it needs 6 pages and 0 can be had (the running ones are promised 1 page more than there are)."
    )
    assert said(tight, ev.RequestAdmitted, *pair)[-1] == (
        "R2 is admitted again: 3 tokens recovered, 3 to recompute; it needs 4 pages and 9 can be had."
    )


@pytest.mark.parametrize(
    ("engine", "says"),
    [
        ({"max_running": 1}, "R2 (two) waits: at most 1 request may run at a time."),
        ({"prefill_budget": 9}, "R2 (two) waits: it needs 8 tokens and the step's budget has 1 left."),
        ({"chunk": 8}, "R2 (two) waits: it needs 1 token and the step's chunk has 0 left."),
        ({"pages": 12}, "R2 (two) waits: it needs 9 pages and 3 can be had."),
    ],
)
def test_the_limit_that_holds_a_request(engine: dict[str, Any], says: str) -> None:
    pair = [{"id": "R1", "tokens": "A8", "at": 0}, {"id": "R2", "label": "two", "tokens": "B8", "at": 0}]
    assert said(engine, ev.RequestPassedOver, *pair)[0] == says


def test_refused_with_both_numbers() -> None:
    assert said({"pages": 4, "page_size": 4}, ev.RequestRefused, {"id": "R1", "tokens": "A20"}) == [
        "R1 is refused: it needs 6 pages and the pool has 4 in all."
    ]


def test_the_ways_to_end() -> None:
    assert said({}, ev.RequestFinished, {"id": "R1", "tokens": "A4", "max_new_tokens": 9, "says": [7]}) == ["R1 ends after 1 output token: it had said all."]
    assert said({"pages": 6}, ev.RequestFinished, {"id": "R1", "tokens": "A4", "max_new_tokens": 9}) == [
        "R1 ends after 3 output tokens: there is no room for one token more."
    ]
    failed = {"id": "R1", "tokens": "A4", "fail_at_step": 1}
    error = "RuntimeError: R1 was told to fail at step 1"
    assert said({}, ev.RequestFinished, failed) == [f"R1 ends after 0 output tokens: its forward pass failed ({error})."]
    assert said({}, ev.ExecutorFailed, failed) == [f"The forward pass fails ({error}): R1 ends with an error, the engine goes on."]
    assert said({}, ev.RequestAborted, {"id": "R1", "tokens": "A4", "max_new_tokens": 9, "abort_at_step": 3}) == [
        "R1 is taken back by its sender; it was in decode."
    ]


def test_an_idle_engine_goes_on_by_steps_or_by_seconds() -> None:
    first = {"id": "R1", "tokens": "A4"}
    assert said({}, ev.ClockJumped, first, {"id": "R2", "tokens": "B4", "at_step": 9}) == [
        "The engine is idle and goes on from step 2 to step 9, to the next arrival."
    ]
    assert said({}, ev.ClockJumped, first, {"id": "R2", "tokens": "B4", "at": 9.5}) == ["The engine is idle and goes on from 1 s to 9.5 s, to the next arrival."]


def test_the_queue_in_the_order_of_a_policy() -> None:
    burst = [{"id": f"R{i}", "tokens": t, "at_step": 2} for i, t in enumerate(("B4", "A6", "A5", "C3"), 2)]
    assert said({"policy": "lpm"}, ev.QueueOrdered, {"id": "R1", "tokens": "A8"}, *burst) == [
        "The queue is ordered by lpm: R3, R4, R2 and 1 more; 4 requests wait."
    ]


def test_who_stored_the_same_tokens_first() -> None:
    pair = [{"id": f"R{i}", "tokens": "A6", "max_new_tokens": 2, "at": 0} for i in (1, 2)]
    assert said({}, ev.RequestRemapped, *pair) == [
        "R2 gives up 6 pages from token 0 on: the tree holds the same tokens already, so it goes on with the tree's pages."
    ]


def test_matches_that_end_in_other_ways() -> None:
    def last(engine: dict[str, Any], *requests: dict[str, Any]) -> str:
        return said(engine, ev.RequestMatched, *requests)[-1].partition(": ")[2]

    assert last({}, {"id": "A", "tokens": "A4"}, {"id": "B", "tokens": "A3+B4"}) == "it parts after 3 tokens, where the tree has 259 and it has 1280."
    assert last({}, {"id": "A", "tokens": "A4"}, {"id": "B", "tokens": "A4+B4"}) == "the tree holds nothing that goes on from there."
    assert last({"cache": "off"}, {"id": "A", "tokens": "A4"}) == "the cache is off."
    assert last({}, {"id": "A", "tokens": "A4", "at": 0}, {"id": "B", "tokens": "A4", "at": 0}) == "A is computing the next tokens right now."
    assert last({"page_size": 4}, {"id": "A", "tokens": "A8"}, {"id": "B", "tokens": "A6+B4"}) == "6 matched, 4 reusable because page = 4."
    assert last({"page_size": 4}, {"id": "A", "tokens": "A8"}, {"id": "B", "tokens": "A8"}) == (
        "7 matched, 4 reusable because page = 4 and the last token must run."
    )


TEXTS = {"10": "Where", "11": " is", "12": "\n", "13": "  ", "20": " the", "90": "Here", "91": "!", "92": "?"}


def test_tokens_by_their_text_with_blanks_made_visible() -> None:
    def of(kind: type[ev.Event]) -> list[str]:
        return said({"pages": 6}, kind, *WALK, texts=TEXTS)

    assert of(ev.StepFinished)[0] == "Step 1 is done after 1 s: 1 new token (“Here”)."
    assert of(ev.NodeCreated)[0] == "Node #1 “Where is↵␣␣” is new below the root: it keeps 4 tokens of R1 (ask) in 4 pages."
    assert of(ev.NodeSplit) == ["Node #1 is split after 2 tokens: the front becomes node #3 “Where is”, the rest stays node #1 “↵␣␣”."]


ROUTED = [
    {"id": "R1", "tokens": "A8+B2", "max_new_tokens": 9, "at": 0},
    {"id": "R2", "tokens": "C8+D2", "max_new_tokens": 9, "at": 1},
    {"id": "R3", "tokens": "C8+E2", "at": 2},
]
RULES = {
    "round-robin": (0, "its turn", "The round-robin router takes the replicas in turn, whatever they hold."),
    "least-loaded": (0, "least loaded", "The least-loaded router takes the replica with the fewest requests that have not ended."),
    "power-of-two": (0, "less loaded of 0 and 1", "The power-of-two router draws two replicas and takes the one with fewer requests."),
    "cache-aware": (1, "longest prefix", (
        "The cache-aware router sends a request where most of its prompt was sent before, if that is more than 30 % of it, and else where the "
        "fewest requests are; there it goes too when loads are more than 64 apart and the highest is over 1.5 times the lowest."
    )),
}  # fmt: skip


@pytest.mark.parametrize("router", RULES)
def test_why_a_request_went_to_its_replica(router: str) -> None:
    chosen, reason, rule = RULES[router]
    trace = run(parse({"engine": {"pages": 64, "replicas": 2, "router": router}, "requests": ROUTED}), check=True).trace
    explainer = RunExplainer(trace.header, trace)
    routed = next(e.seq for e in trace if isinstance(e, ev.RequestRouted) and e.request == "R3")
    answer = explainer.ask(routed, {})
    knows = router == "cache-aware"
    assert answer.headline == f"R3 goes to replica {chosen} ({reason}); loads: 1, 1 requests{'; matches: 0, 8 tokens' if knows else ''}."
    assert answer.detail[0] == rule and len(answer.detail) == 1 + knows
    assert answer.table is not None and answer.table.columns == ["replica", "load, requests", *(["believed to hold, tokens"] if knows else [])]
    assert answer.table.rows == ([[0, 1, 0], [1, 1, 8]] if knows else [[0, 1], [1, 1]])
    assert answer.table.taken == [i == chosen for i in range(2)] and [(link.kind, link.id) for link in answer.table.links] == [("replica", 0), ("replica", 1)]
    told = explainer.ask(len(trace) - 1, {"request": "R3"})
    assert f"It went to replica {chosen}: {reason}; it had 1 request then, the others 1." in told.detail and told.table == answer.table


def test_namespaces_and_requests_that_leave_nothing() -> None:
    asked = {"id": "R1", "tokens": "A4", "salt": "x", "store": False, "max_new_tokens": 0}
    assert said({}, ev.RequestArrived, asked) == [
        "R1 arrives with 4 prompt tokens and asks for no answer, in namespace salt x, and leaves nothing in the cache."
    ]
    assert said({}, ev.NodeCreated, asked | {"store": True}) == [
        "Node #1 is new below the root: it keeps 4 tokens of R1 in 4 pages, in namespace salt x."
    ]


LATER: list[tuple[type[ev.Event], dict[str, Any], str]] = [
    (ev.RequestRouted, {"request": "R1", "chosen": 1, "reason": "cache-aware", "loads": [3, 1], "matches": [0, 12]},
     "R1 (ask) goes to replica 1 (cache-aware); loads: 3, 1 requests; matches: 0, 12 tokens."),
    (ev.RequestRouted, {"request": "R1", "chosen": 1, "reason": "least loaded of those that decode", "transferred": 20, "source": 0, "seconds": 0.004},
     "R1 (ask) goes to replica 1 (least loaded of those that decode). The KV of its first 20 tokens came from replica 0, in 4 ms over the link."),
    (ev.RequestPassedOver, {"request": "R1", "limit": "prefix in flight", "needed": 4, "available": 0, "overtaken": 12, "behind": "R0"},
     "R1 (ask) waits: R0 is computing the start they share; later arrivals have computed 12 prompt tokens meanwhile."),
    (ev.RequestPassedOver, {"request": "R1", "limit": "leader room", "needed": 4, "available": 2},
     "R1 (ask) waits: its new prefix needs 4 pages and the tree has room for 2."),
    (ev.RequestFinished, {"request": "R1", "reason": "stop", "outputs": 2, "matched_stop": "\n\n"}, "R1 (ask) ends after 2 output tokens: its stop text “↵↵” came."),
    (ev.RequestFinished, {"request": "R1", "reason": "stop", "outputs": 2, "matched_stop": 91}, "R1 (ask) ends after 2 output tokens: the end token “!” came."),
    (ev.RequestRefused, {"request": "R1", "reason": "positions", "needed": 9000, "available": 8192},
     "R1 (ask) is refused: it needs 9,000 tokens and the model has 8,192 positions."),
    (ev.RequestRefused, {"request": "R1", "reason": "grammar", "needed": 1, "available": 0, "error": "nothing can match"},
     "R1 (ask) is refused: its grammar cannot be used (nothing can match)."),
    (ev.RequestArrived, {"request": "R1", "prompt": [10], "max_new_tokens": 4, "arrived": 0.0, "regex": "[0-9]+"},
     "R1 (ask) arrives with 1 prompt token and may answer with up to 4 tokens, to match “[0-9]+”."),
    (ev.RequestArrived, {"request": "R1", "prompt": [10], "max_new_tokens": 4, "arrived": 0.0, "json_schema": "{}"},
     "R1 (ask) arrives with 1 prompt token and may answer with up to 4 tokens, as JSON by a schema."),
    (ev.RequestFinished, {"request": "R1", "reason": "length", "outputs": 2, "incomplete": True, "still_needed": 3},
     "R1 (ask) ends after 2 output tokens: that was its limit. Its document is not whole; at least 3 tokens more would have made it whole."),
    (ev.QueueOrdered, {"policy": "lpm-as-shipped", "waiting": 200, "head": ["R1"], "keys": [], "fell_back": True, "why": "more than 128 wait"},
     "The queue is ordered by lpm-as-shipped: R1; 200 requests wait. It fell back: more than 128 wait."),
    (ev.NodeDemoted, {"node": 1, "host_pages": [0, 1], "kept": True}, "Node #1 “Where is” is copied to 2 host pages; its device pages stay."),
    (ev.NodeDemoted, {"node": 1, "host_pages": [0, 1]}, "Node #1 “Where is” leaves the device and lies on the host only, in 2 host pages."),
    (ev.NodeEvicted, {"node": 1, "tokens": 2, "pages": []}, "Node #1 “Where is” leaves the host too: its 2 tokens are gone."),
    (ev.NodeRestored, {"node": 1, "pages": [4, 5], "request": "R1"},
     "R1 (ask) has computed node #1 “Where is” again, which lay on the host only: it takes over 2 pages."),
    (ev.RequestMatched, {"request": "R1", "length": 1, "raw_length": 2, "path": [], "stop": "end", "host_length": 1},
     "R1 (ask) finds 1 of its 2 prompt tokens in the cache, 1 more on the host: the tree holds nothing that goes on from there."),
    (ev.RequestAdmitted, {"request": "R1", "node": 1, "length": 1, "first": True, "cached": 1, "computed": 1, "host": 1, "loaded": 1,
                          "load_seconds": 0.002, "recompute_seconds": 0.5},
     "R1 (ask) is admitted: 1 token from the cache, 1 to compute; 1 token of it loaded from the host: 2 ms, where computing takes 500 ms."),
    (ev.RequestAdmitted, {"request": "R1", "node": 0, "length": 0, "first": True, "cached": 0, "computed": 2, "host": 2,
                          "load_seconds": 3.0, "recompute_seconds": 0.5},
     "R1 (ask) is admitted: 0 tokens from the cache, 2 to compute; the host's 2 tokens are computed again: 500 ms, where loading takes 3 s."),
    (ev.NodeRestored, {"node": 1, "pages": [4, 5], "seconds": 0.002, "recompute_seconds": 0.5},
     "Node #1 “Where is” comes back from the host: 2 pages in 2 ms, where computing takes 500 ms."),
    (ev.NodePinned, {"node": 1, "until": 50, "refused": 3}, "Node #1 “Where is” is pinned up to step 50; 3 pages refused, the pin budget is used up."),
    (ev.NodePinned, {"node": 1, "until": 0}, "The pin on node #1 “Where is” is over."),
    (ev.NodePinned, {"node": 0, "until": 0, "refused": 3}, "Nothing is pinned: 3 pages refused, the pin budget is used up."),
    (ev.PageAllocated, {"pages": [1, 2, 3], "owners": ["R1", 1], "counts": [1, 2], "tier": "host"}, "3 pages of the host leave the free list for R1 (1), node #1 (2)."),
    (ev.TokenEmitted, {"request": "R1", "position": 2, "token": 91, "source": "forced"}, "Output token 3 of R1 (ask) is “!”, forced: the mask left only this one."),
    (ev.TokensScored, {"request": "R1", "start": 1, "logprobs": [-0.25, -0.75]}, "Prompt tokens 2 to 3 of R1 (ask) are scored: mean logprob -0.500."),
    (ev.TokensScored, {"request": "R1", "start": 2, "logprobs": [-0.75]}, "Prompt token 3 of R1 (ask) is scored: logprob -0.750."),
    (ev.TokenEmitted, {"request": "R1", "position": 0, "token": 90, "logprob": -0.25}, "Output token 1 of R1 (ask) is “Here”, sampled, logprob -0.250."),
    (ev.GrammarCompiled, {"request": "R1", "seconds": 0.0125, "source": "[0-9]+", "backend": "own", "states": 3},
     "The grammar of R1 (ask) is ready after 12.5 ms: 3 states (own)."),
    (ev.GrammarWaiting, {"request": "R1"}, "R1 (ask) waits for its grammar to be compiled."),
    (ev.GrammarMasked, {"request": "R1", "state": 4, "allowed": 10, "top": [(91, -0.1), (92, -2.0)], "forbidden": 1},
     "The grammar of R1 (ask) allows 10 tokens in state 4; the model's first choice was “!”, 1 of its top 2 are forbidden."),
    (ev.GrammarJumped, {"request": "R1", "state": 1, "target": 2, "run": '": "', "before": [90], "after": [90, 91], "pages": [3]},
     'R1 (ask) jumps over “": "” without a pass: 1 token before, 2 after re-tokenisation, 1 page given back.'),
    (ev.GrammarVerified, {"request": "R1", "drafted": 4, "accepted": 3}, "The model agrees with 3 of 4 drafted tokens of R1 (ask)."),
    (ev.GrammarRolledBack, {"request": "R1", "tokens": [91, 92], "pages": [3]}, "R1 (ask) takes back 2 drafted tokens (“!?”) and 1 page."),
    (ev.InvariantBroken, {"what": "page 3 has two owners", "page": 3, "owners": ["R1", 1], "last_owners": ["R1", 1]},
     "The invariant is broken (page 3): page 3 has two owners; it was last held by R1 and node #1."),
    (ev.RunEnded, {"stopped": True}, "The run ends: it was stopped."),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "fields", "says"), LATER, ids=lambda v: v.__name__ if isinstance(v, type) else "")
def test_sentences_of_what_small_runs_do_not_show(kind: type[ev.Event], fields: dict[str, Any], says: str) -> None:
    state = State()
    state.requests["R1"] = RequestState("R1", [10, 11], 4, 0.0, label="ask")
    state.nodes[1] = NodeState(1, 0, None, 0, 2, (("R1", 0, 2),), [0, 1])
    assert sentence(kind(seq=1, t=0.0, step=1, **fields), state, TEXTS) == says


def test_every_kind_of_the_contract_has_its_sentence() -> None:
    from workbench.explain.sentences import SAY

    assert set(SAY) == set(ev.KINDS.values()) and len(SAY) == 43


@pytest.mark.parametrize("more", [{}, TIERS], ids=["one tier", "two tiers"])
def test_sentences_of_a_busy_run_are_sentences(more: dict[str, Any]) -> None:
    trace = busy(3, **more)
    explainer = Explainer(trace)
    for i in range(len(trace)):
        line = explainer.sentence(i)
        assert line[-1] == "." and ".." not in line and "None" not in line and "  " not in line, line
