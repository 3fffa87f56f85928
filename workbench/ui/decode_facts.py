"""What the Decode page is told about one or two runs, and its routes."""

from __future__ import annotations

import math
from typing import Any

import msgspec
from fastapi import FastAPI
from fastapi.responses import PlainTextResponse, Response

from workbench import decoding
from workbench.decoding import Decoding, NothingToShowError
from workbench.figures import masks, tapes
from workbench.figures.automaton import Map, states_of, view
from workbench.figures.automaton_svg import Drawing
from workbench.ui import decode
from workbench.ui.runs import Run
from workbench.ui.worker import Worker

GONE = "This run is gone: the server remembers the last few only. Run it again above."
WIDTHS = (260, 2400)
"""Narrowest and widest drawing of an automaton, in px."""


def facts(arms: list[tuple[Run, Decoding]]) -> dict[str, Any]:
    """All that the page shows apart from the automaton's drawing; the first arm jumps, the second is plain."""
    run, first = arms[0]
    trace = run.trace()
    header = trace.header
    plain = arms[1][1] if len(arms) > 1 else None
    return {
        "name": header.scenario, "note": header.note, "recorded": run.kind == "recorded",
        "about": " · ".join(x for x in (header.model, header.device, header.dtype) if x) or "scripted model",
        "simulated": first.simulated, "vocabulary": header.vocabulary, "eos": header.eos,
        "words": tapes.sentences(first, plain),
        "columns": [list(c) for c in tapes.align(first.tokens, plain.tokens)] if plain else None,
        "arms": [arm(r, d, header.vocabulary) for r, d in arms],
        "costs": costs([d for _, d in arms]),
        "grammar": grammar(first),
    }  # fmt: skip


def arm(run: Run, d: Decoding, vocabulary: int | None) -> dict[str, Any]:
    """One tape."""
    return {
        "run": run.id, "name": arm_name(d), "mode": d.mode, "passes": d.passes, "saved": d.saved, "request": d.request, "status": d.status, "text": d.text,
        "counts": {s: d.count(s) for s in decoding.SOURCES} | {"rolled back": d.rolled_back},
        "tokens": [
            {
                "id": t.id, "text": t.text, "source": t.source, "pass": t.number, "state": t.state, "target": t.target,
                "allowed": t.allowed, "p": None if t.logprob is None else math.exp(t.logprob),
                "top": [{"id": c.id, "text": c.text, "p": math.exp(c.logprob), "forbidden": c.forbidden} for c in t.top],
                "told": masks.told(d, i, vocabulary), "share": masks.share(t),
            }
            for i, t in enumerate(d.tokens)
        ],
        "back": [msgspec.to_builtins(b) for b in d.back],
    }  # fmt: skip


def arm_name(d: Decoding) -> str:
    """What a tape is called."""
    return {"off": "plain", "verified": "jump, verified", "unverified": "jump, unverified"}.get(d.mode, d.mode)


def grammar(d: Decoding) -> dict[str, Any] | None:
    """The grammar in figures."""
    g = d.grammar
    return g and {
        "kind": g.kind, "source": g.source, "backend": g.backend, "states": g.states, "start": g.start, "ends": g.ends,
        "edges": [[e.source, e.target, e.label, e.forced] for e in g.edges[:MOST_EDGES]], "count": len(g.edges),
    }  # fmt: skip


MOST_EDGES = 400
"""Edges that the table lists."""


def costs(arms: list[Decoding]) -> list[list[str]]:
    """Rows of the table of costs: what, then each arm."""

    def row(what: str, value: Any) -> list[str]:
        return [what, *(str(value(d)) for d in arms)]

    rows = [
        row("passes", lambda d: f"{d.passes:,}"),
        row("tokens of the answer", lambda d: f"{len(d.tokens):,}"),
        row("sampled", lambda d: f"{d.count('sampled'):,}"),
        row("forced (the mask left one)", lambda d: f"{d.count('forced'):,}"),
        row("jumped (no pass of their own)", lambda d: f"{d.count('jumped'):,}"),
        row("drafted and rolled back", lambda d: f"{d.rolled_back:,}"),
        row("masks", lambda d: f"{sum(t.allowed is not None for t in d.tokens):,}"),
        row("a mask, median", lambda d: duration(d.mask_median)),
        row("all masks", lambda d: duration(sum(d.masks) if d.masks else None)),
        row("first token after", lambda d: duration(d.ttft)),
        row("whole answer after", lambda d: duration(d.duration)),
        row(
            "compiling the grammar, once",
            lambda d: duration(d.grammar.seconds if d.grammar and not d.simulated else None),
        ),
    ]
    respelt = row("spelt anew", lambda d: f"{d.count('respelt'):,}")
    if any(d.count("respelt") for d in arms):
        rows.insert(5, respelt)
    return rows


def duration(seconds: float | None) -> str:
    """Seconds in a readable unit; a dash where nothing was measured."""
    if seconds is None:
        return "–"
    if seconds < 0.001:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * 1000:.3g} ms" if seconds < 0.9995 else f"{seconds:.2f} s"


def drawing(arms: list[Decoding], width: float) -> dict[str, Any]:
    """The automaton's SVG, where each state of the tapes is in it, and how many states are hidden."""
    g = arms[0].grammar
    if g is None or not g.edges:
        return {"svg": None, "places": {}, "hidden": 0, "shown": 0}
    known = Map(g.edges, g.ends)
    states = states_of(arms)
    shown = view(known, g.start, states)
    places = {str(s): place_of(known, s) for s in {g.start, *states} if s in known.places}
    svg = Drawing(known, shown, g.start, min(max(width, WIDTHS[0]), WIDTHS[1])).draw()
    return {"svg": svg, "places": places, "hidden": shown.hidden, "shown": len(shown.graph)}


def place_of(known: Map, state: int) -> dict[str, Any]:
    """Where a state is drawn; of one within a run also the run's text."""
    place = known.places[state]
    label = None if place.edge is None else known.edges[place.edge].label
    return {"node": place.node, "edge": place.edge, "share": place.share, "label": label}


def add_routes(app: FastAPI, worker: Worker) -> None:
    """Register the Decode page's routes on `app`."""

    def arms(run: str, plain: str | None, request: str | None) -> list[tuple[Run, Decoding]]:
        found = [worker.runs.get(id) for id in (run, plain) if id]
        if not all(r is not None and r.header for r in found):
            raise KeyError(run)
        return [(r, decoding.decode(r.trace(), request)) for r in found if r is not None]

    @app.get("/decode.js")
    def script() -> Response:
        return Response(decode.sources(), media_type="text/javascript", headers={"Cache-Control": "no-cache"})

    @app.get("/decode/facts")
    def told(run: str, plain: str | None = None, request: str | None = None) -> Response:
        try:
            return Response(msgspec.json.encode(facts(arms(run, plain, request))), media_type="application/json")
        except KeyError:
            return PlainTextResponse(GONE, 404)
        except NothingToShowError as error:
            return PlainTextResponse(str(error), 400)

    @app.get("/decode/automaton")
    def automaton(run: str, width: float, plain: str | None = None, request: str | None = None) -> Response:
        try:
            drawn = drawing([d for _, d in arms(run, plain, request)], width)
        except KeyError:
            return PlainTextResponse(GONE, 404)
        except NothingToShowError as error:
            return PlainTextResponse(str(error), 400)
        return Response(msgspec.json.encode(drawn), media_type="application/json")
