"""A tree of 500 nodes that changes five times a second: what a frame costs in headless Chromium (field note J6: under 100 ms).

    python benchmarks/tree_frames.py [--nodes 500] [--seconds 10]

Each change is a batch of events as a live run brings them. A frame's work is the page's own (fold, layout, drawing), timed in the
page; the gap between frames is what somebody sees, and depends on the machine's drawing too.
"""

from __future__ import annotations

import argparse
import json
import os
from typing import Any

from playwright.sync_api import sync_playwright

from benchmarks.make_trace import make
from benchmarks.player_seek import CHROMIUM, PAGE, percentile
from engine import events as ev
from workbench.ui import player

EVERY = 200
EVENTS = 8

CHANGES = """async ([header, events, batches, every]) => {
  const p = RadixPlayer.mount(document.getElementById('at'), { theme: 'light' });
  await p.load({ header, events });
  p.follow(true);
  await new Promise((done) => setTimeout(done, 1000));
  const work = [], gaps = [], first = [];
  let changed = false;
  const tick = p.tick.bind(p);
  p.tick = (now) => { const t = performance.now(); tick(now); work.push(performance.now() - t); if (changed) first.push(work[work.length - 1]); changed = false; };
  let last = 0, sent = 0;
  return new Promise((done) => {
    const feed = setInterval(() => { p.append(batches[sent++]); changed = true; if (sent >= batches.length) { clearInterval(feed); setTimeout(() => done({ work, gaps, first, nodes: p.tree.icicle.layout.n, cells: p.tree.icicle.cells.length }), every); } }, every);
    const frame = (now) => { if (last) gaps.push(now - last); last = now; if (sent < batches.length) requestAnimationFrame(frame); };
    requestAnimationFrame(frame);
  });
}"""


def spread(values: list[float]) -> str:
    """Median, 95th percentile and the worst."""
    return f"p50 {percentile(values, 0.5):.1f} ms, p95 {percentile(values, 0.95):.1f} ms, worst {max(values):.1f} ms"


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=10)
    args = parser.parse_args()
    trace = make(20 * args.nodes, args.nodes, seed=5)
    batches = int(args.seconds * 1000 / EVERY)
    lines = [json.loads(ev.encode(e)) for e in trace.events]
    cut = len(lines) - batches * EVENTS
    with sync_playwright() as chromium:
        browser = chromium.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.set_content(PAGE.format(css=player.styles(), js=player.sources()))
        fed = [lines[at : at + EVENTS] for at in range(cut, len(lines), EVENTS)]
        got: dict[str, Any] = page.evaluate(CHANGES, [json.loads(ev.encode(trace.header)), lines[:cut], fed, EVERY])
        browser.close()
    print(f"{got['nodes']} nodes in {got['cells']} cells, {1000 / EVERY:.0f} changes a second, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(f"{'work of a frame that brings a change':<40} {spread(got['first'])}")
    print(f"{'work of a frame':<40} {spread(got['work'])}")
    print(f"{'from frame to frame':<40} {spread(got['gaps'])}, {1000 * len(got['gaps']) / sum(got['gaps']):.0f} a second")


if __name__ == "__main__":
    main()
