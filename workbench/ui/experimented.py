"""What came out of an experiment, as its page shows it. The last ones are kept, with those of their runs that can be opened in the Lab."""

from __future__ import annotations

import html
import secrets
import threading
from collections import OrderedDict
from dataclasses import dataclass, field

from fastapi import FastAPI
from fastapi.responses import PlainTextResponse, RedirectResponse, Response

from workbench.experiments import Experiment
from workbench.experiments.guessing import Grade
from workbench.experiments.words import amount, verdict
from workbench.runner import Run as Finished
from workbench.ui.runs import Run, Runs

KEPT = 6
"""Results remembered; the oldest are forgotten."""


@dataclass
class Made:
    """One experiment that was carried out, and its runs by what they were."""

    result: Experiment
    size: str
    runs: dict[str, Finished]
    answer: float | str | None = None
    """What somebody expected; None: they skipped that."""
    id: str = field(default_factory=lambda: secrets.token_urlsafe(8))
    opened: dict[int, str] = field(default_factory=dict)


class Kept:
    """The last results by id."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Made] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, made: Made) -> None:
        """Remember one, and forget the oldest beyond `KEPT`."""
        with self._lock:
            self._kept[made.id] = made
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)

    def get(self, id: str | None) -> Made | None:
        """One by its id; None where it was never made or is forgotten."""
        return self._kept.get(id or "")

    def open(self, runs: Runs, id: str, number: int) -> str | None:
        """The id under which the Lab shows a result's run, made ready the first time; None where it is gone."""
        made = self.get(id)
        if made is None or not 0 <= number < len(made.runs):
            return None
        with self._lock:
            known = made.opened.get(number)
            if known is None or runs.get(known) is None:
                finished = list(made.runs.values())[number]
                run = Run.of_trace(finished.trace, "live")
                run.finished, run.scenario = finished, finished.scenario
                runs.add(run)
                made.opened[number] = known = run.id
        return known


def add_routes(app: FastAPI, kept: Kept, runs: Runs) -> None:
    """The way from a result to one of its runs in the Lab."""

    @app.get("/experiments/{id}/runs/{number}")
    def open_run(id: str, number: int) -> Response:
        run = kept.open(runs, id, number)
        if run is None:
            return PlainTextResponse("this run is gone; run the experiment again to open it", 404)
        return RedirectResponse(f"/#run={run}", 303)


def words_of(made: Made, graded: Grade | None) -> str:
    """What became of the guess, the set-up, why ours may differ, and the runs that can be opened."""
    result = made.result
    parts = []
    if graded is not None:
        kind = {True: "right", False: "wrong", None: "near"}[graded.right]
        parts.append(f'<p class="rw-graded" id="graded" data-grade="{kind}">{html.escape(graded.words)} <span>The row that tells: {html.escape(graded.row)}.</span></p>')
    parts.append(f'<p class="rw-fine"><b>Set-up.</b> {html.escape(result.setup)}</p>')
    if result.differs_because:
        parts.append(f'<p class="rw-fine"><b>Why it may differ.</b> {html.escape(result.differs_because)}</p>')
    return "".join([*parts, _runs_of(made)])


def _runs_of(made: Made) -> str:
    if not made.runs:
        if made.result.run is None:
            return '<p class="rw-fine">The engine did not run for this one: there is nothing to open in the Lab.</p>'
        return '<p class="rw-fine">Its runs are too long to be opened in the Lab; the quick version\'s are not.</p>'
    links = "".join(
        f'<li><a href="/experiments/{made.id}/runs/{i}">{html.escape(what)}</a></li>' for i, what in enumerate(made.runs)
    )
    return f'<div class="rw-runs" id="runs"><b>Open a run in the Lab</b><ul>{links}</ul></div>'


def table_of(result: Experiment, telling: str | None) -> str:
    """Every row, ours beside the published figure, its kind and its source; the row that graded a guess is marked."""
    sources = list(dict.fromkeys(r.source for r in result.rows if r.source))
    rows = "".join(
        f"<tr{' data-telling=true' if r.label == telling else ''}><th scope='row'>{html.escape(r.label)}</th><td>{html.escape(amount(r.ours, r.unit))}</td>"
        f"<td>{html.escape(amount(r.published, r.unit))}{f'<sup>{sources.index(r.source) + 1}</sup>' if r.source and r.published is not None else ''}</td>"
        f"<td>{html.escape(verdict(r))}</td><td>{r.kind}</td></tr>"
        for r in result.rows
    )
    notes = "".join(f"<li>{html.escape(source)}</li>" for source in sources)
    below = f'<div class="rw-fine"><b>Published in</b><ol class="rw-sources">{notes}</ol></div>' if sources else ""
    heads = "".join(f"<th scope='col'>{words}</th>" for words in ("figure", "ours", "published", "agrees", "kind"))
    # A box that scrolls has to be reachable by keyboard.
    box = '<div class="rw-scroll" tabindex="0" role="region" aria-label="Figures, ours beside the published ones">'
    return f"{box}<table class='rw-table'><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>{below}"
