"""Programs: plain functions over a state, to be run on any engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from engine.engine import Engine
from engine.language.conductor import Conductor
from engine.language.state import State


class Program:
    """A function over a state and its arguments. `settings` hold for its answers (see `State`)."""

    def __init__(self, function: Callable[..., None], settings: dict[str, Any]) -> None:
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self._function, self._settings = function, settings

    def start(self, engine: Engine, *args: Any, **kwargs: Any) -> State:
        """Write the program down; what it does not read itself runs when it is read, or streamed."""
        state = State(engine, **self._settings)
        self._function(state, *args, **kwargs)
        return state

    def run(self, engine: Engine, *args: Any, **kwargs: Any) -> State:
        """Run it to its end. A value that cannot be had raises ProgramError where it is read."""
        state = self.start(engine, *args, **kwargs)
        state.finish()
        return state

    def batch(self, engine: Engine, calls: Iterable[dict[str, Any]]) -> list[State]:
        """Run it for several sets of arguments, all in the same steps as far as it does not read in between."""
        conductor = Conductor(engine)
        states = []
        for call in calls:
            state = State(engine, **self._settings)
            state._conductor = conductor
            self._function(state, **call)
            states.append(state)
        conductor.finish()
        return states


def program(function: Callable[..., None] | None = None, **settings: Any) -> Any:
    """Make a function a program: `@program`, or `@program(temperature=0.7)` with settings for all its answers."""
    if function is None:
        return lambda function: Program(function, settings)
    return Program(function, settings)
