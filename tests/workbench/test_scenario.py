"""Contract 2: what a scenario may say; everything else is refused with the path of the key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from workbench import scenario
from workbench.presets import preset_names
from workbench.scenario import ScenarioError, parse, parse_text

ONE = [{"tokens": "A4"}]


def request(**keys: Any) -> dict[str, Any]:
    return {"requests": [{"tokens": "A4"} | keys]}


def engine(**keys: Any) -> dict[str, Any]:
    return {"engine": keys, "requests": ONE}


REFUSED: list[tuple[Any, str]] = [
    (None, "a scenario is a mapping of keys such as engine and requests; got NoneType"),
    ([1], "a scenario is a mapping"),
    ({}, "requests: the list is empty"),
    ({"requests": ONE, "engines": {}}, "engines: unknown key"),
    ({"requests": {"tokens": "A4"}}, "requests: input should be a valid list"),
    ({"requests": [5]}, "requests.0: "),
    (request(token="A4"), "requests.0.token: unknown key"),
    (engine(page=4), "engine.page: unknown key"),
    (engine(clock={"steps": 1}), "engine.clock.steps: unknown key"),
    (engine(clock={"step": -1}), "engine.clock.step: "),
    (engine(page_size=0), "engine.page_size: input should be greater than or equal to 1; got 0"),
    (engine(pages=True), "engine.pages: must be a number; got True"),
    (engine(pages="many"), "engine.pages: "),
    (engine(chunk=0), "engine.chunk: "),
    (engine(chunk=64, prefill_budget=32), "engine.chunk: 64 is above prefill_budget (32)"),
    (engine(reserve_start=0.05), "engine.reserve_min: 0.1 is above reserve_start (0.05)"),
    (engine(reserve_start=1.5), "engine.reserve_start: "),
    (engine(cache_pages=65), "engine.cache_pages: 65 is above pages (64)"),
    (engine(policy="shortest"), "engine.policy: must be 'fcfs', 'lpm'"),
    (engine(eviction="oldest"), "engine.eviction: must be 'lru', 'lfu'"),
    (engine(retract_max=0), "engine.retract_max: "),
    (request(tokens=[1, "x"]), "requests.0.tokens.1: input should be a valid integer"),
    (request(tokens=[1, True]), "requests.0.tokens.1: "),
    (request(tokens=[1, -1]), "requests.0.tokens.1: "),
    (request(tokens=[]), "requests.0.tokens: "),
    (request(tokens=5), "requests.0.tokens: "),
    (request(tokens="a8"), "requests.0.tokens: 'a8' is not a token name"),
    (request(prompt="hi"), "requests.0: give exactly one of tokens, prompt, messages; got tokens, prompt"),
    ({"requests": [{"max_new_tokens": 1}]}, "requests.0: give exactly one of tokens, prompt, messages; got none"),
    ({"requests": [{"prompt": "hi"}]}, "requests.0: this executor has no tokenizer; give tokens"),
    (request(at=1, at_step=2), "requests.0: give at most one of at, at_step, after; got at, at_step"),
    (request(at=-1), "requests.0.at: "),
    (request(at=float("nan")), "requests.0.at: "),
    (request(think=1), "requests.0.think: counts from the end of another request"),
    (request(after="R9"), "requests.0.after: 'R9' is no request before it in the list"),
    (request(max_new_tokens=-1), "requests.0.max_new_tokens: "),
    (request(says=["x"]), "requests.0.says.0: "),
    (request(says=5), "requests.0.says: "),
    (request(fail_at_step=0), "requests.0.fail_at_step: "),
    (request(seed=2**63), "requests.0.seed: "),
    ({"requests": ONE, "name": 5}, "name: "),
    ({"requests": ONE, "seed": -1}, "seed: "),
    ({"requests": [{"tokens": "A4", "id": "x"}, {"tokens": "B4", "id": "x"}]}, "requests.1.id: 'x' is used twice"),
    ({"requests": [{"tokens": "A4", "id": "R2"}, {"tokens": "B4"}]}, "requests.1.id: 'R2' is used twice"),
    ({"engine": {"executor": "model"}, "requests": [{"tokens": "A4", "says": [1]}]}, "requests.0.says: only a puppet"),
    ({"engine": {"executor": "replay"}, "requests": ONE}, "requests.0.says: a replay needs the recorded tokens"),
]


@pytest.mark.parametrize(("data", "says"), REFUSED)
def test_what_a_scenario_cannot_say_is_refused_with_its_path(data: Any, says: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        parse(data)
    assert str(caught.value).startswith(says)


def test_a_backend_that_is_not_installed_is_refused_and_the_others_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.config.find_spec", lambda name: None)
    with pytest.raises(ScenarioError, match=r"^engine.grammar: xgrammar is not installed .*; own and llguidance are here"):
        parse(engine(grammar="xgrammar"))
    assert parse(engine(grammar="llguidance")).engine.grammar == "llguidance"


def test_a_request_has_one_grammar_at_most() -> None:
    both = {"tokens": "A2", "regex": "a+", "json_schema": {"type": "null"}}
    with pytest.raises(ScenarioError, match=r"^requests.0.regex: give either regex or json_schema; both are there"):
        parse({"requests": [both]})


@pytest.mark.parametrize("off", ["off", '"off"', "false", "no"])
def test_off_means_off_quoted_or_not(off: str) -> None:
    read = parse_text(f"engine: {{cache: {off}, in_batch: {off}, jump: {off}}}\nrequests: [{{tokens: A4}}]")
    assert (read.engine.cache, read.engine.in_batch, read.engine.jump) == ("off", "off", "off")


@pytest.mark.parametrize("text", ["a: b: c", "requests: [", "\t- x", "!!python/object:os.system {}", "? [1]\n: 2"])
def test_what_is_no_yaml_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(ScenarioError, match=r"^not readable as YAML: ") as caught:
        parse_text(text)
    assert "\n" not in str(caught.value)


def test_an_id_that_the_model_does_not_know_is_refused_with_the_requests_number() -> None:
    from workbench.runner import run

    with pytest.raises(ScenarioError, match=r"^requests\.1\.tokens: token ids must be integers from 0 to 65535; got 70000"):
        run(parse({"requests": [{"tokens": "A4"}, {"tokens": [70000]}]}))


def test_names_and_ids_are_filled_in() -> None:
    read = parse({"requests": [{"tokens": "A2+B1"}, {"tokens": [7], "id": "x"}, {"tokens": [8], "salt": "s"}]})
    assert [r.id for r in read.requests] == ["R1", "x", "R3"]
    assert read.requests[0].tokens == [256, 257, 1280]
    assert [r.namespace for r in read.requests] == [None, None, ("s", None, None)]


# --- presets, overrides, writing ---------------------------------------------------------------


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_loads_says_what_it_shows_and_survives_being_written(name: str) -> None:
    read = scenario.load(name)
    assert read.name == name and read.title and read.note and read.requests
    assert parse_text(scenario.dump(read)) == read


def test_a_file_is_found_by_its_path_and_a_preset_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text("name: own\nrequests: [{tokens: A4}]", encoding="utf-8")
    assert scenario.load(str(path)).name == "own"
    assert scenario.load("walkthrough").name == "walkthrough"


@pytest.mark.parametrize(("name", "says"), [
    ("nowhere", "'nowhere' is neither a file nor a preset; the presets are"), ("nowhere.yaml", "nowhere.yaml: no such file"), (".", "cannot be read"),
])  # fmt: skip
def test_a_scenario_that_is_not_there_is_refused(name: str, says: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        scenario.load(name)
    assert says in str(caught.value)


def test_a_file_in_another_encoding_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "latin.yaml"
    path.write_bytes("name: café".encode("latin-1"))
    with pytest.raises(ScenarioError, match="cannot be read"):
        scenario.load(str(path))


def test_settings_reach_into_the_engine_and_leave_the_file_alone() -> None:
    changed = scenario.load("walkthrough", scenario.settings(["engine.policy=lpm", "engine.chunk=4", "engine.cache=off", "seed=3"]))
    assert (changed.engine.policy, changed.engine.chunk, changed.engine.cache, changed.seed) == ("lpm", 4, "off", 3)
    assert changed.engine.pages == scenario.load("walkthrough").engine.pages
    assert scenario.load("walkthrough").engine.policy == "fcfs"


@pytest.mark.parametrize(("pair", "says"), [
    ("engine.policy", "write KEY=VALUE"), ("=lpm", "write KEY=VALUE"), ("engine.x=1", "engine.x: unknown key"),
    ("engine.clock=[", "the value is not readable as YAML"), ("engine.policy=", "engine.policy: must be"),
    ("name.x=1", "name.x: name is not a mapping"), ("requests.0.tokens=A4", "requests is not a mapping"),
])  # fmt: skip
def test_a_setting_that_cannot_be_made_is_refused(pair: str, says: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        scenario.load("walkthrough", scenario.settings([pair]))
    assert says in str(caught.value)
