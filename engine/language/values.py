"""What a program will know: an answer or a choice, asked when all that stands before it is there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from engine.language.choosing import Option, Selection, Token, choose, scores
from engine.language.conductor import Conductor
from engine.language.script import Script, common
from engine.request import Request, Status


class ProgramError(ValueError):
    """A value that cannot be had; `name` is the variable, and the message begins with it."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"{name}: {why}")
        self.name = name


class Fork:
    """A place where branches part. What they share is computed before any of them is asked."""

    def __init__(self, script: Script, branches: int, settings: dict[str, Any], outer: Fork | None) -> None:
        self._script, self._branches, self._settings, self._outer = script, branches, settings, outer
        self._asked = branches < 2
        self._request: Request | None = None

    def ask(self, conductor: Conductor) -> Request | None:
        """The request that computes what the branches share, asked the first time; None where there is nothing to share."""
        before = self._outer.ask(conductor) if self._outer is not None else None
        if not self._asked:
            self._asked = True
            ids = self._script.shared(conductor.tokenizer)
            if ids:
                label = f"what {self._branches} branches share"
                self._request = conductor.submit(ids, label, before, max_new_tokens=0, **place(self._settings))
        return self._request or before


class Value(ABC):
    """Something that a program asked for under a name.

    `script` is what stands before it; `text` and `ids` are there once it is `done` without an `error`. `ids` None:
    the text is spelt together with what stands around it.
    """

    def __init__(self, name: str, branch: str, script: Script, fork: Fork | None, asked: dict[str, Any]) -> None:
        self.name, self._branch, self._script, self._fork, self._asked = name, branch, script, fork, asked
        self.requests: list[Request] = []
        self.done = False
        self.error: ProgramError | None = None
        self.text = ""
        self.ids: list[int] | None = None

    @property
    def so_far(self) -> str:
        """What is known of its text."""
        return self.text

    def get(self) -> Any:
        """The text; raises ProgramError where there is none."""
        if self.error is not None:
            raise self.error
        return self.text

    def advance(self, conductor: Conductor) -> bool:
        """Ask, or take what has come; whether anything changed."""
        try:
            if not self.requests:
                return self._begin_when_ready(conductor)
            if not all(r.done for r in self.requests):
                return False
            for request in self.requests:
                check(request)
            self._settle(conductor)
            self.done = True
        except ValueError as error:
            self._fail(str(error))
        return True

    def _begin_when_ready(self, conductor: Conductor) -> bool:
        before = list(self._script.values())
        for value in before:
            if value.error is not None:
                raise ValueError(f"was not asked, as what stands before it is missing ({value.error})")
        if not all(value.done for value in before):
            return False
        self._begin(conductor, self._fork.ask(conductor) if self._fork is not None else None)
        return True

    @abstractmethod
    def _begin(self, conductor: Conductor, after: Request | None) -> None:
        """Ask the engine, once `after` has ended."""

    @abstractmethod
    def _settle(self, conductor: Conductor) -> None:
        """Take what the requests have brought."""

    def _label(self, what: str = "") -> str:
        return self.name + (f" = {what}" if what else "") + (f" ({self._branch})" if self._branch else "")

    def _fail(self, why: str) -> None:
        self.done, self.error = True, ProgramError(self.name, why)


class Answer(Value):
    """What the model says."""

    _speaks = False

    @property
    def so_far(self) -> str:
        """What it has said."""
        return self.requests[0].text if self.requests else ""

    def get(self) -> Any:
        """The text, or the ids where the executor has no tokenizer; raises ProgramError where there is none."""
        super().get()
        return self.text if self._speaks else list(self.ids or [])

    def _begin(self, conductor: Conductor, after: Request | None) -> None:
        prompt = self._script.ids(conductor.tokenizer)
        self.requests = [conductor.submit(prompt, self._label(), after, **self._asked)]

    def _settle(self, conductor: Conductor) -> None:
        request, tokenizer = self.requests[0], conductor.tokenizer
        self._speaks = tokenizer is not None
        self.text = request.text
        ids = list(request.output)
        if ids and request.reason == "stop" and (ids[-1] in conductor.eos_ids or ids[-1] in request.params.stop_token_ids):
            ids.pop()
        if tokenizer is not None:
            whole = tokenizer.detokenizer()
            if whole.push(ids) + whole.finish() != self.text:
                return  # a stop string cut it inside its tokens
        self.ids = ids


class Choice(Value):
    """Which of several continuations the model finds likeliest."""

    def __init__(
        self, name: str, branch: str, script: Script, fork: Fork | None, asked: dict[str, Any],
        choices: Sequence[str | list[int]], rule: str,
    ) -> None:  # fmt: skip
        super().__init__(name, branch, script, fork, asked)
        self._choices, self._rule = list(choices), rule
        self._spelt: list[list[int]] = []
        self._from = 0
        self._alone: list[Request | None] = []
        self._healed: str | None = None
        self.selection: Selection | None = None

    def get(self) -> Any:
        """The choice; raises ProgramError where none could be made."""
        super().get()
        assert self.selection is not None
        return self.selection.choice

    def _begin(self, conductor: Conductor, after: Request | None) -> None:
        prompt = self._script.ids(conductor.tokenizer)
        parts = [c if isinstance(c, str) else tuple(c) for c in self._choices]
        self._spelt = [self._script.add(part).ids(conductor.tokenizer) for part in parts]
        self._from = start = min(common(prompt, whole) for whole in self._spelt)
        if not start:
            raise ValueError("nothing stands before the choices, so nothing says how likely their first token is")
        if start < len(prompt) and conductor.tokenizer is not None:
            self._healed = "".join(conductor.tokenizer.texts([i])[str(i)] for i in prompt[start:])
        where = place(self._asked)
        if start > 1 and len(self._spelt) > 1:
            after = conductor.submit(prompt[: start - 1], self._label("what the choices share"), after, max_new_tokens=0, **where)
        script = {"says": self._asked["says"]} if "says" in self._asked else {}
        asked = [
            conductor.submit(whole, self._label(repr(choice)), after, max_new_tokens=0, score_from=start, **where, **script)
            for choice, whole in zip(self._choices, self._spelt, strict=True)
        ]
        if self._rule == "unconditional-normalised":
            self._alone = [self._ask_alone(conductor, whole[start:], where) for whole in self._spelt]
        self.requests = asked + [r for r in self._alone if r is not None]

    def _ask_alone(self, conductor: Conductor, ids: list[int], where: dict[str, Any]) -> Request | None:
        """The same tokens without the prompt; None for a single one that nothing stands before."""
        begin = conductor.tokenizer.encode("") if conductor.tokenizer is not None else []
        if len(begin) + len(ids) == 1:
            return None
        return conductor.submit([*begin, *ids], self._label("a choice alone"), None, max_new_tokens=0, score_from=max(1, len(begin)), **where)

    def _settle(self, conductor: Conductor) -> None:
        asked = self.requests[: len(self._choices)]
        if not all(request.scores for request in asked):
            raise ValueError("the executor gave no scores")
        tables = [self._table(conductor, i, request) for i, request in enumerate(asked)]
        marks = scores(self._rule, tables)
        options = [
            Option(choice, table, mark, request.cached or 0)
            for choice, table, mark, request in zip(self._choices, tables, marks, asked, strict=True)
        ]
        chosen = self._choices[choose(self._rule, tables)]
        self.selection = Selection(chosen, self._rule, options, self._healed)
        if isinstance(chosen, str):
            self.text = chosen
        else:
            self.ids = list(chosen)

    def _table(self, conductor: Conductor, index: int, request: Request) -> list[Token]:
        ids = self._spelt[index][self._from :]
        texts = conductor.tokenizer.texts(ids) if conductor.tokenizer is not None else {}
        alone: list[float | None] = [None] * len(ids)
        if self._alone:
            one = self._alone[index]
            found = list(one.scores) if one is not None else []
            alone = [*[0.0] * (len(ids) - len(found)), *found]  # what nothing stands before counts as certain
        rows = zip(ids, request.scores, alone, strict=True)
        return [Token(id, texts.get(str(id)), logprob, free) for id, logprob, free in rows]


def place(asked: dict[str, Any]) -> dict[str, Any]:
    """Of what was asked, what says where a request belongs: those that share a prefix have to agree in it."""
    return {key: asked[key] for key in ("namespace", "priority") if key in asked}


def check(request: Request) -> None:
    """Raise ValueError unless a request has ended well."""
    if request.status is Status.REFUSED:
        short = {"pages": "it needs more pages than the pool has", "positions": "it is longer than the model's positions"}
        raise ValueError(f"refused: {request.error or short.get(request.reason or '', request.reason)}")
    if request.status is Status.FAILED:
        raise ValueError(f"failed: {request.error}")
    if request.status is Status.ABORTED:
        raise ValueError("was taken back")
