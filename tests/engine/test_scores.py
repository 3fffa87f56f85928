"""How likely a prompt's own tokens are: what transformers says, whatever the cache holds and wherever the prompt is cut."""

from __future__ import annotations

from math import log
from typing import Any

import pytest

from engine import events as ev
from engine.asking import SubmitError
from engine.loaded import LoadedModel
from tests.engine.driving import prompts, reference_logits
from tests.engine.lab import Lab
from workbench.explain import Explainer
from workbench.recording import as_scenario
from workbench.runner import run

CLOSE = 1e-4


def reference(loaded: LoadedModel, prompt: list[int], start: int) -> list[float]:
    """Log-probabilities of prompt[start:], from one whole pass of transformers."""
    logs = reference_logits(loaded, prompt).float().log_softmax(-1)
    return [float(logs[at - 1, prompt[at]]) for at in range(start, len(prompt))]


def scores(lab: Lab, id: str, prompt: Any, start: int, **more: Any) -> list[float]:
    """Score a prompt from `start` on."""
    lab.serve(id, prompt, 0, score_from=start, **more)
    (told,) = lab.events(ev.TokensScored, id)
    assert told.start == start
    return list(told.logprobs)


@pytest.mark.parametrize("page_size", [1, 4, 16])
@pytest.mark.parametrize("config", [{}, {"chunk": 8}, {"cache": "off"}, {"cache": "blocks"}], ids=str)
def test_scores_are_those_of_one_whole_pass_also_where_all_of_it_is_cached(
    tiny_llama: LoadedModel, page_size: int, config: dict[str, Any]
) -> None:
    lab = Lab(loaded=tiny_llama, pages=256 // page_size, page_size=page_size, **config)
    (prompt,) = prompts(tiny_llama, [41])
    lab.serve("before", prompt, 3)
    for start in (1, 22, 33, 40):
        assert scores(lab, f"from {start}", prompt, start) == pytest.approx(reference(tiny_llama, prompt, start), abs=CLOSE)
        usable = (start - 1) // page_size * page_size
        assert lab.hit(f"from {start}") == (0 if config.get("cache") == "off" else usable)
    assert lab.idle()


def test_choices_behind_a_cached_prompt_compute_themselves_and_the_token_in_front(tiny_llama: LoadedModel) -> None:
    lab = Lab(loaded=tiny_llama, pages=256)
    head, *tails = prompts(tiny_llama, [50, 3, 5])
    lab.serve("head", head[:-1], 0)
    for i, tail in enumerate(tails):
        lab.ask(f"c{i}", head + tail, 0, score_from=50)
    lab.run()
    for i, tail in enumerate(tails):
        assert (lab.hit(f"c{i}"), lab.new(f"c{i}")) == (49, 1 + len(tail))
        (told,) = lab.events(ev.TokensScored, f"c{i}")
        assert told.logprobs == pytest.approx(reference(tiny_llama, head + tail, 50), abs=CLOSE)


@pytest.mark.parametrize("overlap", [False, True])
def test_a_prefill_that_gave_way_to_a_more_important_one_is_scored_once_and_rightly(tiny_llama: LoadedModel, overlap: bool) -> None:
    lab = Lab(loaded=tiny_llama, pages=44, page_size=1, policy="priority", chunk=10, overlap=overlap, prefill_budget=None)
    prompt, other = prompts(tiny_llama, [40, 30])
    lab.ask("scored", prompt, 0, score_from=5, priority=0)
    lab.step()
    lab.step()
    lab.ask("important", other, 2, priority=99)
    lab.run()
    assert lab.events(ev.RequestRetracted, "scored")
    (told,) = lab.events(ev.TokensScored, "scored")
    assert told.logprobs == pytest.approx(reference(tiny_llama, prompt, 5), abs=CLOSE)


def test_a_puppet_scores_by_its_script_or_from_all_that_came_before() -> None:
    lab = Lab(pages=64)
    twice = [scores(lab, id, "A8+B3", 8) for id in ("one", "two")]
    assert twice[0] == twice[1] and len(set(twice[0])) == 3 and max(twice[0]) <= 0
    assert lab.hit("two") == 7
    (first, second) = scores(lab, "told", [1, 2, 3, 4], 2, says=[[3], [9, 4]])
    assert first == pytest.approx(-log(2)) and second == pytest.approx(-2 * log(2))


def test_the_barrier_waits_for_no_page_that_a_scored_prompt_may_not_reuse() -> None:
    lab = Lab(pages=64, page_size=4, in_batch="barrier")
    for id in ("one", "two"):
        lab.ask(id, "A16", 0, score_from=3)
    lab.step()
    assert len(lab.events(ev.RequestAdmitted)) == 2 and not lab.events(ev.RequestPassedOver)


@pytest.mark.parametrize(("prompt", "asked", "says"), [
    ([1, 2, 3], {"score_from": 3}, "score_from: must be a token of the prompt after its first, 1 to 2; got 3"),
    ([1], {"score_from": 1}, "score_from: the prompt has one token, and nothing stands before it"),
    ([1, 2, 3], {"score_from": 0}, "score_from: "),
    ([1, 2, 3], {"score_from": 1, "max_new_tokens": 4}, "score_from: scores a prompt and answers nothing; max_new_tokens must be 0, got 4"),
    (list(range(2000)), {"score_from": 1}, "976 to 1999 (at most the last 1024 tokens); got 1"),
])  # fmt: skip
def test_what_cannot_be_scored_is_refused_by_name(prompt: list[int], asked: dict[str, int], says: str) -> None:
    lab = Lab(pages=64)
    with pytest.raises(SubmitError) as caught:
        lab.engine.submit(prompt, **({"max_new_tokens": 0} | asked))
    assert says in str(caught.value)


def test_a_scored_run_says_why_it_reused_no_more_and_can_be_replayed_without_its_scores() -> None:
    lab = Lab(pages=64, page_size=1)
    lab.serve("before", "A12", 0)
    scores(lab, "scored", "A12", 9)
    explainer = Explainer(lab.trace)
    answer = explainer.request(len(lab.trace) - 1, "scored")
    assert answer.reason == "scored" and "what follows is to be scored, and so must run" in answer.headline
    (seq,) = [e.seq for e in lab.events(ev.RequestMatched, "scored")]
    assert explainer.sentence(seq) == "scored finds 8 of its 12 prompt tokens in the cache: what follows is to be scored, and so must run."
    again = run(as_scenario(lab.trace))
    assert [r.cached_tokens for r in again.report.requests] == [0, 8]
    assert not any(isinstance(e, ev.TokensScored) for e in again.trace)
    assert "Replayed without its scores" in (again.trace.header.note or "")
