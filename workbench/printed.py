"""A report and a comparison as plain text, for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.compare import Comparison
from workbench.recording import Again
from workbench.report import Report
from workbench.times import machine

if TYPE_CHECKING:
    from engine import Calibration


def _seconds(value: float | None, simulated: bool) -> str:
    return "-" if value is None else f"{value:.3f} s" + (" sim." if simulated else "")


def table(report: Report) -> str:
    """A row a request, then the sums."""
    simulated = report.header.clock == "virtual"
    rows = [("request", "status", "prompt", "cached", "computed", "output", "TTFT")]
    rows += [
        (
            r.id, f"{r.status}, {r.finish_reason}" if r.finish_reason else r.status, str(r.prompt_tokens),
            _count(r.cached_tokens), _count(r.computed_tokens), str(len(r.output_ids)), _seconds(r.ttft, simulated),
        )
        for r in report.requests
    ]  # fmt: skip
    lines = _columns(rows, left=2)
    t = report.totals
    rate = "unknown" if t.hit_rate is None else f"{t.hit_rate:.1%}"
    lines.append(
        f"\n{t.cached_tokens:,} of {t.prompt_tokens:,} prompt tokens reused ({rate}{t.transfer}), {t.steps:,} steps, "
        f"{t.evictions:,} evictions of {t.evicted_tokens:,} tokens, {_seconds(t.duration, simulated)}"
    )
    if report.replicas is not None:
        lines += ["", *_replicas(report)]
    if report.pool.host is not None:
        lines.append(f"host tier: {t.demoted_tokens:,} tokens left the device for it, {t.loaded_tokens:,} were loaded back, {report.pool.host:,} pages in use")
    if report.invariants is not None:
        lines.append(f"invariants: {report.invariants if report.invariants == 'ok' else '; '.join(report.invariants)}")
    lines += [said] if (said := machine(report.header)) else []
    return "\n".join(lines)


def _columns(rows: list[tuple[str, ...]], left: int) -> list[str]:
    """Rows with their columns in line, the first `left` of them flush left."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  ".join(cell.ljust(w) if i < left else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))) for row in rows]


def _replicas(report: Report) -> list[str]:
    """Reuse against load, a row a replica."""
    rows = [("replica", "requests", "prompt tokens", "share", "reused", "busy", "most waiting")]
    rows += [
        (str(r.replica), f"{r.requests:,}", f"{r.prompt_tokens:,}", _share(r.share), _share(r.hit_rate), _share(r.busy), f"{r.most_waiting:,}")
        for r in report.replicas or []
    ]
    return _columns(rows, left=1)


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def table_again(again: Again) -> str:
    """The recording's own times where it was served as recorded: a replay computes nothing and has none."""
    if not again.same:
        return f"{table(again.run.report)}\nReplayed without the model, and served otherwise than it was recorded. {simulated_at(again.run.report)}"
    again.recorded.invariants = again.run.report.invariants
    header = again.recorded.header
    where = " · ".join(filter(None, [header.model or header.executor, header.device, header.dtype]))
    return f"{table(again.recorded)}\nReplayed without the model: served as it was recorded. The times are the recording's ({where})."


def simulated_at(report: Report) -> str:
    """What a simulated second of a replay stands for."""
    clock = report.header.config.get("clock") or {}
    return f"Times are simulated, not measured: a step counts {clock.get('step', 1):g} s and {clock.get('token', 0):g} s a token, whatever it would compute."


def calibration_table(made: Calibration) -> str:
    """Every pass beside what the fitted roofline says of it, then the roofline."""
    machine, shape = made.profile.accelerator, made.profile.shape
    rows = [("rows", "tokens before", "forwarded", "measured", "fitted", "off by")]
    rows += [
        (str(p.rows), f"{p.before:,}", str(p.new), f"{p.seconds * 1e3:.1f} ms", f"{p.fitted * 1e3:.1f} ms", f"{100 * (p.fitted / p.seconds - 1):+.0f} %")
        for p in made.passes
    ]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True)) for row in rows]
    lines.append(
        f"\n{shape.name} in {shape.dtype} on {machine.name}, {machine.source}: {machine.flops / 1e9:,.1f} GFLOP/s and {machine.bandwidth / 1e9:,.1f} GB/s "
        f"reached, {machine.overhead * 1e3:.1f} ms a pass and {machine.row * 1e3:.2f} ms a row beside, KV moved {machine.kv_moves:.1f} times; {machine.link / 1e9:,.1f} GB/s to the host"
        "\nAll passes of one model read the same weights, so the rate of memory, how often KV is moved and the time a pass can hardly be told apart: only together do they mean something."
    )
    return "\n".join(lines)


def _count(value: int | None) -> str:
    return "-" if value is None else str(value)


def comparison_table(result: Comparison) -> str:
    """The times of every request arm by arm, then what differs."""
    simulated = result.arms[0].report.header.clock == "virtual"
    lines = ["TTFT by request: " + ", ".join(a.name for a in result.arms)]
    for pair in result.paired:
        shares = ", ".join("-" if s is None else f"{s:.0%}" for s in pair.share_of_total)
        lines.append(f"{pair.id}: " + " against ".join(_seconds(v, simulated) for v in pair.ttft) + f" (share of the whole request {shares})")
    for arm in result.arms:
        t = arm.report.totals
        lines.append(f"{arm.name}: {t.computed_tokens:,} prompt tokens computed, {t.cached_tokens:,} reused, {_seconds(t.duration, simulated)} in all")
    lines.append("outputs: identical" if result.outputs_equal else f"outputs: differ, first at {result.first_difference}")
    if result.first_decision:
        lines.append(f"first decision that differs: {result.first_decision.why}")
    lines += dict.fromkeys(said for arm in result.arms if (said := machine(arm.report.header)))
    return "\n".join(lines)
