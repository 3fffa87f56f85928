"""TTFT of a 2,176-token prompt, computed whole and with its first 2,048 tokens cached, in one run.

Float32 is the claim (at least 8 times sooner); bfloat16 is printed beside, with the first output token
that differs and the gap between its two best there. `python benchmarks/prefix_ttft.py [--repeats 3]`
"""

from __future__ import annotations

import argparse
import random
import statistics
from typing import Any

from engine import Engine, EngineConfig, load_model
from engine import events as ev

PROMPT, CACHED, OUTPUTS = 2176, 2048, 16


def ask(loaded: Any, prompt: list[int], cached: int) -> tuple[float, list[int], list[float]]:
    """A fresh engine; the prefix first where one is to be cached. Returns TTFT, output ids, top-two gaps."""
    config = EngineConfig(executor="model", cache="radix" if cached else "off", pages=PROMPT + OUTPUTS + 64)
    engine = Engine(config=config, loaded=loaded)
    if cached:
        engine.submit(prompt[:cached], id="prefix", max_new_tokens=0)
        for _ in engine.run():
            pass
    engine.submit(prompt, id="whole", max_new_tokens=OUTPUTS, ignore_eos=True, logprobs=2)
    ids: list[int] = []
    for steps in engine.run():
        ids += [i for p in steps for i in p.ids]
    first = next(e for e in engine.trace if isinstance(e, ev.RequestFirstToken) and e.request == "whole")
    admitted = next(e for e in engine.trace if isinstance(e, ev.RequestAdmitted) and e.request == "whole")
    assert admitted.cached == cached, f"{admitted.cached} tokens were found, {cached} expected"
    gaps = [e.top[0][1] - e.top[1][1] for e in engine.trace if isinstance(e, ev.TokenEmitted)]
    return first.ttft, ids, gaps


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--model", default="embedded")
    parser.add_argument("--device", default="auto")
    args = parser.parse_args()
    for dtype in ("float32", "bfloat16"):
        loaded = load_model(args.model, device=args.device, dtype=dtype)
        whole, part = [], []
        for repeat in range(args.repeats + 1):
            rng = random.Random(repeat)
            prompt = [rng.randrange(100, 49000) for _ in range(PROMPT)]
            arms = [(whole, 0), (part, CACHED)]
            if repeat % 2:
                arms.reverse()
            results = {}
            for times, cached in arms:
                ttft, ids, gaps = ask(loaded, prompt, cached)
                results[cached] = (ids, gaps)
                if repeat:  # the first repeat warms up
                    times.append(ttft)
        a, b = statistics.median(whole), statistics.median(part)
        print(f"{dtype}: whole {a * 1e3:.0f} ms, {CACHED:,} cached {b * 1e3:.0f} ms: {a / b:.1f} times sooner (median of {args.repeats})")
        (x, gaps), (y, _) = results[0], results[CACHED]
        part_at = next((i for i, (p, q) in enumerate(zip(x, y, strict=True)) if p != q), None)
        if part_at is None:
            print(f"{dtype}: the {OUTPUTS} output tokens are identical")
        else:
            print(f"{dtype}: outputs part at token {part_at + 1}; top-two gap there {gaps[part_at]:.4f} (log-probability)")


if __name__ == "__main__":
    main()
