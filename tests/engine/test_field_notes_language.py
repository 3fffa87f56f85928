"""Field notes E4 to E7 and G12 as programs meet them: blanks before an answer, choices and their tables, copies that lost an option."""

from __future__ import annotations

import re
from math import log

import pytest
import torch

from engine import Engine, EngineConfig, State
from engine import events as ev
from engine.executor.model import ModelExecutor
from engine.language.choosing import RULES
from engine.loaded import LoadedModel
from tests.engine.driving import reference_logits
from tests.engine.templates import Chat, qwen, template

GREETINGS = ["Hello", "Goodbye", "^*B^&A"]
CLOSE = 1e-4


def serve(loaded: LoadedModel, **config: object) -> Engine:
    executor = ModelExecutor(loaded, 2048, int(config.get("page_size", 1)))  # type: ignore[call-overload]
    knobs = {"executor": "model", "pages": 2048, "device": "cpu", "dtype": "float32", **config}
    return Engine(config=EngineConfig(**knobs), executor=executor, check=True)


def arrived(engine: Engine) -> list[ev.RequestArrived]:
    return [e for e in engine.trace if isinstance(e, ev.RequestArrived)]


def test_e4_a_program_whose_text_ends_in_a_blank_gets_digits_and_a_remark(embedded: LoadedModel) -> None:
    engine = serve(embedded)
    s = State(engine)
    s += "The number of days in a week is "
    s.gen("days", regex="[0-9]{1,3}", max_tokens=8)
    assert re.fullmatch("[0-9]{1,3}", s["days"])
    assert "ends in a blank" in (arrived(engine)[0].note or "")


@pytest.mark.parametrize("blank", ["", " "])
@pytest.mark.parametrize("rule", RULES)
def test_e5_the_greeting_is_chosen_with_and_without_a_blank_before_it_by_a_puppet(rule: str, blank: str) -> None:
    chat = Chat(qwen(template()))
    s = State(chat.engine)
    s += "What do you say to a guest?" + blank
    s.select("greeting", GREETINGS, rule, says=[chat.engine.tokenizer.encode(c) for c in "Hello"] + [[0]] * 2)
    assert s["greeting"] == "Hello"


@pytest.mark.parametrize("blank", ["", " "])
@pytest.mark.parametrize("rule", RULES[:2])  # the third asks what the prompt adds, and takes a first token alone as certain
def test_e5_the_greeting_is_chosen_with_and_without_a_blank_before_it_by_a_model(embedded: LoadedModel, rule: str, blank: str) -> None:
    s = State(serve(embedded))
    s += "User: Say the word Hello.\nAssistant: Hello\nUser: Say the word Hello again.\nAssistant:" + blank
    s.select("greeting", [("" if blank else " ") + g for g in GREETINGS], rule)
    assert s["greeting"].strip() == "Hello"
    table = s.selection("greeting")
    assert table.healed == (" " if blank else None)
    # However the blank was written, the model is asked about the same tokens.
    assert [t.text for t in table.options[0].tokens] == [" Hello"]


def test_e5_scores_are_transformers_own_with_the_cache_on_and_off(embedded: LoadedModel) -> None:
    prompt, tables = "The capital of France is ", {}
    for cache in ("radix", "off"):
        engine = serve(embedded, cache=cache)
        s = State(engine)
        s += prompt
        s.select("city", ["Paris", "London", "a town of 7 hills"])
        s.finish()
        tables[cache] = [[t.logprob for t in o.tokens] for o in s.selection("city").options]
        cached = [o.cached for o in s.selection("city").options]
        assert all(cached) == (cache == "radix") and len(set(cached)) == 1
    scored = [e for e in arrived(engine) if e.score_from is not None]
    for event, on, off in zip(scored, tables["radix"], tables["off"], strict=True):
        with torch.inference_mode():
            logs = reference_logits(embedded, event.prompt).log_softmax(-1)
        start = event.score_from or 0
        wanted = [float(logs[i - 1, event.prompt[i]]) for i in range(start, len(event.prompt))]
        assert on == pytest.approx(wanted, abs=CLOSE) and off == pytest.approx(on, abs=CLOSE)


def test_e6_a_long_certain_tail_wins_by_its_mean_and_not_token_by_token() -> None:
    chat = Chat(qwen(template()))
    encode = chat.engine.tokenizer.encode
    # Both begin alike; then "b" is likelier than "a", and behind "a" the likeliest follows every time.
    says = [encode("x"), encode("zba"), *[encode("y")] * 8]
    chosen = {}
    for rule in RULES[:2]:
        s = State(chat.engine)
        s += "Which? "
        s.select("x", ["xb", "xa" + "y" * 8], rule, says=says)
        chosen[rule] = s["x"]
        table = s.selection("x")
        assert [len(o.tokens) for o in table.options] == [2, 10]
        assert table.options[0].tokens[0].logprob == table.options[1].tokens[0].logprob
        assert table.options[1].tokens[1].logprob == pytest.approx(-3 * log(2))
    assert chosen == {"token-length-normalised": "xa" + "y" * 8, "greedy-token": "xb"}


def test_e7_the_first_scored_token_is_the_options_and_not_the_prompts(embedded: LoadedModel) -> None:
    s = State(serve(embedded))
    s += "Is water wet? Answer:"
    s.select("wet", [" yes", " no", " it depends"])
    s.finish()
    table = s.selection("wet")
    for option in table.options:
        assert "".join(t.text or "" for t in option.tokens) == option.choice
    assert table.healed is None


def test_g12_every_branch_has_schema_stop_seed_and_space() -> None:
    chat = Chat(qwen(template()))
    space = ("tenant", None, None)
    settings = {"json_schema": {"type": "boolean"}, "stop": ("#",), "seed": 7, "temperature": 0.5, "namespace": space, "priority": 3}
    s = State(chat.engine, **settings)
    s += "True or false? "
    made = []
    make = chat.engine.make

    def watch(*args: object, **asked: object) -> object:
        request, when = make(*args, **asked)  # type: ignore[arg-type]
        made.append(request)
        return request, when

    chat.engine.make = watch  # type: ignore[assignment]
    forks = s.fork(3)
    for branch in [*forks, *forks[0].fork(2)]:
        branch.gen("x", max_tokens=12)
    s.finish()
    prefix, *rest = made
    answers = [r for r in rest if r.params.max_new_tokens]
    assert len(answers) == 5 and prefix.params.max_new_tokens == 0
    for request in answers:
        params = request.params
        assert (params.json_schema, params.stop, params.seed, params.temperature) == ({"type": "boolean"}, ("#",), 7, 0.5)
        assert (request.namespace, request.priority) == (space, 3)
    # What they share is computed in their space, or they would not find it.
    assert (prefix.namespace, prefix.priority) == (space, 3) and prefix.params.json_schema is None
    assert all(chat.hit(r.id) == len(prefix.prompt) - 1 for r in answers[:3])


@pytest.mark.parametrize("page_size", [1, 16])
def test_branches_on_the_embedded_model_hit_the_whole_common_prefix(embedded: LoadedModel, page_size: int) -> None:
    engine = serve(embedded, page_size=page_size)
    s = State(engine)
    s += "An essay. The lighthouse stood on the island for a hundred years before anybody asked who had paid for it."
    forks = s.fork(3)
    for criterion, branch in zip(("clarity", "style", "facts"), forks, strict=True):
        branch += f"\nOf its {criterion} one can say that"
        branch.gen("verdict", max_tokens=4)
    s.join(forks)
    assert all(s["verdict"])
    head, *branches = arrived(engine)
    cached = {e.request: e.cached for e in engine.trace if isinstance(e, ev.RequestAdmitted)}
    shared = len(head.prompt)
    assert shared > 16 and [e.prompt[:shared] for e in branches] == [head.prompt] * 3
    assert [cached[e.request] for e in branches] == [shared // page_size * page_size] * 3
