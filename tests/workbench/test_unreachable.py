"""Blocks whose beginning has left: both folds, the report and explain know them as what they are."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from engine import events as ev
from tests.engine.traffic import Case, play
from tests.workbench.test_player_fold import check
from workbench import report, runner
from workbench.explain import Explainer
from workbench.replay import Replay, fold
from workbench.scenario import load
from workbench.ui import player

HEAD = list(range(1, 17))
ORDERS = ("head-first", "tail-first")


@cache
def run(order: str) -> ev.Trace:
    """Eight pages of four; one opening of sixteen tokens is asked for again and again, and others come between."""
    requests = []
    for i in range(6):
        own = range(100 + 20 * i, 104 + 20 * i) if i % 2 == 0 else range(100 + 20 * i, 114 + 20 * i)
        requests.append({
            "id": f"R{i}", "prompt": [*(HEAD if i % 2 == 0 else []), *own], "max_new_tokens": 2,
            **({"after": f"R{i - 1}"} if i else {"at_step": 1}),
        })  # fmt: skip
    config = {"executor": "puppet", "cache": "blocks", "block_order": order, "page_size": 4, "pages": 8}
    return play(Case(config, requests), fold=True).trace


def lost_at(order: str) -> list[tuple[int, list[int]]]:
    """The unreachable nodes after each event, where that changes."""
    out: list[tuple[int, list[int]]] = []
    replay = Replay()
    for event in run(order):
        replay.append(event)
        lost = [n for n in replay.last.nodes if not replay.last.reachable(n)]
        if not out or out[-1][1] != lost:
            out.append((event.seq, lost))
    return out


def test_only_head_first_leaves_unreachable_blocks() -> None:
    assert lost_at("tail-first") == [(0, [])]
    assert max(len(lost) for _, lost in lost_at("head-first")) > 2


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
@pytest.mark.parametrize("order", ORDERS)
def test_both_folds_agree(order: str) -> None:
    check(run(order))


DRIVER = """
const job = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
(0, eval)(job.script);
const RP = globalThis.RadixPlayer;
const trace = RP.parseJsonl(job.jsonl);
const replay = new RP.Replay(trace);
const next = (state) => { const slot = RP.nextToGo(state); return slot < 0 ? null : state.get(slot, RP.N.ID); };
console.log(JSON.stringify(job.before.map((seq) => next(replay.at(seq)))));
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
@pytest.mark.parametrize("order", ORDERS)
def test_the_player_marks_the_block_that_really_goes_next(order: str) -> None:
    trace = run(order)
    evictions = [e for e in trace if isinstance(e, ev.Eviction)]
    assert len(evictions) > 2
    jsonl = b"\n".join([ev.encode(trace.header), *(ev.encode(e) for e in trace)]).decode()
    job = {"script": player.sources(core=True), "jsonl": jsonl, "before": [e.seq - 1 for e in evictions]}
    done = subprocess.run(["node", "-e", DRIVER], input=json.dumps(job), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout) == [e.ranking[0].node for e in evictions]


@pytest.mark.parametrize("order", ORDERS)
def test_the_state_alone_gives_the_order_of_the_free_queue(order: str) -> None:
    trace = run(order)
    along = -1 if order == "tail-first" else 1
    for eviction in (e for e in trace if isinstance(e, ev.Eviction)):
        nodes = fold(trace.events[: eviction.seq]).nodes.values()
        queue = sorted((n for n in nodes if not n.locks), key=lambda n: (n.joined, along * n.depth))
        assert [n.id for n in queue][: len(eviction.ranking)] == [r.node for r in eviction.ranking]


def test_the_reports_tree_lists_them_and_says_so() -> None:
    built, state = report.build(run("head-first").header, run("head-first")), fold(run("head-first"))
    nodes = list(below(built.tree))
    assert sorted(n.id for n in nodes) == sorted(state.nodes)
    lost = {n for n in state.nodes if not state.reachable(n)}
    assert {n.id for n in nodes if not n.reachable} == state.unreachable() == lost != set()
    assert sum(n.pages for n in nodes) == built.pool.cached
    other = report.build(run("tail-first").header, run("tail-first"))
    assert all(n.reachable for n in below(other.tree))


def below(node: report.TreeNode) -> Iterator[report.TreeNode]:
    for child in node.children:
        yield child
        yield from below(child)


# --- what explain says --------------------------------------------------------------------------


def test_a_block_that_cannot_be_found_says_since_when_and_who_wanted_it() -> None:
    trace = run("head-first")
    explainer = Explainer(trace)
    gone = next(e for e in trace if isinstance(e, ev.NodeEvicted) and e.node == 1)
    wanted = next(e for e in trace if isinstance(e, ev.RequestMatched) and e.seq > gone.seq and e.request == "R2")
    told = explainer.node(wanted.seq - 1, 2)
    assert (
        told.headline.startswith("Node #2 ")
        and "holds 4 tokens and is unreachable; it is the next to be evicted" in told.headline
    )
    assert told.detail[0].startswith(
        f"No look-up can find it since node #1, above it, was evicted at event {gone.seq}; it keeps its 1 page until its turn comes. "
        f"Regretted: R2 wanted 4 tokens of it"
    )
    assert any("below node #1, which is gone" in line for line in told.detail)
    later = explainer.node(len(trace) - 1, 2)
    assert "evicted" in later.headline and later.headline.endswith("; regretted.")
    assert f"No look-up could find it since event {gone.seq}, when what stood above it was evicted." in later.detail


def test_a_miss_on_what_was_left_behind_names_the_beginning_that_went() -> None:
    trace = run("head-first")
    explainer = Explainer(trace)
    gone = next(e for e in trace if isinstance(e, ev.NodeEvicted) and e.node == 1)
    told = explainer.request(len(trace) - 1, "R2")
    assert told.reason == "evicted"
    said = " ".join([told.headline, *told.detail])
    assert (
        f"16 more tokens of it had been stored and could no longer be found once its beginning was evicted at event {gone.seq}"
        in said
    )
    assert "Tokens 4 to 7 became unreachable with node #2" in said
    assert "4 nodes below it can no longer be found." in explainer.event(gone.seq).headline


@pytest.mark.parametrize("order", ORDERS)
def test_every_eviction_and_every_place_in_the_queue_is_told(order: str) -> None:
    trace = run(order)
    explainer = Explainer(trace)
    for eviction in [e for e in trace if isinstance(e, ev.Eviction)]:
        taken = [r for r in eviction.ranking if r.taken]
        first, last = taken[0], taken[-1]
        assert "is the next to be evicted" in explainer.node(eviction.seq - 1, first.node).headline
        told = explainer.event(eviction.seq)
        assert told.table is not None and told.table.title == "lru: who joined the free queue first goes first"
        stays = [r for r in eviction.ranking if not r.taken]
        if stays:
            same = stays[0].key[0] == last.key[0]
            chain = f"it stands {'nearer to' if order == 'tail-first' else 'further from'} the beginning of the same chain than"
            assert any((chain if same else "it joined the free queue after") in line for line in told.detail)


# --- the presets --------------------------------------------------------------------------------


def reused(preset: str, **engine: Any) -> tuple[list[int | None], ev.Trace]:
    """Prompt tokens that each request found, and the trace."""
    asked = load(preset)
    done = runner.run(asked.model_copy(update={"engine": asked.engine.model_copy(update=engine)}), check=True)
    return [r.cached_tokens for r in done.report.requests], done.trace


def test_a_beginning_that_leaves_first_costs_every_later_question_the_whole_handbook() -> None:
    found, trace = reused("branch-lru")
    assert found == [0, 0, 0, 0, 0]
    first = next(e for e in trace if isinstance(e, ev.Eviction))
    assert (first.asked, first.freed) == (1, 1)
    for other in ({"block_order": "tail-first"}, {"cache": "radix"}):
        assert reused("branch-lru", **other)[0] == [0, 0, 32, 0, 32]


def test_the_walkthrough_in_blocks_of_four() -> None:
    assert reused("blocks-walkthrough")[0] == [0, 4, 4]
    assert reused("blocks-walkthrough", cache="radix", page_size=1, pages=32)[0] == [0, 6, 7]
