"""EngineConfig: every knob of the engine, its range and its meaning."""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from engine.hardware import MEASURED, PROFILES, check_hardware

POLICIES = ("fcfs", "lpm", "lpm-as-shipped", "lpm-fair", "dfs-weight", "lof", "random", "priority")
SORTS = ("lpm", "lpm-as-shipped", "lpm-fair")
EVICTIONS = ("lru", "lfu", "fifo", "mru", "filo", "slru", "priority", "size", "belady")
CACHES = ("radix", "blocks", "off")

class ConfigError(ValueError):
    """A configuration that cannot be used; one sentence naming the field and the allowed values."""


class Asked(BaseModel):
    """Something that people write: a `yes` where a number belongs is a mistake, not a 1."""

    @model_validator(mode="before")
    @classmethod
    def _numbers(cls, values: Any) -> Any:
        for key, value in values.items() if isinstance(values, dict) else ():
            field = cls.model_fields.get(key)
            if isinstance(value, bool) and field and field.annotation in (int, float, int | None, float | None):
                raise ValueError(f"{key}: must be a number; got {value}")
        return values


class Clock(Asked):
    """Virtual seconds: a step takes `plan`, then `step` + `token` x tokens forwarded."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    plan: float = Field(0.0, ge=0, le=1e6)
    step: float = Field(1.0, ge=0, le=1e6)
    token: float = Field(0.0, ge=0, le=1e6)


class EngineConfig(Asked):
    """One engine's knobs. Pages, tokens and steps are counts; times are seconds."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    executor: Literal["model", "cost", "puppet", "replay"] = Field(
        "puppet", description="what computes the tokens: a real model, a calibrated roofline, a script, a recording"
    )
    model: str = Field("embedded", min_length=1, description="`embedded`, a transformers id or a local folder")
    device: Literal["auto", "cuda", "mps", "cpu"] = "auto"
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = Field(
        "auto", description="float32 on cpu and mps, the model's own on cuda"
    )
    hardware: Annotated[str, AfterValidator(check_hardware)] = Field(
        MEASURED, description=f"`measured` (this machine, calibrated) or {', '.join(PROFILES)} (executor: cost)"
    )
    clock: Clock = Clock()
    cache: Literal["radix", "blocks", "off"] = "radix"
    page_size: int = Field(1, ge=1, le=1024, description="token slots a page")
    pages: int = Field(64, ge=1, le=16_777_216, description="all usable pages")
    cache_pages: int | None = Field(None, ge=1, description="cap on unlocked tree pages; null: one shared pool")
    eviction: Literal["lru", "lfu", "fifo", "mru", "filo", "slru", "priority", "size", "belady"] = "lru"
    eviction_unit: Literal["page", "leaf"] = Field("page", description="trim the leaf by pages, or take it whole")
    block_order: Literal["tail-first", "head-first"] = Field(
        "tail-first", description="how a released chain joins the free queue (cache: blocks)"
    )
    pin_budget: float = Field(0.5, ge=0, le=1, description="share of all pages that pins may hold")
    policy: Literal["fcfs", "lpm", "lpm-as-shipped", "lpm-fair", "dfs-weight", "lof", "random", "priority"] = "fcfs"
    fair_bound: int | None = Field(65536, ge=0, description="prompt tokens that later arrivals may overtake by (lpm-fair)")
    in_batch: Literal["off", "barrier", "sort"] = "off"
    preempt_threshold: int = Field(10, ge=0)
    max_running: int = Field(8, ge=1, le=65536)
    prefill_budget: int | None = Field(16384, ge=1, description="prompt tokens a step; never cuts a prompt")
    chunk: int | None = Field(None, ge=1, description="prefill tokens a step, the last prompt cut there")
    mixed: bool = Field(False, description="decodes ride along with prefill")
    admission: Literal["estimate", "full"] = "estimate"
    reserve_start: float = Field(0.7, ge=0, le=1)
    reserve_min: float = Field(0.1, ge=0, le=1)
    retract_victim: Literal["least-output", "newest", "priority"] = "least-output"
    retract_to: Literal["back", "front"] = "back"
    retract_max: int = Field(8, ge=1)
    overlap: bool = False
    speculate: int = Field(0, ge=0, le=64, description="tokens a pass drafts from what was said before; 0: none")
    speculate_ngram: int = Field(2, ge=1, le=8, description="tokens that must have occurred before, for a draft to follow them")
    host_pages: int = Field(0, ge=0, le=16_777_216, description="pages of a second tier, in the host's memory (cache: radix)")
    host_policy: Literal["write-through", "write-back"] = Field(
        "write-through", description="copy what has been used `host_threshold` times, or copy on eviction"
    )
    host_threshold: int = Field(1, ge=1, description="uses from which write-through copies: 1 for being stored, and its hits")
    host_bandwidth: float | None = Field(None, gt=0, description="bytes a second; null: measured at start")
    replicas: int = Field(1, ge=1, le=64)
    prefill_replicas: int = Field(0, ge=0, le=63, description="of the replicas, those that only prefill and send their KV on (executor: cost); 0: none")
    router: Literal["cache-aware", "round-robin", "least-loaded", "power-of-two"] = "cache-aware"
    router_threshold: float = Field(0.3, ge=0, le=1)
    router_balance: tuple[int, float] = (64, 1.5)
    grammar: Literal["own", "llguidance", "xgrammar"] = "own"
    jump: Literal["off", "verified", "unverified"] = "verified"
    spacing: Literal["compact", "one-space", "pretty"] = "one-space"

    @field_validator("cache", "in_batch", "jump", mode="before")
    @classmethod
    def _yaml_off(cls, value: Any) -> Any:
        # An unquoted `off` is `false` in YAML 1.1; both mean off.
        return "off" if value is False else value

    @model_validator(mode="after")
    def _consistent(self) -> EngineConfig:
        if self.grammar == "xgrammar" and find_spec("xgrammar") is None:
            raise ValueError(
                "grammar: xgrammar is not installed (pip install 'radix-workbench[xgrammar]'); own and llguidance are here"
            )
        if self.executor == "cost" and self.hardware in PROFILES:
            PROFILES[self.hardware].check_room(self.pages, self.page_size)
        if self.chunk is not None and self.prefill_budget is not None and self.chunk > self.prefill_budget:
            raise ValueError(f"chunk: {self.chunk} is above prefill_budget ({self.prefill_budget}); lower one of them")
        if self.cache == "blocks" and self.eviction != "lru":
            raise ValueError(f"eviction: {self.eviction!r} needs cache: radix; blocks leave their free queue in its own order, lru")
        if self.host_pages and self.cache == "blocks":
            raise ValueError(f"host_pages: {self.host_pages} needs cache: radix; blocks have no second tier, so it must be 0 there")
        if self.in_batch == "sort" and self.policy not in SORTS:
            raise ValueError(f"in_batch: 'sort' is a sort key of {', '.join(SORTS)}; policy is {self.policy!r}")
        if self.eviction == "belady" and self.policy != "fcfs":
            raise ValueError(
                f"eviction: belady (farthest next use) goes by the order of the requests, so it needs policy: fcfs; got {self.policy}"
            )
        if self.second_tier and self.overlap:
            raise ValueError("host_pages: pages are copied while a step is planned, and overlap plans beside a step that still writes; set overlap: false")
        if self.speculate and self.overlap:
            raise ValueError("speculate: a draft follows the tokens of the step before, which overlap does not wait for; set overlap: false")
        if self.prefill_replicas:
            if self.prefill_replicas >= self.replicas:
                raise ValueError(f"prefill_replicas: at least one of the replicas has to decode; got {self.prefill_replicas} of {self.replicas}")
            if self.executor != "cost":
                raise ValueError(f"prefill_replicas: KV travels between engines on the cost executor alone; executor is {self.executor}")
        if self.replicas > 1:
            for field, allowed, why in (
                ("executor", ("cost", "puppet"), "replicas share a virtual clock"),
                ("overlap", (False,), "replicas plan serially"),
                ("eviction", tuple(e for e in EVICTIONS if e != "belady"), "the traffic of one replica is not known at the start"),
            ):
                if getattr(self, field) not in allowed:
                    raise ValueError(f"{field}: {why}, so with replicas above 1 it must be one of {', '.join(map(str, allowed))}; got {getattr(self, field)}")
        if self.reserve_min > self.reserve_start:
            raise ValueError(f"reserve_min: {self.reserve_min} is above reserve_start ({self.reserve_start})")
        if self.cache_pages is not None and self.cache_pages > self.pages:
            raise ValueError(f"cache_pages: {self.cache_pages} is above pages ({self.pages})")
        return self

    @property
    def second_tier(self) -> int:
        """Pages of the host tier that are of use: with the cache off there is nothing to keep in them."""
        return self.host_pages if self.cache == "radix" else 0


def config_from(values: dict[str, Any]) -> EngineConfig:
    """Build a config. Raises ConfigError with one sentence that names the field."""
    try:
        return EngineConfig.model_validate(values)
    except ValidationError as error:
        raise ConfigError(describe(error)) from None


UNION_TAG = re.compile(r"(constrained-)?(int|str|float)|list\[.*\]")
"""What pydantic adds to a path to say which of several types it tried; no key of ours."""


def describe(error: ValidationError, prefix: str = "") -> str:
    """The first complaint of a pydantic error as one sentence: where, what is allowed, what came."""
    first = error.errors()[0]
    where = ".".join(str(p) for p in first["loc"] if not UNION_TAG.fullmatch(str(p)))
    path = ".".join(p for p in (prefix, where) if p)
    kind, context = first["type"], first.get("ctx") or {}
    if kind == "extra_forbidden":
        return f"{path}: unknown key"
    if kind == "missing":
        return f"{path}: is missing"
    if kind == "value_error":
        message = str(context.get("error", first["msg"]))
        # A rule over several keys begins its message with the key: the path goes on with it.
        return f"{path}{'.' if re.match(r'[a-z][a-z_.0-9]*: ', message) else ': '}{message}" if path else message
    if kind == "literal_error":
        return f"{path}: must be {context['expected']}; got {_short(first['input'])}"
    return f"{path}: {first['msg'][0].lower()}{first['msg'][1:]}; got {_short(first['input'])}"


def _short(value: Any) -> str:
    try:
        text = repr(value)
    except ValueError:
        return "a number of thousands of digits"
    return text if len(text) <= 120 else f"{text[:117]}..."
