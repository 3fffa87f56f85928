"""The preset of the host tier shows what its note says: both answers, in one step, by the figures that it names."""

from __future__ import annotations

from engine import events as ev
from workbench import scenario
from workbench.explain import Explainer
from workbench.runner import run


def test_one_is_loaded_and_the_other_computed_again_in_the_same_step_by_the_figures_of_the_note() -> None:
    done = run(scenario.load("host-tier"), check=True)
    one, two = ({e.request: e for e in done.trace if isinstance(e, ev.RequestAdmitted)}[name] for name in ("R4", "R5"))
    assert one.step == two.step and (one.host, two.host) == (64, 64) and (one.loaded, two.loaded) == (64, 0)
    figures = [f"{s:.3f}" for s in (one.load_seconds, one.recompute_seconds, two.load_seconds, two.recompute_seconds) if s is not None]
    assert figures == ["0.427", "0.640", "0.853", "0.640"]
    note = done.scenario.note
    assert note is not None and all(figure in note for figure in figures)
    explainer, end = Explainer(done.trace), len(done.trace) - 1
    assert explainer.request(end, "R4").headline.startswith("R4 (first contract again) reused 64 of its 67 prompt tokens")
    assert "64 tokens of it loaded from the host: 427 ms, where computing takes 640 ms." in " ".join(explainer.request(end, "R4").detail).lower()
    assert "computed again: 640 ms, where loading takes 853 ms." in " ".join(explainer.request(end, "R5").detail)
