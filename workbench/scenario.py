"""Contract 2: scenario files. One YAML format for presets, lessons, the command line, tests and exports."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from engine import ModelError
from engine import events as ev
from engine.config import Asked, EngineConfig, describe
from workbench import names, workloads, yamltext
from workbench.presets import preset_names, preset_path


class ScenarioError(ValueError):
    """A scenario that cannot be run; one sentence naming the key and the allowed values."""


Id = Annotated[int, Field(strict=True, ge=0)]


class RequestSpec(Asked):
    """One request of a scenario."""

    model_config = ConfigDict(extra="forbid")

    id: str | None = Field(None, min_length=1, max_length=200)
    label: str | None = Field(None, max_length=200, description="a name for people")
    at: float | None = Field(None, ge=0, allow_inf_nan=False)
    at_step: int | None = Field(None, ge=0)
    after: str | None = None
    think: float = Field(0.0, ge=0, allow_inf_nan=False)
    tokens: list[Id] | None = Field(None, min_length=1, description="ids, or names of runs such as A8+B2")
    prompt: str | None = None
    messages: list[dict[str, str]] | None = None
    max_new_tokens: int = Field(16, ge=0, le=1_000_000)
    ignore_eos: bool = False
    temperature: float = Field(0.0, ge=0, le=100, allow_inf_nan=False)
    top_p: float = Field(1.0, gt=0, le=1, allow_inf_nan=False)
    top_k: int | None = Field(None, ge=1)
    seed: int | None = Field(None, ge=0, le=2**63 - 1)
    stop: list[str] = Field(default_factory=list, max_length=16)
    stop_token_ids: list[int] = Field(default_factory=list, max_length=64)
    score_from: int | None = Field(None, ge=1, description="the first prompt token whose log-probability is wanted; with max_new_tokens: 0")
    regex: str | None = None
    json_schema: dict[str, Any] | bool | None = None
    salt: str | None = None
    adapter: str | None = None
    content: str | None = None
    content_at: int = Field(0, ge=0, description="the first token that stands for `content`; 0: all of them do")
    priority: int = 0
    store: bool = True
    pin: int = Field(0, ge=0, description="steps to hold its stored prompt, from its end")
    says: list[Id | list[Id]] | None = None
    fail_at_step: int | None = Field(None, ge=1)
    abort_at_step: int | None = Field(None, ge=1)

    @field_validator("tokens", mode="before")
    @classmethod
    def _named(cls, value: Any) -> Any:
        return names.parse(value) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _one_of_each(self) -> RequestSpec:
        given = [k for k in ("tokens", "prompt", "messages") if getattr(self, k) is not None]
        if len(given) != 1:
            raise ValueError(f"give exactly one of tokens, prompt, messages; got {', '.join(given) or 'none'}")
        times = [k for k in ("at", "at_step", "after") if getattr(self, k) is not None]
        if len(times) > 1:
            raise ValueError(f"give at most one of at, at_step, after; got {', '.join(times)}")
        if self.think and self.after is None:
            raise ValueError("think: counts from the end of another request; give after as well")
        if self.pin and not self.store:
            raise ValueError("pin: holds what the request stores, and store is false; leave one of them out")
        if self.regex is not None and self.json_schema is not None:
            raise ValueError("regex: give either regex or json_schema; both are there")
        if self.score_from is not None and self.max_new_tokens:
            raise ValueError("score_from: scores a prompt and answers nothing; give max_new_tokens: 0 as well")
        return self

    @property
    def namespace(self) -> ev.Namespace | None:
        """Salt, adapter and content, or None where none is given."""
        space = (self.salt, self.adapter, self.content)
        return space if any(part is not None for part in space) else None


def _workload(value: Any) -> workloads.Workload | None:
    return None if value is None else workloads.read(value)


@functools.cache
def _tokenizer(model: str) -> Any:
    """The tokenizer of the model that a scenario names, without its weights: scripted runs of texts need one."""
    from engine import load_tokenizer  # transformers only where texts become ids

    try:
        return load_tokenizer(model)
    except ModelError as error:
        raise ValueError(f"file: texts become ids by the tokenizer of engine.model, and {error}") from None


class Scenario(Asked):
    """A whole run: the engine's knobs and the traffic."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field("unnamed", min_length=1, max_length=200)
    title: str | None = Field(None, max_length=200, description="the question it answers, for the preset list")
    note: str | None = Field(None, max_length=2000)
    engine: EngineConfig = EngineConfig()
    seed: int = Field(0, ge=0, le=2**31 - 1)
    requests: list[RequestSpec] = Field(default_factory=list, max_length=100_000)
    workload: Annotated[workloads.Workload | None, BeforeValidator(_workload)] = Field(
        None, description="generated traffic, instead of requests; these are made from it"
    )
    _told: list[str] = PrivateAttr(default_factory=list)

    @property
    def told(self) -> list[str]:
        """What the reader of a workload's file has to tell: records that could not be used."""
        return self._told

    @model_validator(mode="after")
    def _consistent(self, info: ValidationInfo) -> Scenario:
        if self.workload is not None:
            self._generate(self.workload, **(info.context or {"files": False, "uploads": None}))
        if not self.requests:
            raise ValueError("requests: the list is empty; at least one request is needed")
        known: set[str] = set()
        for i, request in enumerate(self.requests):
            request.id = request.id or f"R{i + 1}"
            if request.id in known:
                raise ValueError(f"requests.{i}.id: {request.id!r} is used twice")
            if request.after is not None and request.after not in known:
                raise ValueError(f"requests.{i}.after: {request.after!r} is no request before it in the list")
            if request.says is not None and self.engine.executor == "model":
                raise ValueError(f"requests.{i}.says: only a puppet or a replay says what it is told; the executor is model")
            for key in ("adapter", "content"):
                if self.engine.executor == "model" and getattr(request, key) is not None:
                    raise ValueError(f"requests.{i}.{key}: a real model has none in this release; a puppet takes it as a namespace")
            if self.engine.executor == "replay" and request.says is None:
                raise ValueError(f"requests.{i}.says: a replay needs the recorded tokens of every request")
            if self.engine.executor != "model" and request.tokens is None:
                raise ValueError(f"requests.{i}: this executor has no tokenizer; give tokens instead of text")
            known.add(request.id)
        return self

    def _generate(self, workload: workloads.Workload, files: bool, uploads: workloads.Uploads | None) -> None:
        if self.requests:
            raise ValueError("workload: give either requests or a workload; both are there")
        model = self.engine.model
        if not files and Path(model).expanduser().exists():
            raise ValueError("engine.model: a scenario that comes from a page names no folder of this machine; name an offered model")
        maker = workloads.Maker(self.seed, self.engine.executor, lambda: _tokenizer(model), files, uploads)
        try:
            traffic = workload.traffic(maker)
        except ValueError as error:
            raise ValueError(f"workload.{error}") from None
        self.requests = [RequestSpec.model_validate(r) for r in traffic.requests]
        self._told = traffic.told


def parse(
    data: Any, overrides: dict[str, Any] | None = None, files: bool = False, uploads: workloads.Uploads | None = None
) -> Scenario:
    """Validate a scenario that was read from YAML or JSON. Raises ScenarioError with the key's path.

    `files`: whether its workload may read a file of this machine, as the owner's own scenario may. `uploads`: finds
    the files that came through the page it was written on.
    """
    if not isinstance(data, dict):
        raise ScenarioError(f"a scenario is a mapping of keys such as engine and requests; got {type(data).__name__}")
    data = dict(data)
    for path, value in (overrides or {}).items():
        _set(data, path, value)
    try:
        return Scenario.model_validate(data, context={"files": files, "uploads": uploads})
    except ValidationError as error:
        raise ScenarioError(describe(error)) from None


def parse_text(
    text: str, overrides: dict[str, Any] | None = None, files: bool = False, uploads: workloads.Uploads | None = None
) -> Scenario:
    """Validate a scenario from YAML text. Raises ScenarioError."""
    try:
        data = yamltext.read(text)
    except yamltext.YamlError as error:
        raise ScenarioError(str(error)) from None
    return parse(data, overrides, files, uploads)


def load(name_or_path: str, overrides: dict[str, Any] | None = None) -> Scenario:
    """A preset by its name, or a file by its path. Raises ScenarioError."""
    path = Path(name_or_path)
    if not path.suffix and not path.exists():
        found = preset_path(name_or_path)
        if found is None:
            raise ScenarioError(
                f"{name_or_path!r} is neither a file nor a preset; the presets are {', '.join(preset_names())}"
            )
        path = found
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ScenarioError(f"{name_or_path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{name_or_path}: cannot be read ({error})") from None
    return parse_text(text, overrides, files=True)


def as_data(scenario: Scenario) -> dict[str, Any]:
    """The scenario as it would be written: defaults left out, a workload instead of what was made from it."""
    generated = {"requests"} if scenario.workload is not None else None
    return scenario.model_dump(mode="json", exclude_defaults=True, exclude=generated)


def dump(scenario: Scenario) -> str:
    """The scenario as YAML, defaults left out."""
    data = as_data(scenario)
    return yaml.dump(data, Dumper=_Readable, sort_keys=False, allow_unicode=True, width=100)


def retuned(text: str, engine: dict[str, Any], uploads: workloads.Uploads | None = None) -> str:
    """A scenario's text with some of its engine's keys changed. Raises ScenarioError."""
    return dump(parse_text(text, {f"engine.{key}": value for key, value in engine.items()}, uploads=uploads))


class _Readable(yaml.SafeDumper):
    """Texts of several lines as blocks, lists of numbers in one line."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


def _list(dumper: yaml.SafeDumper, value: list[Any]) -> yaml.Node:
    return dumper.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=bool(value) and isinstance(value[0], int))


_Readable.add_representer(str, _text)
_Readable.add_representer(list, _list)


def settings(pairs: list[str]) -> dict[str, Any]:
    """`engine.policy=lpm` -> {"engine.policy": "lpm"}; values are read as YAML. Raises ScenarioError."""
    out: dict[str, Any] = {}
    for pair in pairs:
        key, sign, value = pair.partition("=")
        if not sign or not key:
            raise ScenarioError(f"--set {pair}: write KEY=VALUE, as engine.policy=lpm")
        try:
            out[key.strip()] = yamltext.read(value)
        except yamltext.YamlError:
            raise ScenarioError(f"--set {pair}: the value is not readable as YAML") from None
    return out


def _set(data: dict[str, Any], path: str, value: Any) -> None:
    at = data
    keys = path.split(".")
    for key in keys[:-1]:
        inner = at.get(key)
        if inner is None:
            inner = {}
        if not isinstance(inner, dict):
            raise ScenarioError(f"{path}: {key} is not a mapping")
        at[key] = dict(inner)
        at = at[key]
    at[keys[-1]] = value
