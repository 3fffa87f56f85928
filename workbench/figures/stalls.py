"""When a long prompt was computed, and how long a running answer waited meanwhile: two lanes a run, in milliseconds.

A pure function of traces. The prompt's bars are filled, the answer's are hollow.
"""

from __future__ import annotations

from collections.abc import Mapping

import plotly.graph_objects as go

from engine import events as ev
from workbench.figures.look import COLOURS, look

FILLED, HOLLOW = COLOURS[0], "#b45309"


def stalls(runs: Mapping[str, ev.Trace], prompt: str, answer: str, until: float) -> go.Figure:
    """Lanes for each named trace up to `until` ms: `prompt`'s chunks, with their tokens; `answer`'s pauses between its tokens, in ms."""
    figure = go.Figure()
    for name, trace in runs.items():
        chunks, pauses = lanes(trace, prompt, answer)
        _bars(figure, f"{name}: the prompt", chunks, f"%{{text}} tokens of {prompt}", FILLED, solid=True)
        _bars(figure, f"{name}: {answer} waits", [p for p in pauses if p[0] < until], f"a pause of %{{x:.0f}} ms in {answer}", HOLLOW, solid=False)
    look(figure, 60 + 48 * len(figure.data), barmode="overlay", bargap=0.35, uniformtext={"minsize": 10, "mode": "hide"})
    figure.update_xaxes(title_text="ms since the start", range=[0, until])
    return figure.update_yaxes(autorange="reversed")


def lanes(trace: ev.Trace, prompt: str, answer: str) -> tuple[list[tuple[float, float, int]], list[tuple[float, float, int]]]:
    """(start, duration, tokens) of each chunk of `prompt`; (start, duration, duration rounded) of each pause of `answer`."""
    chunks, pauses = [], []
    planned: dict[int, ev.StepPlanned] = {}
    last: float | None = None
    for event in trace.events:
        if isinstance(event, ev.StepPlanned):
            planned[event.step] = event
        elif isinstance(event, ev.StepFinished):
            plan, end = planned[event.step], round(1000 * event.t, 3)
            took = round(1000 * (event.forward_seconds + event.sample_seconds), 3)
            if prompt in plan.members[: plan.prefills]:
                chunks.append((end - took, took, plan.tokens[plan.members.index(prompt)]))
            if dict(zip(plan.members, event.emitted, strict=True)).get(answer):
                if last is not None:
                    pauses.append((last, end - last, round(end - last)))
                last = end
    return chunks, pauses


def _bars(figure: go.Figure, lane: str, bars: list[tuple[float, float, int]], hover: str, colour: str, *, solid: bool) -> None:
    figure.add_bar(
        base=[start for start, _, _ in bars], x=[took for _, took, _ in bars], y=[lane] * len(bars), orientation="h", name=lane, showlegend=False,
        marker={"color": colour if solid else "rgba(0,0,0,0)", "line": {"color": "#fbfaf7" if solid else colour, "width": 1 if solid else 1.5}},
        text=[str(n) for _, _, n in bars], textposition="inside", insidetextanchor="middle", textangle=0,
        insidetextfont={"color": "#ffffff" if solid else colour}, hovertemplate=f"{hover}, from %{{base:.0f}}<extra></extra>",
    )  # fmt: skip
