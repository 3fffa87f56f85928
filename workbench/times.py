"""Whose seconds a run's times are: measured, a script's, or those of a machine that was simulated."""

from __future__ import annotations

from engine.config import EngineConfig
from engine.events import Header


def simulated(header: Header) -> str | None:
    """`simulated`, with the machine where one was simulated; None where times were measured."""
    if header.clock != "virtual":
        return None
    machine = header.hardware.get("name")
    return f"simulated for {machine}" if machine else "simulated"


def machine(header: Header) -> str | None:
    """A sentence on the machine that was simulated, and where its figures come from; None where none was."""
    facts = header.hardware
    if not facts.get("name"):
        return None
    return f"Times are simulated: what a roofline says of {facts['name']} with {facts.get('model', 'a model')} ({facts.get('source', 'source unknown')})."


def uses_model(engine: EngineConfig) -> bool:
    """Whether a run needs the model itself: to compute with it, or to know how fast it is on this machine."""
    return engine.executor == "model" or measured(engine)


def measured(engine: EngineConfig) -> bool:
    """Whether a run simulates this machine, as calibrated with the model."""
    return engine.executor == "cost" and engine.hardware == "measured"
