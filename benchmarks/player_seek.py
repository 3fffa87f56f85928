"""The player in headless Chromium: random seeks in a long trace, and the frame rate of a live run.

    python benchmarks/player_seek.py [--events 100000] [--nodes 3000] [--seeks 300] [--seconds 8]

Seeks: fold, layout and drawing commands of the whole page, timed in the page, at random positions.
Seeks are timed again with a node (the root of nearly all) and with a request selected.
Live: a request is selected, and events arrive in batches of 50 ms at 2,000 a second on a tree of that size; frames are counted over
the whole time, and the slowest twentieth is told as well.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from typing import Any

from playwright.sync_api import Page, sync_playwright

from benchmarks.make_trace import make
from engine import events as ev
from workbench import export
from workbench.ui import player

CHROMIUM = os.environ.get("CHROMIUM") or ("/usr/bin/chromium" if os.path.exists("/usr/bin/chromium") else None)
RATE = 2000
BATCH = 0.05
SELECTED = {"node": {"node": 2}, "request": {"request": "R100"}}
PAGE = "<!doctype html><meta charset=utf-8><style>{css} body{{margin:0}}</style><div id=at></div><script>{js}</script>"

SEEKS = """([n, selected]) => {
  const p = window.player, out = [];
  let x = 12345;
  p.select(selected);
  for (let i = 0; i < n + 20; i++) {
    x = (Math.imul(x, 1103515245) + 12345) >>> 0;
    const seq = Math.floor((x / 4294967296) * p.trace.length);
    const t0 = performance.now();
    p.seek(seq); const t1 = performance.now();
    p.draw(); const t2 = performance.now();
    if (i >= 20) out.push([t2 - t0, t1 - t0, t2 - t1, p.now.live]);
  }
  return out;
}"""

FRAMES = """([batches, every]) => new Promise((done) => {
  const p = window.player, gaps = [], work = [];
  let last = 0, sent = 0;
  const start = performance.now();
  const feed = setInterval(() => {
    const t = performance.now();
    p.append(batches[sent++]);
    work.push(performance.now() - t);
    if (sent >= batches.length) { clearInterval(feed); setTimeout(() => done({
      gaps, work, events: p.trace.length, nodes: p.now.live, took: performance.now() - start }), 0); }
  }, every);
  const frame = (now) => { if (last) gaps.push(now - last); last = now; if (sent < batches.length) requestAnimationFrame(frame); };
  requestAnimationFrame(frame);
})"""


def percentile(values: list[float], q: float) -> float:
    """Nearest rank."""
    ranked = sorted(values)
    return ranked[min(len(ranked) - 1, int(q * len(ranked)))]


def seeks(page: Page, trace: ev.Trace, n: int) -> list[tuple[str, str]]:
    """Load the packed run, then time `n` random seeks."""
    packed = export.pack(trace)
    page.evaluate("() => { window.player = RadixPlayer.mount(document.getElementById('at'), { theme: 'light' }); }")
    took = page.evaluate(
        "async (packed) => { const t = performance.now(); await window.player.load({ packed }); return performance.now() - t; }", packed
    )
    rows = page.evaluate(SEEKS, [n, None])
    whole = [r[0] for r in rows]
    chosen = {what: [r[0] for r in page.evaluate(SEEKS, [n, selection])] for what, selection in SELECTED.items()}
    return [
        ("packed run", f"{len(packed) / 1000:.0f} KB, {len(packed) / len(trace) * 10:.0f} KB per 10,000 events"),
        ("decode and index", f"{took:.0f} ms"),
        ("live nodes, median", f"{percentile([r[3] for r in rows], 0.5):.0f}"),
        ("random seek, whole page", f"p50 {percentile(whole, 0.5):.1f} ms, p95 {percentile(whole, 0.95):.1f} ms"),
        *[(f"  with a {what} selected", f"p50 {percentile(v, 0.5):.1f} ms, p95 {percentile(v, 0.95):.1f} ms") for what, v in chosen.items()],
        ("  of it: fold", f"p50 {percentile([r[1] for r in rows], 0.5):.1f} ms, p95 {percentile([r[1] for r in rows], 0.95):.1f} ms"),
        ("  of it: layout and drawing", f"p50 {percentile([r[2] for r in rows], 0.5):.1f} ms, p95 {percentile([r[2] for r in rows], 0.95):.1f} ms"),
    ]


def live(page: Page, trace: ev.Trace, seconds: float) -> list[tuple[str, str]]:
    """Load all but the last events, then feed those at the target rate while following."""
    per = int(RATE * BATCH)
    batches = int(seconds / BATCH)
    cut = len(trace) - per * batches
    lines = [json.loads(ev.encode(e)) for e in trace.events]
    page.evaluate(
        """async ([header, events]) => {
          window.player.destroy();
          window.player = RadixPlayer.mount(document.getElementById('at'), { theme: 'light' });
          await window.player.load({ header, events });
          window.player.select({ request: 'R100' });
          window.player.follow(true);
        }""",
        [json.loads(ev.encode(trace.header)), lines[:cut]],
    )
    time.sleep(0.5)
    fed = [json.dumps(lines[cut + i * per : cut + (i + 1) * per]) for i in range(batches)]
    got: dict[str, Any] = page.evaluate(FRAMES, [fed, BATCH * 1000])
    gaps = got["gaps"]
    return [
        ("live, events a second", f"{per * batches / got['took'] * 1000:.0f}"),
        ("live, nodes at the end", f"{got['nodes']}"),
        ("live, frames a second", f"{1000 * len(gaps) / sum(gaps):.1f} (frame p95 {percentile(gaps, 0.95):.1f} ms, worst {max(gaps):.1f} ms)"),
        ("live, append of one batch", f"p50 {percentile(got['work'], 0.5):.1f} ms, p95 {percentile(got['work'], 0.95):.1f} ms"),
    ]


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--nodes", type=int, default=3000)
    parser.add_argument("--seeks", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=8)
    args = parser.parse_args()
    trace = make(args.events, args.nodes, seed=7)
    with sync_playwright() as chromium:
        browser = chromium.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.set_content(PAGE.format(css=player.styles(), js=player.sources()))
        rows = seeks(page, trace, args.seeks) + live(page, trace, args.seconds)
        browser.close()
    print(f"{len(trace):,} events, up to {args.nodes:,} nodes, 1440 x 900, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    for name, value in rows:
        print(f"{name:<30} {value}")


if __name__ == "__main__":
    main()
