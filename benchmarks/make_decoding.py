"""Record the two runs that the Decode page opens on: its first preset, with jump-forward and plain. Run it on an idle machine."""

from __future__ import annotations

from engine import load_model
from engine.config import EngineConfig
from workbench import presets
from workbench.compare import warm_up_of
from workbench.decoding import decode
from workbench.figures.tapes import sentences
from workbench.runner import run
from workbench.ui import grammar_place
from workbench.ui.decode_page import FEW, OPENS_WITH, arm, asked_of, scenario_of


def main() -> None:
    """Write assets/decoding/jump.jsonl and plain.jsonl, and say what they show."""
    preset = asked_of(OPENS_WITH)
    asked, _ = grammar_place.read(preset["kind"], preset["grammar"], EngineConfig())
    base = scenario_of(OPENS_WITH, preset["prompt"], asked, preset["spacing"], preset["cap"])
    loaded = load_model("embedded")
    run(warm_up_of(arm(base, "verified")), loaded=loaded)
    tapes = []
    for name, jump in (("jump", "verified"), ("plain", "off")):
        trace = run(arm(base, jump), loaded=loaded, logprobs=FEW).trace
        trace.write(presets.assets() / "decoding" / f"{name}.jsonl")
        tapes.append(decode(trace))
    print("\n".join(sentences(*tapes)))


if __name__ == "__main__":
    main()
