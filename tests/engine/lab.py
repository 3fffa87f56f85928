"""A puppet engine in the field notes' notation, watched at every commit.

`Lab(pages=8, page_size=4)`, then `lab.ask("R1", "A8+B2", 3)` and `lab.run()`. Every engine here walks its
tree and pool after each step, and its trace is folded beside it: at each commit both must agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine import Engine, EngineConfig
from engine import events as ev
from workbench import names
from workbench.replay import State

Prompt = str | Sequence[int]


def ids(prompt: Prompt) -> list[int]:
    """`A8+B2` or a list of ids, as a list of ids."""
    return names.parse(prompt) if isinstance(prompt, str) else list(prompt)


class Shadow:
    """A sink that folds what an engine tells and holds it against what the engine is."""

    def __init__(self) -> None:
        self.state = State()
        self.engine: Engine | None = None

    def __call__(self, batch: list[ev.Event]) -> None:
        for event in batch:
            self.state.apply(event)
        assert batch[-1].commit and not any(e.commit for e in batch[:-1])
        if self.engine is not None:
            told, found = self.state.canonical(), self.engine.snapshot()
            assert told == found, f"after event {batch[-1].seq}, {batch[-1]!r}"


class Lab:
    """One engine around the puppet, its trace, and each request's output."""

    def __init__(self, *, fold: bool = True, executor: Any = None, loaded: Any = None, **config: Any) -> None:
        if loaded is not None:
            config |= {"executor": "model", "device": "cpu", "dtype": "float32"}
        self.shadow = Shadow()
        self.trace = ev.Trace(sinks=[self.shadow] if fold else [])
        self.engine = Engine(config=EngineConfig(**config), trace=self.trace, check=True, executor=executor, loaded=loaded)
        self.shadow.engine = self.engine
        self.outputs: dict[str, list[int]] = {}
        self.reasons: dict[str, str] = {}

    def ask(self, id: str, prompt: Prompt, new: int = 1, **asked: Any) -> None:
        """Submit `prompt ->new`."""
        self.engine.submit(ids(prompt), id=id, max_new_tokens=new, **asked)

    def step(self) -> bool:
        """One step; false when nothing is left to do."""
        progress = self.engine.step()
        for p in progress or []:
            self.outputs.setdefault(p.request, []).extend(p.ids)
            if p.reason is not None:
                self.reasons[p.request] = p.reason
        return progress is not None

    def run(self, limit: int = 5000) -> Lab:
        """Step until nothing is left, at most `limit` steps."""
        for _ in range(limit):
            if not self.step():
                return self
        raise AssertionError(f"still busy after {limit} steps")

    def serve(self, id: str, prompt: Prompt, new: int = 1, **asked: Any) -> list[int]:
        """Ask, run to the end, and return the new ids."""
        self.ask(id, prompt, new, **asked)
        self.run()
        return self.out(id)

    # --- what it showed ------------------------------------------------------------------------

    def events(self, kind: type[Any], request: str | None = None) -> list[Any]:
        """All events of one kind, of one request if named."""
        found = [e for e in self.trace if isinstance(e, kind)]
        return found if request is None else [e for e in found if e.request == request]

    def out(self, id: str) -> list[int]:
        """The request's new ids."""
        return self.outputs.get(id, [])

    def hit(self, id: str) -> int:
        """Prompt tokens reused at its first admission."""
        return self.events(ev.RequestAdmitted, id)[0].cached

    def new(self, id: str) -> int:
        """Prompt tokens that had to be computed at its first admission."""
        return self.events(ev.RequestAdmitted, id)[0].computed

    def request(self, id: str) -> Any:
        """The request as the trace tells it."""
        return self.shadow.state.requests[id]

    def live(self, id: str) -> Any:
        """The engine's own record of a request that has not ended."""
        scheduler = self.engine.scheduler
        return next(r for r in [*scheduler.waiting, *scheduler.running] if r.id == id)

    def node_of(self, prompt: Prompt) -> Any:
        """The deepest tree node on the path of a prompt."""
        from engine.cache.base import pack

        return self.engine.cache.match(pack(ids(prompt)), None).node

    def found(self, prompt: Prompt, ns: Any = None) -> int:
        """Tokens of a sequence that the cache holds now."""
        from engine.cache.base import pack

        return self.engine.cache.match(pack(ids(prompt)), ns).length

    def idle(self) -> bool:
        """Nothing is private or locked: every page is free or evictable."""
        engine = self.engine
        unlocked = all(n.locks == 0 for n in engine.cache.walk())
        return unlocked and engine.pool.free + engine.cache.evictable == engine.config.pages


def outputs_of(asked: Sequence[tuple[str, Prompt, int]], **config: Any) -> dict[str, list[int]]:
    """The outputs of requests that all arrive at once, under one configuration."""
    lab = Lab(**config)
    for id, prompt, new in asked:
        lab.ask(id, prompt, new)
    return lab.run().outputs
