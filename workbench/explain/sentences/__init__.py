"""One plain sentence for every event kind of contract 1."""

from __future__ import annotations

from engine import events as ev
from workbench.explain.sentences.grammar import GRAMMAR
from workbench.explain.sentences.nodes import NODES
from workbench.explain.sentences.requests import REQUESTS
from workbench.explain.sentences.steps import STEPS
from workbench.explain.words import Texts
from workbench.replay import State

SAY = {**STEPS, **REQUESTS, **NODES, **GRAMMAR}


def sentence(event: ev.Event, state: State, texts: Texts) -> str:
    """What an event says, in one sentence. `state` is the state after it; `texts` as in the header."""
    return SAY[type(event)](event, state, texts)
