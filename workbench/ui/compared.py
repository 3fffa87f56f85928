"""What came out of a comparison, as the Compare page shows it. The last ones are kept, so that an address opens them again."""

from __future__ import annotations

import html
import json
import secrets
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from workbench.compare import Comparison
from workbench.figures.verdict import for_whom_later, sentence
from workbench.times import machine, simulated

KEPT = 20
"""Comparisons remembered; the oldest are forgotten."""


@dataclass(frozen=True)
class Asked:
    """What stood in the controls."""

    traffic: str
    question: str
    arms: str
    repeats: int


@dataclass(frozen=True)
class Compared:
    """One comparison that has been made; `runs` are the arms' last ones, by id and last event: they answer for their requests."""

    asked: Asked
    result: Comparison
    runs: Sequence[tuple[str, int]]
    id: str = field(default_factory=lambda: secrets.token_urlsafe(8))

    def address(self) -> str:
        """What the page's script needs to know, as JSON: where this can be opened again, and whom to ask about a request."""
        arms = [{"name": a.name, "run": run, "last": last} for a, (run, last) in zip(self.result.arms, self.runs, strict=True)]
        return json.dumps({"id": self.id, "arms": arms})


class Kept:
    """The last comparisons by id."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Compared] = OrderedDict()

    def add(self, compared: Compared) -> None:
        """Remember one, and forget the oldest beyond `KEPT`."""
        self._kept[compared.id] = compared
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)

    def get(self, id: str) -> Compared | None:
        """One by its id; None where it was never made or is forgotten."""
        return self._kept.get(id)


def words_of(result: Comparison) -> str:
    """The honest sentences: what was saved, whether outputs agree, where the arms part first."""
    lines = []
    off = len(result.arms) == 2 and result.arms[1].report.header.config.get("cache") == "off"
    lines.append(sentence(result) if off else _soonest(result))
    lines += [for_whom_later(result, arm) for arm in range(1, len(result.arms))]
    for arm in result.arms:
        t = arm.report.totals
        rate = "unknown" if t.hit_rate is None else f"{t.hit_rate:.0%}"
        middle = "unknown" if t.ttft.p50 is None else f"{t.ttft.p50:.3f} s"
        lines.append(f"{arm.name}: {t.cached_tokens:,} of {t.prompt_tokens:,} prompt tokens reused ({rate}), median TTFT {middle}, {t.evictions} evictions, {t.duration:.2f} s in all.")
    lines.append("The answers are identical in all arms, token for token." if result.outputs_equal else _parting(result))
    if result.first_decision:
        lines.append(f"First decision that differs: {result.first_decision.why}.")
    lines += dict.fromkeys(said for arm in result.arms if (said := machine(arm.report.header)))
    if result.warm_up:
        lines.append(f"Warm-up: {result.warm_up}. Order: {'; '.join(', '.join(o) for o in result.order)}.")
    return "".join(f'<p class="{"rw-lead" if i == 0 else "rw-fine"}">{html.escape(line)}</p>' for i, line in enumerate(lines))


def _soonest(result: Comparison) -> str:
    """Which arm had its first tokens soonest, by the medians."""
    medians = sorted((a.report.totals.ttft.p50, a.name) for a in result.arms if a.report.totals.ttft.p50 is not None)
    if not medians:
        return "No request had a first token."
    told = simulated(result.arms[0].report.header)
    medians_of = f" (medians, {told})" if told else " (medians)"
    (best, name), (worst, last) = medians[0], medians[-1]
    if not best or worst / best < 1.01:
        return f"The first token came at the same time in every arm: after {best:.3f} s{medians_of}."
    return f"With {name} the first token came {worst / best:.1f} times sooner than with {last}: after {best:.3f} s against {worst:.3f} s{medians_of}."


def _parting(result: Comparison) -> str:
    d = result.first_difference
    if d is None:
        return "The answers differ."
    gap = "unknown" if d.gap is None else f"{d.gap:.4f}"
    return f"The answers differ first in {d.request}, at output token {d.position + 1}; the gap between the first arm's two best tokens there was {gap} (log-probability)."


def table_of(result: Comparison) -> str:
    """Every request in every arm: TTFT and its share of the whole request."""
    head = "".join(f"<th scope='col'>{html.escape(a.name)}: TTFT</th><th scope='col'>of its whole time</th>" for a in result.arms)
    rows = []
    for pair in result.paired:
        cells = "".join(
            f"<td>{'-' if t is None else f'{t:.3f} s'}</td><td>{'-' if s is None else f'{s:.0%}'}</td>"
            for t, s in zip(pair.ttft, pair.share_of_total, strict=True)
        )
        id = html.escape(pair.id)
        rows.append(f"<tr data-request='{id}'><th scope='row'><button type='button' class='rw-link' aria-expanded='false'>{id}</button></th>{cells}</tr>")
    hint = "<p class='rw-fine'>Press a request to read, arm by arm, why it reused what it did, and to open it in the Lab.</p>"
    return f"{hint}<div class='rw-scroll'><table class='rw-table'><thead><tr><th scope='col'>request</th>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
