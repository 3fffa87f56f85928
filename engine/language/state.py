"""The state that a program writes on: texts, answers, choices, roles, branches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

from engine.engine import Engine
from engine.language.choosing import RULES, Selection
from engine.language.conductor import Conductor
from engine.language.script import Part, Script
from engine.language.values import Answer, Choice, Fork, Value

Known = Value | list["Known | None"]


class State:
    """What a program has written and asked for so far.

    `settings` hold for every answer that names no other: any of what `Engine.submit` takes, such as `temperature`,
    `stop`, `seed` or `namespace`. Branches have them too.
    """

    def __init__(self, engine: Engine, **settings: Any) -> None:
        self._conductor = Conductor(engine)
        self._settings = settings
        self._script = Script()
        self._known: dict[str, Known] = {}
        self._fork: Fork | None = None
        self._branch = ""
        self._parent: State | None = None
        self._since: list[Part] = []
        """What a branch has written since it parted."""
        self._own: set[str] = set()
        """The names that it has given since then."""

    # --- writing -------------------------------------------------------------------------------

    def __iadd__(self, text: str | Sequence[int]) -> State:
        """Write a text, or token ids."""
        self._write(text if isinstance(text, str) else tuple(text))
        return self

    def gen(self, name: str | None = None, *, max_tokens: int = 16, **asked: Any) -> None:
        """Have the model go on, under a name. `asked` is what `Engine.submit` takes: stop, regex, json_schema, temperature, seed, ...

        Nothing runs before it is read; what is wrong is told there.
        """
        settings = {**self._settings, "max_new_tokens": max_tokens, **asked}
        self._ask(Answer(name or self._fresh(), self._branch, self._script, self._fork, settings))

    def select(
        self, name: str, choices: Sequence[str | list[int]], rule: str = "token-length-normalised", **asked: Any
    ) -> None:
        """Go on with the likeliest of several texts, under a name. Raises ValueError for what is no list of choices, or no rule.

        The prompt is computed once. Each choice is tokenised together with the prompt, and its own tokens are scored;
        where the tokenizer joins the prompt's end with a choice, scoring begins there for all of them (`selection` says so).
        """
        if rule not in RULES:
            raise ValueError(f"{name}: rule must be one of {', '.join(RULES)}; got {rule!r}")
        if isinstance(choices, str) or not choices or not all(choices):
            raise ValueError(f"{name}: choices must be a list of texts, none of them empty; got {choices!r}")
        if any(choice in choices[:i] for i, choice in enumerate(choices)):
            raise ValueError(f"{name}: the same choice stands there twice: {choices!r}")
        self._ask(Choice(name, self._branch, self._script, self._fork, {**self._settings, **asked}, choices, rule))

    @contextmanager
    def _role(self, role: str) -> Iterator[State]:
        self._script, self._since = self._script.open(role), []
        yield self
        self._script = self._script.close()

    def system(self) -> Any:
        """`with s.system(): ...`: what is written inside is the system's message, by the model's chat template."""
        return self._role("system")

    def user(self) -> Any:
        """`with s.user(): ...`: a message of the user."""
        return self._role("user")

    def assistant(self) -> Any:
        """`with s.assistant(): ...`: a message of the assistant; answers and choices belong here."""
        return self._role("assistant")

    # --- branches ------------------------------------------------------------------------------

    def fork(self, branches: int) -> list[State]:
        """Branches that go on from here, each for itself, all in the same steps.

        What they share is computed first, by a request of its own, so each finds it in the cache.
        """
        if isinstance(branches, bool) or not isinstance(branches, int) or branches < 1:
            raise ValueError(f"fork: must be a number of branches, 1 or more; got {branches!r}")
        fork = Fork(self._script, branches, self._settings, self._fork)
        return [self._copy(fork, f"branch {i + 1} of {branches}") for i in range(branches)]

    def join(self, branches: Sequence[State], how: Literal["gather", "append"] = "gather") -> None:
        """Take branches back: `gather` makes every name that they have given a list; `append` writes what each has written."""
        if how not in ("gather", "append"):
            raise ValueError(f"join: how must be gather or append; got {how!r}")
        for branch in branches:
            if branch._parent is not self:
                raise ValueError("join: takes branches that this state was forked into")
        if how == "append":
            for branch in branches:
                if branch._script.turns != self._script.turns or branch._script.role != self._script.role:
                    raise ValueError(f"join: append takes what a branch has written in the role where it parted; {branch._branch} has opened another")
                for part in branch._since:
                    self._write(part)
            return
        names = dict.fromkeys(name for branch in branches for name in branch._known if name in branch._own)
        for name in names:
            self._give(name, [branch._known[name] if name in branch._own else None for branch in branches])

    # --- reading -------------------------------------------------------------------------------

    def __getitem__(self, name: str) -> Any:
        """A value by its name: the text, or a list of them after `join`. Drives the engine until it is there.

        Raises KeyError for a name that was not given, ProgramError for a value that cannot be had.
        """
        return self._get(self._known[name])

    def __contains__(self, name: str) -> bool:
        return name in self._known

    def stream(self, name: str) -> Iterator[str]:
        """The text of a value as it comes. Raises as reading does."""
        value = self._one(name)
        sent = 0
        while True:
            text = value.so_far
            if len(text) > sent:
                yield text[sent:]
                sent = len(text)
            if value.done:
                break
            self._conductor.turn()
        value.get()

    def selection(self, name: str) -> Selection:
        """What a choice was made from: every option's tokens with their log-probabilities. Raises as reading does."""
        value = self._one(name)
        if not isinstance(value, Choice):
            raise ValueError(f"{name}: is an answer, and only a choice has a table")
        self._get(value)
        assert value.selection is not None
        return value.selection

    def text(self) -> str:
        """All that was written; values in it are driven. Raises ProgramError where one cannot be had."""
        for value in self._script.values():
            self._get(value)
        return self._script.text()

    def ask(self) -> None:
        """Ask the engine all that can be asked by now, without a step: somebody else drives it."""
        self._conductor.look()

    def finish(self) -> None:
        """Drive until everything is there that was asked for, here and in every branch; raises nothing for what cannot be had."""
        self._conductor.finish()

    # --- inside --------------------------------------------------------------------------------

    def _write(self, part: Part) -> None:
        self._script = self._script.add(part)
        self._since.append(part)

    def _ask(self, value: Value) -> None:
        self._write(value)
        self._give(value.name, value)
        self._conductor.expect(value)

    def _give(self, name: str, known: Known) -> None:
        self._known[name] = known
        self._own.add(name)

    def _fresh(self) -> str:
        return next(name for i in range(1, len(self._known) + 2) if (name := f"answer {i}") not in self._known)

    def _copy(self, fork: Fork, branch: str) -> State:
        child = State.__new__(State)
        child._conductor, child._settings, child._script = self._conductor, dict(self._settings), self._script
        child._known, child._fork, child._parent = dict(self._known), fork, self
        child._branch = f"{self._branch}, {branch}" if self._branch else branch
        child._since, child._own = [], set()
        return child

    def _one(self, name: str) -> Value:
        known = self._known[name]
        if isinstance(known, list):
            raise ValueError(f"{name}: is a list, gathered from branches; read it as a whole")
        return known

    def _get(self, known: Known | None) -> Any:
        if known is None:
            return None
        if isinstance(known, list):
            return [self._get(one) for one in known]
        self._conductor.until(known)
        return known.get()
