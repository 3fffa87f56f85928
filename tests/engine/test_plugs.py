"""Functions that a caller brings take the place of the engine's own; wrong ones fail by name, and the tree stays whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from engine import Engine, EngineConfig, PlugError, Plugs
from engine import events as ev
from engine.config import ConfigError
from engine.engine import InvariantError
from engine.plugs import FIRST_HASH, Running, TreeNode, Waiting
from workbench.explain import Explainer
from workbench.replay import fold

PROMPTS = [[10, 11, 12, 13, 14, 15, 20, 21], [10, 11, 12, 13, 14, 15, 30, 31], [10, 11, 12, 13, 14, 15, 20, 40]]


def right_match(root: TreeNode, tokens: list[int]) -> tuple[TreeNode, int]:
    node, known = root, 0
    while known < len(tokens) and tokens[known] in node.children:
        node = node.children[tokens[known]]
        for token in node.tokens:
            if known == len(tokens) or tokens[known] != token:
                return node, known
            known += 1
    return node, known


def served(plugs: Plugs, prompts: list[list[int]], **knobs: Any) -> Engine:
    config = EngineConfig(**({"executor": "puppet", "pages": 64} | knobs))
    engine = Engine(config=config, check=True, plugs=plugs)
    before: str | None = None
    for i, prompt in enumerate(prompts):
        when: dict[str, Any] = {} if before is None else {"after": before}
        before = engine.submit(prompt, id=f"R{i + 1}", max_new_tokens=1, **when)
    for _ in engine.run():
        pass
    return engine


def cached(engine: Engine) -> list[int | None]:
    return [e.cached for e in engine.trace.events if isinstance(e, ev.RequestAdmitted)]


def said(engine: Engine) -> dict[str, list[int]]:
    return {name: request.output for name, request in fold(engine.trace.events).requests.items()}


def kinds(engine: Engine, kind: type[ev.Event]) -> Iterator[Any]:
    return (e for e in engine.trace.events if isinstance(e, kind))


def test_a_brought_match_that_is_right_makes_the_engines_own_trace() -> None:
    own, brought = served(Plugs(), PROMPTS), served(Plugs(match=right_match), PROMPTS)
    assert cached(brought) == cached(own) == [0, 6, 7]
    assert brought.trace.events == own.trace.events


def test_a_match_that_claims_too_much_is_noticed_by_the_pages() -> None:
    def greedy(root: TreeNode, tokens: list[int]) -> tuple[TreeNode, int]:
        node, _ = right_match(root, tokens)
        return node, min(node.depth + len(node.tokens), len(tokens)) if node is not root else 0

    with pytest.raises(InvariantError, match="WrongSlot: R2: position 6 should hold id 30"):
        served(Plugs(match=greedy), PROMPTS)


def test_a_match_that_claims_too_little_only_costs_computing() -> None:
    engine = served(Plugs(match=lambda root, tokens: (root, 0)), PROMPTS)
    assert cached(engine) == [0, 0, 0]
    assert [m.stop for m in kinds(engine, ev.RequestMatched)] == ["no child", "brought", "brought"]
    second = next(m for m in kinds(engine, ev.RequestMatched) if m.request == "R2")
    assert "so says the look-up that was brought" in Explainer(engine.trace).sentence(second.seq)
    assert Explainer(engine.trace).request(second.seq, "R2").reason == "brought"
    assert said(engine) == said(served(Plugs(), PROMPTS))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (lambda root, tokens: None, "return the deepest node reached and how many tokens"),
        (lambda root, tokens: (root, 3), r"looking up 10 11 12 13 14 15 20, it says that 3 tokens are known and end at the root"),
        (lambda root, tokens: (root, 99), r"99 tokens are known, of the 7 that it was given"),
        (lambda root, tokens: (next(iter(root.children.values()), root), 0), r"that node begins after 0 tokens and holds 8"),
    ],
)
def test_a_match_that_is_no_place_in_the_tree_is_named(given: Any, said: str) -> None:
    with pytest.raises(PlugError, match=said):
        served(Plugs(match=given), PROMPTS)


def test_a_brought_eviction_chooses_the_leaf_and_is_told_as_own() -> None:
    rows = [[100 * i + k for k in range(8)] for i in (1, 2, 3)]
    knobs = {"pages": 20}
    newest = served(Plugs(eviction=lambda node: -node.last_used), rows, **knobs)
    oldest = served(Plugs(eviction=lambda node: (node.last_used,)), rows, **knobs)
    assert next(kinds(newest, ev.Eviction)).policy == "own"
    gone = [{e.node for e in engine.trace.events if isinstance(e, (ev.NodeEvicted, ev.NodeTrimmed))} for engine in (newest, oldest)]
    assert gone == [{2}, {1}]
    assert newest.trace.header.config["eviction"] == "own"
    assert list(newest.trace.header.plugs) == ["eviction: <lambda>"]


def test_an_eviction_key_that_is_no_number_is_named() -> None:
    with pytest.raises(PlugError, match="eviction: 'old' is no key"):
        served(Plugs(eviction=lambda node: "old"), PROMPTS)


def test_a_brought_hash_sees_its_parent_its_tokens_and_its_salt() -> None:
    seen = []

    def hasher(parent: int, tokens: list[int], salt: Any) -> int:
        seen.append((parent, tuple(tokens), salt))
        return hash((parent, tuple(tokens), salt))

    engine = served(Plugs(hasher=hasher), PROMPTS, cache="blocks", page_size=2)
    assert cached(engine) == cached(served(Plugs(), PROMPTS, cache="blocks", page_size=2))
    assert (FIRST_HASH, (10, 11), None) in seen
    assert any(parent == hash((FIRST_HASH, (10, 11), None)) and tokens == (12, 13) for parent, tokens, _ in seen)


def test_a_brought_hash_keeps_the_salt_along_the_chain() -> None:
    salts = set()

    def hasher(parent: int, tokens: list[int], salt: Any) -> int:
        salts.add(salt)
        return hash((parent, tuple(tokens), salt))

    engine = Engine(config=EngineConfig(executor="puppet", pages=32, cache="blocks", page_size=2), plugs=Plugs(hasher=hasher))
    engine.submit(PROMPTS[0], id="A", max_new_tokens=1, namespace=("tenant", None, None))
    for _ in engine.run():
        pass
    assert salts == {("tenant", None, None)}


def test_a_brought_order_is_followed_and_told() -> None:
    def longest_prompt(waiting: Waiting) -> int:
        return -waiting.prompt

    engine = Engine(config=EngineConfig(executor="puppet", pages=64, max_running=1), plugs=Plugs(order=longest_prompt))
    for i, length in enumerate((3, 9, 6)):
        engine.submit([1000 * (i + 1) + k for k in range(length)], id=f"R{i + 1}", max_new_tokens=1)
    for _ in engine.run():
        pass
    assert [e.request for e in kinds(engine, ev.RequestAdmitted)] == ["R2", "R3", "R1"]
    assert {e.policy for e in kinds(engine, ev.QueueOrdered)} == {"own"}


def test_a_brought_order_knows_how_often_a_request_was_left_waiting() -> None:
    waits: dict[str, list[int]] = {}

    def order(waiting: Waiting) -> int:
        waits.setdefault(waiting.id, []).append(waiting.waits)
        return waiting.arrived

    engine = Engine(config=EngineConfig(executor="puppet", pages=64, max_running=1), plugs=Plugs(order=order))
    for i in range(3):
        engine.submit([1000 * (i + 1) + k for k in range(4)], id=f"R{i + 1}", max_new_tokens=1)
    for _ in engine.run():
        pass
    assert waits["R3"] == list(range(len(waits["R3"])))
    assert len(waits["R1"]) < len(waits["R3"])


def test_a_brought_admission_rule_replaces_the_reserve() -> None:
    def one_at_a_time(waiting: Waiting, running: list[Running]) -> bool:
        return not running

    engine = Engine(config=EngineConfig(executor="puppet", pages=256), plugs=Plugs(admit=one_at_a_time), check=True)
    for i in range(3):
        engine.submit([1000 * (i + 1) + k for k in range(4)], id=f"R{i + 1}", max_new_tokens=4)
    for _ in engine.run():
        pass
    admitted = [e.step for e in kinds(engine, ev.RequestAdmitted)]
    finished = [e.step for e in kinds(engine, ev.RequestFinished)]
    assert admitted[1] > finished[0] and admitted[2] > finished[1]


def test_an_admission_rule_that_lets_all_in_leads_to_retractions_and_still_to_the_same_answers() -> None:
    def run(plugs: Plugs) -> Engine:
        engine = Engine(config=EngineConfig(executor="puppet", pages=24, cache="off"), plugs=plugs, check=True)
        for i in range(3):
            engine.submit([1000 * (i + 1) + k for k in range(4)], id=f"R{i + 1}", max_new_tokens=12)
        for _ in engine.run():
            pass
        return engine

    careless, careful = run(Plugs(admit=lambda waiting, running: True)), run(Plugs())
    assert list(kinds(careless, ev.RequestRetracted))
    assert said(careless) == said(careful)


@pytest.mark.parametrize(
    ("plugs", "knobs", "said"),
    [
        (Plugs(match=right_match), {"page_size": 4}, "match: .* page_size: 1"),
        (Plugs(match=right_match), {"cache": "blocks"}, "match: "),
        (Plugs(eviction=lambda n: 0), {"cache": "off"}, "eviction: .* cache: radix"),
        (Plugs(hasher=lambda p, t, s: 0), {}, "hasher: .* cache: blocks"),
        (Plugs(order=lambda w: 0), {"policy": "priority"}, "order: .* priority also preempts"),
    ],
)
def test_a_part_without_a_place_is_refused_by_name(plugs: Plugs, knobs: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        served(plugs, PROMPTS, **knobs)
