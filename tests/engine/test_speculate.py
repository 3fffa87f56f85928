"""`speculate`: what followed the same words before is drafted, and the model's own pass says whether it follows again."""

from __future__ import annotations

from typing import Any

import pytest

from engine import events as ev
from engine.config import ConfigError, config_from
from engine.loaded import LoadedModel
from engine.speculate import Index
from tests.engine.lab import Lab, ids
from tests.engine.test_exactness import same

SPECULATE = {"speculate": 4, "speculate_ngram": 2}


def test_an_index_finds_what_followed_the_last_words_the_last_time_they_occurred() -> None:
    index = Index(2)
    assert index.follow([1, 2]) is None
    assert index.follow([1, 2, 3]) is None
    assert index.follow([1, 2, 3, 1, 2]) == 2
    assert index.follow([1, 2, 3, 1, 2, 4, 1, 2]) == 5
    assert index.follow([1, 2, 3, 1, 2, 4, 1, 2, 9]) is None


def test_an_answer_that_repeats_its_prompt_takes_a_pass_for_every_draft() -> None:
    says = ids("A16")
    plain, drafted = Lab(pages=128), Lab(pages=128, **SPECULATE)
    assert plain.serve("R", "A16", 16, says=says) == drafted.serve("R", "A16", 16, says=says) == says
    # One pass by itself, one for the second token (two words make a draft), then five tokens a pass: 5 + 5 + 4.
    assert (plain.engine.totals.forward_passes, drafted.engine.totals.forward_passes) == (16, 5)
    told = drafted.events(ev.DraftVerified)
    assert [(e.drafted, e.accepted) for e in told] == [(4, 4), (4, 4), (3, 3)]
    assert told[0].since == 2 and told[0].draft == says[2:6]
    assert drafted.engine.totals.drafted_tokens == 11 == sum(e.source == "drafted" for e in drafted.events(ev.TokenEmitted))


def test_a_draft_that_does_not_follow_costs_no_pass_and_its_pages_come_back() -> None:
    says = [*ids("A3"), 900, *ids("B6")]
    plain, drafted = Lab(pages=128, page_size=2), Lab(pages=128, page_size=2, **SPECULATE)
    assert plain.serve("R", "A16", 10, says=says) == drafted.serve("R", "A16", 10, says=says) == says
    first = drafted.events(ev.DraftVerified)[0]
    assert (first.drafted, first.accepted) == (4, 1) and len(first.pages) == 1
    assert drafted.engine.totals.forward_passes < plain.engine.totals.forward_passes
    assert drafted.idle()


def test_nothing_is_drafted_beyond_an_answers_length() -> None:
    lab = Lab(pages=128, **SPECULATE)
    lab.serve("R1", "A16", 4, says=ids("A16"))
    assert [(e.drafted, e.accepted) for e in lab.events(ev.DraftVerified)] == [(1, 1)]


def test_a_stop_inside_a_draft_ends_the_answer_there() -> None:
    lab = Lab(pages=128, **SPECULATE)
    says = ids("A16")
    out = lab.serve("R", "A16", 16, says=says, stop_token_ids=(says[4],))
    assert out == says[:5] and lab.reasons == {"R": "stop"} and lab.idle()


def test_speculation_and_overlap_exclude_each_other() -> None:
    with pytest.raises(ConfigError, match=r"^speculate: a draft follows the tokens of the step before"):
        config_from({"speculate": 4, "overlap": True})


@pytest.mark.parametrize("config", [{}, {"page_size": 4, "pages": 64}, {"chunk": 7, "mixed": True}, {"max_running": 2, "pages": 96}])
def test_a_model_says_what_transformers_says_in_fewer_passes(tiny_llama: LoadedModel, config: dict[str, Any]) -> None:
    prompts = [[7, 11, 13, 17, 7, 11, 13] * 3 + [20 + i] for i in range(4)]
    passes = []
    for speculate in (0, 5):
        lab = Lab(loaded=tiny_llama, **{"pages": 400, **config}, speculate=speculate, speculate_ngram=1)
        for i, prompt in enumerate(prompts):
            lab.ask(f"R{i}", prompt, 40, ignore_eos=True)
        lab.run()
        for i, prompt in enumerate(prompts):
            same(tiny_llama, prompt, lab.out(f"R{i}"))
        passes.append(lab.engine.totals.forward_passes)
    assert lab.engine.totals.drafted_tokens > 0 and passes[1] <= passes[0]


def test_every_token_of_a_draft_tells_its_log_probability_as_plain_decoding_does(tiny_llama: LoadedModel) -> None:
    told = []
    for speculate in (0, 5):
        lab = Lab(loaded=tiny_llama, pages=200, speculate=speculate, speculate_ngram=1)
        lab.serve("R", [3, 4] * 6, 60, logprobs=2, ignore_eos=True)
        told.append({e.position: (e.token, e.logprob, [i for i, _ in e.top]) for e in lab.events(ev.TokenEmitted)})
    assert told[0].keys() == told[1].keys() == set(range(60))
    assert lab.engine.totals.drafted_tokens > 0
    for position, (token, logprob, top) in told[0].items():
        assert told[1][position] == (token, pytest.approx(logprob, abs=1e-4), top)


def test_a_seeded_answer_is_the_same_with_drafts(tiny_llama: LoadedModel) -> None:
    said = []
    for speculate in (0, 5):
        lab = Lab(loaded=tiny_llama, pages=200, speculate=speculate, speculate_ngram=1)
        said.append(lab.serve("R", [7, 11, 13, 7, 11, 13, 7], 40, temperature=0.8, seed=3, ignore_eos=True))
    assert said[0] == said[1]
    assert lab.events(ev.DraftVerified)
