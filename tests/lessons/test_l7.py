"""L7's arithmetic against the engine's cost model, pool and a real model's KV; its checks against misconceptions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from workbench.lessons import CheckFailed, Lesson
from workbench.lessons.checks import l7


@pytest.fixture(autouse=True)
def _own_progress(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RADIX_PROGRESS", str(tmp_path / "progress.json"))


@pytest.mark.parametrize("tokens", [64, 512, 1024, 8192])
def test_the_reference_takes_as_long_as_the_engines_cost_model(tokens: int) -> None:
    lesson = Lesson("L7")
    assert l7.first_token(lesson.run(l7.again(tokens, None))) == pytest.approx(1000 * l7.pass_seconds(l7.PAGE, tokens), rel=0.02)
    assert l7.first_token(lesson.run(l7.again(tokens, None, stays=True))) == pytest.approx(1000 * l7.pass_seconds(tokens, l7.QUESTION), rel=1e-4)


def test_the_arithmetic_is_that_of_the_engines_header() -> None:
    rates = Lesson("L7").run(l7.again(64, None)).trace.header.rates
    assert rates["kv_bytes"] == l7.each("llama-3.1-8b") == 131_072
    assert l7.even() == pytest.approx(rates["kv_bytes"] * rates["prefill_rate"] / 1e9)


@pytest.mark.model
def test_the_arithmetic_is_that_of_a_real_models_kv() -> None:
    from engine import load_model, model_needs

    if model_needs("embedded").download:
        pytest.skip("the embedded model is not on this machine")
    loaded = load_model("embedded", device="cpu", dtype="float32")
    layers, heads, width = loaded.kv_shape
    assert loaded.kv_bytes_per_token == 2 * layers * heads * width * 4 == 46_080


def good(layers: int, heads: int, width: int, number: int, rate: float) -> tuple[int, float]:
    size = 2 * layers * heads * width * number
    return size, size * rate


@pytest.mark.parametrize(
    ("arithmetic", "said"),
    [
        (None, "expected a function, got None"),
        (lambda *a: None, "returned None; expected two numbers"),
        (lambda *a: ("8", 2), "expected two numbers"),
        (lambda layers: 1, "stopped with TypeError"),
        (lambda *a: (good(*a)[0] // 2, good(*a)[1]), "bytes a token: expected .*\n.*keys and values"),
        (lambda *a: (good(*a)[0], good(*a)[1] / 1e9), "the engine still computes"),
        (lambda *a: (good(*a)[0], 1.2 * good(*a)[1]), "the engine still loads"),
        (lambda *a: (good(*a)[0], -1.0), "the engine still computes"),
    ],
)  # fmt: skip
def test_wrong_arithmetic_is_told_in_a_sentence(arithmetic: Callable[..., Any], said: str) -> None:
    with pytest.raises(CheckFailed, match=said):
        l7.check_arithmetic(Lesson("L7"), arithmetic)


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (None, "expected a function|give it your function"),
        (lambda w, r: None, "None is no answer.*\n.*comparison"),
        (lambda w, r: w.room, "AttributeError"),
        (lambda w, r: True, "got [0-9]+ retractions"),
        (lambda w, r: w.pages_needed <= w.pages_free, "retractions"),
        (lambda w, r: w.pages_free >= w.prompt - w.matched + w.may_produce, "retractions"),
        (lambda w, r: not r, "steps are too many"),
        (lambda w, r: w.pages_free >= w.prompt + w.may_produce + sum(x.may_produce for x in r), "steps are too many"),
        (lambda w, r: w.pages_free >= w.prompt - w.matched + w.may_produce + sum(x.may_produce + x.held for x in r), "steps are too many"),
    ],
)  # fmt: skip
def test_a_rule_that_sends_somebody_back_or_wastes_memory_is_told_so(rule: Callable[..., Any], said: str) -> None:
    with pytest.raises(CheckFailed, match=said):
        l7.check_admission(Lesson("L7"), rule)


def test_a_rule_that_foresees_when_memory_comes_back_is_better_than_the_plain_one() -> None:
    def foresees(waiting: Any, running: list[Any]) -> bool:
        """Follow memory forward: each grows by a token a step until it ends, and then gives its own tokens back."""
        fresh = waiting.prompt - waiting.matched
        ends = sorted([(r.may_produce, r.held - 8 + r.may_produce) for r in running] + [(waiting.may_produce, fresh + waiting.may_produce)])
        free, at = waiting.pages_free - fresh, 0
        for place, (left, size) in enumerate(ends):
            free -= (left - at) * (len(ends) - place)
            at = left
            if free < 0:
                return False
            free += size
        return True

    assert "was sent back" in l7.check_admission(Lesson("L7"), foresees)[0]
