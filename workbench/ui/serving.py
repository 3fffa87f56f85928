"""Which models a browser may ask for, how far the one in use is, and whether a scenario fits it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.estimate import Rates
from workbench.scenario import Scenario, ScenarioError
from workbench.times import uses_model

DTYPES = ("auto", "float32", "bfloat16", "float16")


@dataclass(frozen=True)
class Offer:
    """A model that may be chosen: what the engine calls it, and what people read."""

    name: str
    label: str


OFFERED = (
    Offer("embedded", "SmolLM2-135M-Instruct (embedded)"),
    Offer("HuggingFaceTB/SmolLM2-360M-Instruct", "SmolLM2-360M-Instruct"),
    Offer("Qwen/Qwen2.5-0.5B-Instruct", "Qwen2.5-0.5B-Instruct"),
    Offer("TinyLlama/TinyLlama-1.1B-Chat-v1.0", "TinyLlama-1.1B-Chat"),
    Offer("Qwen/Qwen2.5-1.5B-Instruct", "Qwen2.5-1.5B-Instruct"),
    Offer("HuggingFaceTB/SmolLM2-1.7B-Instruct", "SmolLM2-1.7B-Instruct"),
)
"""Small models with an open licence and full attention."""


def offer_of(name: str) -> Offer:
    """The offer for a model that the app was started with; of a folder, people read its own name only."""
    known = next((offer for offer in OFFERED if offer.name == name), None)
    return known or Offer(name, Path(name).name if Path(name).is_dir() or name.count("/") != 1 else name)


@dataclass
class ModelState:
    """One choice of model, device and dtype, and how far it is: `loading`, `ready` or `failed`."""

    offer: Offer
    device: str = "auto"
    dtype: str = "auto"
    status: str = "loading"
    stage: str = "starting"
    fraction: float | None = None
    error: str | None = None
    stopped: bool = False
    """Whether somebody asked for the download to be stopped."""
    loaded: Any = None
    rates: Rates | None = None
    serial: int = 0
    """Which load of the app this is."""
    shown: str = ""
    """The model's name in headers, once it is loaded."""
    runs_on: str = ""
    runs_in: str = ""
    """The device and dtype that `auto` came to."""

    @property
    def name(self) -> str:
        """What the engine calls the model."""
        return self.offer.name

    @property
    def progress(self) -> str:
        """What is going on, and how much of it is done."""
        return self.stage if self.fraction is None else f"{self.stage} {self.fraction:.0%}"

    def ready(self, loaded: Any, rates: Rates) -> None:
        """It is loaded and measured."""
        self.loaded, self.rates, self.shown = loaded, rates, loaded.name
        self.runs_on, self.runs_in = loaded.device.type, str(loaded.dtype).removeprefix("torch.")
        self.stage, self.fraction, self.status = "ready", None, "ready"


def check_model(scenario: Scenario, model: ModelState, offers: Sequence[Offer]) -> None:
    """Raise ScenarioError, saying what to do, when a scenario names another model, device or dtype than the one in use.

    A scenario that names none runs on whichever is in use.
    """
    engine = scenario.engine
    if not uses_model(engine):
        return
    given = engine.model_fields_set
    if "model" in given and engine.model not in (model.offer.name, model.offer.label):
        offered = [offer.name for offer in offers if engine.model in (offer.name, offer.label)]
        if not offered:
            raise ScenarioError(
                f"engine.model: {engine.model[:100]!r} is not offered here; choose one under Model and leave the key out, "
                "or start the app with --model to serve another"
            )
        raise ScenarioError(
            f"engine.model: the scenario names {engine.model}, and this page serves {model.offer.label} now; "
            "load it under Model, or leave the key out to run on the one in use"
        )
    for key, here, word in (("device", model.runs_on, "on"), ("dtype", model.runs_in, "in")):
        asked = getattr(engine, key)
        if key in given and here and asked not in ("auto", here):
            raise ScenarioError(
                f"engine.{key}: the scenario asks for {asked}, and the model in use runs {word} {here}; "
                f"load it {word} {asked} under Model, or leave the key out"
            )
