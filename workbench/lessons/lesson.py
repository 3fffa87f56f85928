"""Lesson: what a notebook holds on to. Predictions are kept before a run, compared after it, and nothing is graded elsewhere."""

from __future__ import annotations

import copy
import random
from importlib import import_module
from types import ModuleType
from typing import Any

from engine import Plugs, load_model
from workbench import scenario as scenarios
from workbench.course import progress, runs
from workbench.course.cards import Card as LessonCard
from workbench.course.cards import Prediction, card
from workbench.lessons.attempt import bounded, in_words, where
from workbench.lessons.grading import number, said, same
from workbench.lessons.picture import drawing
from workbench.lessons.questions import Own, Published
from workbench.lessons.reading import stamp
from workbench.lessons.verdicts import Card, CheckFailed, Told, Unfinished, event_sentence
from workbench.runner import Run, run

WATCHED = 2**15
"""The most pages of a pool whose invariant is checked at every step; walking a larger one takes longer than the run itself."""


class Lesson:
    """One lesson under way: `predict`, `run`, `reveal`, `check`, `questions`, `answer`, `finish`.

    Raises CourseError for a lesson that does not exist.
    """

    def __init__(self, id: str) -> None:
        self.card: LessonCard = card(id)
        self.predicted: dict[str, Any] = {}
        self.came: dict[str, tuple[Any, bool]] = {}
        self.passed: dict[str, bool] = {}
        self.answers: dict[int, bool] = {}
        self._own: Own | None = None
        self._checks: ModuleType = import_module(f"workbench.lessons.checks.{id.lower()}")
        self._models: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"{self.card.id}: {self.card.title}. {self.card.minutes} minutes.\n{stamp()}"

    def _repr_html_(self) -> str:
        title, versions = repr(self).split("\n")
        return drawing() + Card(title, [("note", versions)])._repr_html_()

    # --- predict, run, reveal ------------------------------------------------------------------

    def predict(self, *unnamed: Any, **what: Any) -> Card:
        """Keep what the learner expects, one value for each of the card's predictions named; what was revealed already stays as it was said.

        Raises Unfinished for a value that is missing or cannot be.
        """
        if unnamed:
            raise Unfinished(f"say which prediction is which: lesson.predict({', '.join(f'{name}=...' for name in self.card.predictions)})")
        for name in what:
            self._asked(name)
        kept = {name: said(name, self._asked(name), value) for name, value in what.items()}
        lines = []
        for name, value in kept.items():
            late = name in self.came and value != self.predicted[name]
            if name not in self.came:
                self.predicted[name] = value
                progress.record(self.card.id, "predictions", name, {"said": value})
            asked = self._asked(name)
            lines.append(("note", f"{asked.ask} {number(self.predicted[name], asked.unit)}{' (revealed already: what you said first stays)' if late else ''}"))
        left = [name for name in self.card.predictions if name not in self.predicted]
        return Card(f"Kept so far; still open: {', '.join(left)}" if left else "Your predictions are kept. Now run it.", lines)

    def _asked(self, name: str) -> Prediction:
        """One of the card's predictions. Raises Unfinished for one that it does not ask for."""
        if name not in self.card.predictions:
            raise Unfinished(f"{name}: this lesson asks for {', '.join(self.card.predictions)}")
        return self.card.predictions[name]

    def scenario(self, name: str, **engine: Any) -> scenarios.Scenario:
        """One of the card's runs as a scenario, with other engine settings where given."""
        return runs.scenario(self.card, name, **engine)

    def run(self, what: str | scenarios.Scenario | dict[str, Any], *needs: str, plugs: Plugs | None = None, loaded: Any = None, logprobs: int | None = None, **engine: Any) -> Run:
        """Run one of the card's runs, or any scenario, on a fresh engine. `needs`: predictions that must have been made before.

        `plugs` are parts of the learner's own; `logprobs`: how many of the best tokens to tell with each output token. Raises Unfinished while a prediction is missing.
        """
        for name in needs:
            if name not in self.predicted:
                said(name, self.card.predictions[name], None)
        if isinstance(what, dict):
            what = scenarios.parse(copy.deepcopy(what), files=True)
        made = self.scenario(what, **engine) if isinstance(what, str) else what
        try:
            watched = made.engine.executor != "model" and made.engine.pages <= WATCHED
            done = run(made, plugs=plugs, loaded=loaded, logprobs=logprobs, check=watched)
        except Told:
            raise
        except Exception as error:
            if plugs is None:
                raise
            raise CheckFailed(f"the engine stopped with your {', '.join(plugs.names)}: {in_words(error)}{where(error)}") from error
        if done.report.invariants not in ("ok", None):
            whose = f" with your {', '.join(plugs.names)}" if plugs else ""
            raise CheckFailed(f"the engine stopped{whose}: {'; '.join(done.report.invariants)}")
        return done

    def model(self, dtype: str = "float32") -> Any:
        """The embedded model on the CPU in this dtype, loaded once a notebook."""
        if dtype not in self._models:
            self._models[dtype] = load_model("embedded", device="cpu", dtype=dtype)
        return self._models[dtype]

    def reveal(self, run: Run | None = None, /, **came: Any) -> Card:
        """Set what came beside what was predicted. A value, or (value, the event that shows it), or one that was `Published`.

        Raises CheckFailed where the engine's own figure is not the reference's.
        """
        lines = []
        for name, given in came.items():
            value, event = given if isinstance(given, tuple) else (given, None)
            source = value.source if isinstance(value, Published) else None
            value = value.value if isinstance(value, Published) else value
            asked = self._asked(name)
            if name not in self.predicted:
                said(name, asked, None)
            key = getattr(self._checks, "KEYS", {}).get(name)
            if key is not None and not same(value, key(self), asked.within):
                raise CheckFailed(f"{name}: the run says {number(value, asked.unit)}, the reference {number(key(self), asked.unit)}; one of them is wrong, and it matters")
            mine = self.predicted[name]
            right = same(mine, value, asked.within)
            self.came[name] = (value, right)
            progress.record(self.card.id, "predictions", name, {"said": mine, "came": value, "right": right})
            shown = f" ({event_sentence(run, event)})" if run is not None and event is not None else ""
            kind = "right" if right else "wrong" if asked.choices or asked.whole else "near"
            outcome = f"{source} says: {number(value, asked.unit)} (published, not measured here)" if source else f"it came to {number(value, asked.unit)}{shown}"
            lines.append((kind, f"{asked.ask} You said {number(mine, asked.unit)}; {outcome}"))
        return Card("What you said, and what came", lines)

    # --- exercises -----------------------------------------------------------------------------

    def check(self, exercise: str, *solution: Any) -> Card:
        """Check an exercise against a reference. Raises CheckFailed saying what was expected, what came, and which event shows it."""
        checks = self._checks.CHECKS
        if exercise not in checks:
            raise Unfinished(f"{exercise}: the exercises of {self.card.id} are {', '.join(checks)}")
        if not solution or any(one is None for one in solution):
            raise Unfinished(f'{exercise}: give what you wrote, as lesson.check("{exercise}", your_function)')
        self.passed[exercise] = False
        progress.record(self.card.id, "exercises", exercise, False)
        with bounded(exercise):
            lines = checks[exercise](self, *solution)
        self.passed[exercise] = True
        progress.record(self.card.id, "exercises", exercise, True)
        return Card(f"{exercise}: passed", [("right", line) for line in lines])

    # --- questions of the learner's own run ------------------------------------------------------

    @property
    def own(self) -> Own:
        """The learner's own run, once it was made. Raises Unfinished before."""
        if self._own is None:
            raise Unfinished("run the cell with lesson.questions() first: it makes your run")
        return self._own

    def questions(self) -> Card:
        """Make the learner's own run, and ask three questions about it. The run is `own.run`, the facts `own.facts`."""
        self._own = self._checks.questions(self, random.Random(f"{progress.learner()}/{self.card.id}"))
        facts = [("note", f"{name}: {value}") for name, value in self.own.facts.items()]
        return Card("Three questions about a run that only you have", facts + [("todo", f"{i}. {q.ask}") for i, q in enumerate(self.own.asked, 1)])

    def answer(self, *given: Any) -> Card:
        """Grade the three answers. Raises Unfinished while one is missing, CheckFailed where one is wrong."""
        asked_of_it = self.own.asked
        if len(given) != 3 or any(one is None or one is ... for one in given):
            raise Unfinished("answer(first, second, third): one of the three is still missing; events(lesson.own.run, \"request.matched\") and the like read the run, lesson.own.facts is what you may know of it")
        for i, (asked, mine) in enumerate(zip(asked_of_it, given, strict=True), 1):
            kinds = next(kind for kind in ((str,), (list, tuple, set), (int, float), (object,)) if isinstance(asked.key, kind))
            if not isinstance(mine, kinds):
                wanted = {str: "a text, in quotes", list: "a list", int: "a number, without quotes"}[kinds[0]]
                raise Unfinished(f"answer {i}: {mine!r} cannot be it; write {wanted}")
        lines = []
        wrong = []
        for i, (asked, mine) in enumerate(zip(asked_of_it, given, strict=True), 1):
            right = same(mine, asked.key, asked.within)
            self.answers[i] = right
            progress.record(self.card.id, "questions", str(i), right)
            shown = f" ({event_sentence(self.own.run, asked.event)})" if asked.event is not None else ""
            if right:
                lines.append(("right", f"{i}. {number(mine, asked.unit)}{shown}"))
            else:
                wrong.append(f"{i}. {asked.ask} You said {number(mine, asked.unit)}.{' Look at ' + shown.strip(' ()') if shown else ''}{' Hint: ' + asked.hint if asked.hint else ''}")
        if wrong:
            raise CheckFailed("not yet: " + "\n  ".join(wrong))
        return Card("All three are right", lines)

    # --- the end -------------------------------------------------------------------------------

    @property
    def complete(self) -> bool:
        """Whether every prediction was right, every exercise passed and every question answered."""
        predictions = all(name in self.came and self.came[name][1] for name in self.card.predictions)
        return predictions and all(self.passed.get(name) for name in self.card.exercises) and len(self.answers) == 3 and all(self.answers.values())

    def finish(self) -> Card:
        """How far the learner has come in this lesson; what is open is named."""
        lines = []
        for name, asked in self.card.predictions.items():
            value, right = self.came.get(name, (None, False))
            kind = "todo" if value is None else "right" if right else "wrong" if asked.choices or asked.whole else "near"
            lines.append((kind, f"prediction {name}: " + ("not made and revealed yet" if value is None else "right" if right else "not what came")))
        lines += [("right" if self.passed.get(name) else "todo", f"exercise {name}: {what}") for name, what in self.card.exercises.items()]
        lines.append(("right", "three questions: right") if len(self.answers) == 3 and all(self.answers.values()) else ("todo", "three questions: not all answered yet"))
        return Card(f"{self.card.id}, {self.card.title}: " + ("done" if self.complete else "so far"), lines)
