"""The Lessons page: the course at a glance, one lesson with its runs and its quiz, the teacher's page, the terms.

All of it is one piece of HTML that the page's script fetches (Gradio would put it into every page of the app); the script shows the part
that the address names, and how far the learner has come.
"""

from __future__ import annotations

import html
import json
from importlib import resources

import gradio as gr

from workbench.course.cards import Card, Question, cards, glossary
from workbench.course.plan import Plan, Stage, plan
from workbench.ui import head
from workbench.ui.worker import Worker

QUIET = {"queue": False, "show_progress": "hidden", "api_visibility": "private"}
NEEDS = {"puppet": "no model", "cost": "simulated machine", "model": "the model", "numpy": "NumPy", "recorded": "recorded answers"}
"""What a lesson needs, in a word or two."""


class LessonsPage:
    """The page. It holds no state of its own: the address says what is shown."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker

    def build(self) -> None:
        """Lay out the page inside the current Blocks."""
        top = head.build(self.worker, "lessons")
        top.tick(lambda: head.words(self.worker, "lessons"), None, top, **QUIET)
        gr.HTML(
            "", elem_id="lessons", html_template="", apply_default_css=False,
            js_on_load=resources.files(__package__).joinpath("lessons.js").read_text(encoding="utf-8"),
        )  # fmt: skip


def content() -> str:
    """Every part of the page and its style; all parts but one are hidden by the script."""
    style = resources.files(__package__).joinpath("lessons.css").read_text(encoding="utf-8")
    parts = [overview(), *(lesson(card) for card in cards().values()), teacher(plan()), terms()]
    tabs = "".join(f'<a href="#{part}" data-part="{part}">{words}</a>' for part, words in (("all", "Lessons"), ("teacher", "For teachers"), ("terms", "Terms")))
    return f'<style>{style}</style><nav class="rw-parts" aria-label="Parts of the course">{tabs}</nav><p class="rw-message" id="lesson-said" role="status"></p>{"".join(parts)}'


def overview() -> str:
    """The course at a glance."""
    rows = "".join(_row(card) for card in cards().values())
    hours = sum(card.minutes for card in cards().values()) / 60
    core = [card for card in cards().values() if card.core]
    return (
        '<section data-part="all"><h2>Learn how a server reuses what it has computed</h2>'
        f'<p class="rw-lead">Say what you expect, run it on the real engine, see what came and be told why. {len(cards()) - 1} lessons and a last one that puts them together, {hours:.1f} hours in all; '
        f"those marked as core take {sum(c.minutes for c in core) / 60:.1f}. Nothing you do here leaves this machine.</p>"
        f'<ol class="rw-course">{rows}</ol></section>'
    )


def _row(card: Card) -> str:
    core = '<span class="rw-tag">core</span>' if card.core else ""
    return (
        f'<li><a href="#lesson={card.id}" data-lesson="{card.id}"><span class="rw-number">{_number(card)}</span>'
        f'<span class="rw-what"><b>{html.escape(card.title)}</b> {core}<span class="rw-aim">{html.escape(_capital(card.objective))}</span></span>'
        f'<span class="rw-facts"><span>{card.minutes} min</span><span>{NEEDS[card.needs]}</span></span>'
        f'<span class="rw-far" data-far="{card.id}"></span></a></li>'
    )


def _number(card: Card) -> str:
    return card.id.removeprefix("L") if card.id.startswith("L") else "★"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def lesson(card: Card) -> str:
    """One lesson: what it is about, its notebook, its runs, its quiz."""
    before = f" Best after {' and '.join(card.after)}." if card.after else ""
    told = f'<details class="rw-teacher"><summary>For teachers</summary><p>{html.escape(card.teacher)}</p></details>' if card.teacher else ""
    return (
        f'<section data-part="lesson={card.id}" data-predictions="{len(card.predictions)}" data-exercises="{len(card.exercises)}" data-quiz="{len(card.quiz)}" hidden>'
        f'<h2>{card.id if card.id.startswith("L") else "Last"}: {html.escape(card.title)}</h2>'
        f'<p class="rw-lead">You will be able to {html.escape(card.objective)}</p>'
        f'<p class="rw-fine">{card.minutes} minutes. Needs {html.escape(card.needs_in_words)}.{before}</p>'
        f'<p class="rw-fine rw-stand" data-stand="{card.id}"></p>'
        f"{_notebook(card)}{_runs(card)}{told}{_quiz(card)}{_neighbours(card)}</section>"
    )


def _notebook(card: Card) -> str:
    exercises = "".join(f"<li>{html.escape(_capital(what))}.</li>" for what in card.exercises.values())
    return (
        f'<div class="rw-box"><h3>Do it in the notebook</h3><p class="rw-fine">Predict, run, see, and write this:</p><ul class="rw-fine">{exercises}</ul>'
        f'<p class="rw-do"><a class="rw-button" href="/lessons/{card.id}/notebook" download="{card.stem}.ipynb">Get the notebook</a>'
        f'<span class="rw-fine">or run <code>make jupyter</code> in the project and open <code>student/{card.stem}.ipynb</code></span></p></div>'
    )


def _runs(card: Card) -> str:
    items = []
    for name, run in card.runs.items():
        moments = [*((i, moment.label) for i, moment in enumerate(run.moments)), (-1, "the whole run")]
        buttons = "".join(
            f'<li><button type="button" class="rw-link" data-run="{html.escape(name)}" data-moment="{i}">{html.escape(label)}</button></li>' for i, label in moments
        )
        items.append(f'<div class="rw-run"><b>{html.escape(_capital(run.label))}</b><ul>{buttons}</ul></div>')
    if not items:
        return ""
    return f'<div class="rw-box" data-of="{card.id}"><h3>Its runs, in the Lab</h3><p class="rw-fine">Each is run for you now and opens at that moment.</p>{"".join(items)}</div>'


def _quiz(card: Card) -> str:
    asked = "".join(_question(card, i, question) for i, question in enumerate(card.quiz))
    return f'<div class="rw-box rw-quiz" data-of="{card.id}"><h3>Quiz</h3><p class="rw-fine" data-score="{card.id}">Choose an answer: you are told at once whether it is right, and why.</p>{asked}</div>'


def _question(card: Card, i: int, question: Question) -> str:
    name = f"{card.id}-{i}"
    options = "".join(
        f'<label><input type="radio" name="{name}" value="{html.escape(option)}"> <span>{html.escape(option)}</span></label>' for option in question.options
    )
    key = html.escape(json.dumps({"right": question.right, "because": question.because}))
    return f'<fieldset data-question="{i}" data-key="{key}"><legend>{i + 1}. {html.escape(question.ask)}</legend>{options}<p class="rw-because" role="status"></p></fieldset>'


def _neighbours(card: Card) -> str:
    names = list(cards())
    at = names.index(card.id)
    links = [("#all", "All lessons")]
    if at:
        links.append((f"#lesson={names[at - 1]}", f"Before: {cards()[names[at - 1]].title}"))
    if at + 1 < len(names):
        links.append((f"#lesson={names[at + 1]}", f"Next: {cards()[names[at + 1]].title}"))
    return f'<p class="rw-next">{"".join(f"<a href={href!r}>{html.escape(words)}</a>" for href, words in links)}</p>'


def teacher(made: Plan) -> str:
    """The plan of a class: a row a part, with its minutes, what to do, what to ask."""
    reached = 0
    rows = []
    for stage in made.stages:
        rows.append(_stage(stage, reached))
        reached += stage.minutes
    ready = "".join(f"<li>{html.escape(line)}</li>" for line in made.before)
    after = "".join(f"<li>{html.escape(line)}</li>" for line in made.after)
    return (
        f'<section data-part="teacher" hidden><h2>{html.escape(made.title)}</h2><div class="rw-box"><h3>Before the class</h3><ul class="rw-fine">{ready}</ul></div>'
        f'<ol class="rw-stages">{"".join(rows)}</ol><div class="rw-box"><h3>Afterwards</h3><ul class="rw-fine">{after}</ul></div>{_notes()}</section>'
    )


def _stage(stage: Stage, begins: int) -> str:
    asks = "".join(f"<li>{html.escape(one)}</li>" for one in stage.ask)
    opens = ""
    if stage.lesson and stage.run:
        label = cards()[stage.lesson].runs[stage.run].moments[stage.moment].label
        opens = (
            f'<p class="rw-fine" data-of="{stage.lesson}">In the Lab: <button type="button" class="rw-link" data-run="{html.escape(stage.run)}" data-moment="{stage.moment}">'
            f"{html.escape(label)}</button></p>"
        )
    listen = f'<p class="rw-fine"><b>Listen for:</b> {html.escape(stage.listen_for)}</p>' if stage.listen_for else ""
    whose = f' · <a href="#lesson={stage.lesson}">lesson {stage.lesson.removeprefix("L")}</a>' if stage.lesson else ""
    return (
        f'<li><span class="rw-clock">{begins} to {begins + stage.minutes} min</span><div><b>{html.escape(stage.title)}</b>{whose}<p class="rw-fine">{html.escape(stage.do)}</p>'
        f"{opens}{f'<ul class=rw-asks>{asks}</ul>' if asks else ''}{listen}</div></li>"
    )


def _notes() -> str:
    notes = "".join(f"<li><a href='#lesson={card.id}'>{card.id}</a> {html.escape(card.teacher)}</li>" for card in cards().values() if card.teacher)
    return f'<div class="rw-box"><h3>Lesson by lesson: what to ask, and where learners stumble</h3><ul class="rw-fine rw-notes">{notes}</ul></div>'


def terms() -> str:
    """Every term of the course, with the lesson that defines it."""
    home = {term: card.id for card in cards().values() for term in card.defines}
    entries = "".join(
        f'<dt>{html.escape(term)}</dt><dd>{html.escape(words)} <a href="#lesson={home[term]}">{home[term]}</a></dd>'
        for term, words in sorted(glossary().items(), key=lambda item: item[0].lower())
    )
    return f'<section data-part="terms" hidden><h2>Terms</h2><dl class="rw-terms">{entries}</dl></section>'
