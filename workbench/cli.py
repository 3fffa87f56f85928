"""The commands: run, compare, experiment, experiments, why, export, app.

Progress goes to stderr; `--json` prints one document on stdout. Exit codes: 0; 1 a broken invariant or
failed check; 2 bad input; 130 stopped.
"""

from __future__ import annotations

import argparse
import functools
import sys
from pathlib import Path
from typing import Any

import msgspec

from engine import ModelError
from engine import events as ev
from workbench import compare as comparing
from workbench import experiments
from workbench import scenario as scenarios
from workbench.experiments.words import table
from workbench.explain import Explainer, plain
from workbench.presets import preset_names
from workbench.recording import as_scenario
from workbench.report import Report
from workbench.runner import run

OK, BROKEN, BAD_INPUT, STOPPED = 0, 1, 2, 130


def main(argv: list[str] | None = None) -> int:
    """Parse the command line and run one command; returns the exit code."""
    parser = _parser()
    args = parser.parse_args(argv)
    try:
        code: int = args.do(args)
        return code
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return STOPPED
    except (ValueError, OSError, ModelError) as error:
        print(f"error: {error}", file=sys.stderr)
        return BAD_INPUT


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m workbench", description="Watch an LLM serving engine think.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    one = commands.add_parser("run", help="run a scenario", description=f"Presets: {', '.join(preset_names())}.")
    _common(one)
    one.add_argument("--trace", type=Path, metavar="OUT.jsonl", help="write the trace")
    one.set_defaults(do=_run)

    two = commands.add_parser("compare", help="the same traffic under several configurations")
    _common(two)
    two.add_argument("--arm", action="append", default=[], metavar="NAME:KEY=V,KEY=V", help="one configuration; give two or more")
    two.add_argument("--repeats", type=int, default=1, help="runs an arm, order alternated")
    two.set_defaults(do=_compare)

    published = commands.add_parser("experiment", help="a published experiment, run here", description=f"Experiments: {', '.join(experiments.PLANS)}.")
    published.add_argument("name", metavar="NAME")
    published.add_argument("--quick", action="store_true", help="the small version, in seconds")
    published.add_argument("--model", default="embedded", help="for those that run a model: `embedded`, a transformers id or a local folder")
    published.add_argument("--json", action="store_true", help="print the result as one JSON document")
    published.set_defaults(do=_experiment)

    listed = commands.add_parser("experiments", help="the published experiments that can be run here")
    listed.set_defaults(do=_experiments)

    three = commands.add_parser("export", help="a recorded trace as one HTML file that opens offline")
    three.add_argument("trace", type=Path, metavar="TRACE.jsonl")
    three.add_argument("out", type=Path, metavar="OUT.html")
    three.set_defaults(do=_export)

    why = commands.add_parser("why", help="explain one moment of a recorded trace")
    why.add_argument("trace", type=Path, metavar="TRACE.jsonl")
    why.add_argument("--seq", type=int, default=None, metavar="N", help="the event to stand at; default: the last")
    about = why.add_mutually_exclusive_group()
    about.add_argument("--request", metavar="ID", help="about this request instead of the event")
    about.add_argument("--node", type=int, metavar="ID", help="about this tree node")
    about.add_argument("--page", type=int, metavar="N", help="about this page")
    why.add_argument("--json", action="store_true", help="print the answer as one JSON document")
    why.set_defaults(do=_why)

    four = commands.add_parser("app", help="serve the app on this machine")
    four.add_argument("--port", type=int, default=None, help="default: the first free one from 7860")
    four.add_argument("--model", default="embedded", help="`embedded`, a transformers id or a local folder")
    four.add_argument("--device", default="auto", choices=["auto", "cuda", "mps", "cpu"])
    four.add_argument("--dtype", default="auto", choices=["auto", "float32", "bfloat16", "float16"])
    four.set_defaults(do=_app)
    return parser


def _common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scenario", metavar="FILE", help="a preset's name, a scenario file, or a recorded trace (.jsonl) to replay")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="change a key, as engine.policy=lpm")
    parser.add_argument("--model", help="short for --set engine.model=...")
    parser.add_argument("--json", action="store_true", help="print the report as one JSON document")
    parser.add_argument("--check", action="store_true", help="watch the invariant at every step")


def _load(args: argparse.Namespace) -> tuple[scenarios.Scenario, Any]:
    overrides = scenarios.settings(args.set)
    if args.model:
        overrides["engine.model"] = args.model
    if args.scenario.endswith(".jsonl"):
        return as_scenario(ev.Trace.read(args.scenario), overrides), None
    scenario = scenarios.load(args.scenario, overrides)
    return scenario, _model(scenario)


def _tell(scenario: scenarios.Scenario) -> None:
    for line in scenario.told:
        print(f"workload: {line}", file=sys.stderr)


def _model(scenario: scenarios.Scenario) -> Any:
    if scenario.engine.executor != "model":
        return None
    from engine import load_model  # torch only where a model runs

    engine = scenario.engine
    return load_model(engine.model, device=engine.device, dtype=engine.dtype, progress=_progress())


def _progress() -> Any:
    last = [""]

    def tell(stage: str, fraction: float | None) -> None:
        line = stage if fraction is None else f"{stage} {fraction:.0%}"
        if line != last[0]:
            last[0] = line
            print(line, file=sys.stderr)

    return tell


def _run(args: argparse.Namespace) -> int:
    scenario, loaded = _load(args)
    _tell(scenario)
    done = run(scenario, loaded=loaded, check=args.check)
    if args.trace:
        done.trace.write(args.trace)
    if args.json:
        _print_json(done.report)
    else:
        print(_table(done.report))
    return BROKEN if isinstance(done.report.invariants, list) else OK


def _compare(args: argparse.Namespace) -> int:
    if args.repeats < 1:
        raise scenarios.ScenarioError(f"--repeats: must be 1 or more; got {args.repeats}")
    arms = [comparing.parse_arm(a) for a in args.arm]
    overrides = scenarios.settings(args.set)
    if args.model:
        overrides["engine.model"] = args.model
    scenario = scenarios.load(args.scenario, overrides)
    comparing.arms_of(scenario, arms)
    _tell(scenario)
    result, _ = comparing.compare(
        scenario, arms, repeats=args.repeats, loaded=_model(scenario), check=args.check,
        progress=lambda text: print(text, file=sys.stderr),
    )  # fmt: skip
    if args.json:
        _print_json(result)
    else:
        print(_comparison_table(result))
    return BROKEN if any(isinstance(a.report.invariants, list) for a in result.arms) else OK


def _experiment(args: argparse.Namespace) -> int:
    plan = experiments.find(args.name)

    @functools.cache
    def model() -> Any:
        from engine import load_model  # torch only where a model runs

        return load_model(args.model, progress=_progress())

    bench = experiments.Bench(
        quick=args.quick, progress=lambda text: print(text, file=sys.stderr), model=model, model_name=args.model
    )
    result = plan.carry_out(bench)
    if args.json:
        _print_json(result)
    else:
        print(table(result))
    return BROKEN if result.failed else OK


def _experiments(args: argparse.Namespace) -> int:
    width = max(map(len, experiments.PLANS))
    for plan in experiments.PLANS.values():
        print(f"{plan.name.ljust(width)}  {plan.question}\n{' ' * width}  {plan.kind}; quick: {plan.quick}; full: {plan.full}")
    return OK


def _export(args: argparse.Namespace) -> int:
    from workbench.export import to_html

    trace = ev.Trace.read(args.trace)
    args.out.write_text(to_html(trace, trace.header.scenario or args.trace.stem, trace.header.note), encoding="utf-8")
    print(f"{args.out}: {args.out.stat().st_size / 1000:.0f} kB, {len(trace):,} events", file=sys.stderr)
    return OK


def _why(args: argparse.Namespace) -> int:
    explainer = Explainer(ev.Trace.read(args.trace))
    seq = len(explainer) - 1 if args.seq is None else args.seq
    if args.request is not None:
        answer = explainer.request(seq, args.request)
    elif args.node is not None:
        answer = explainer.node(seq, args.node)
    elif args.page is not None:
        answer = explainer.page(seq, args.page)
    else:
        answer = explainer.event(seq)
    if args.json:
        _print_json(answer)
    else:
        print(plain(answer))
    return OK


def _app(args: argparse.Namespace) -> int:
    from workbench.app import serve

    return serve(port=args.port, model=args.model, device=args.device, dtype=args.dtype)


def _print_json(document: Any) -> None:
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(document), indent=1).decode() + "\n")


def _seconds(value: float | None, simulated: bool) -> str:
    return "-" if value is None else f"{value:.3f} s" + (" sim." if simulated else "")


def _table(report: Report) -> str:
    simulated = report.header.clock == "virtual"
    rows = [("request", "status", "prompt", "cached", "computed", "output", "TTFT")]
    rows += [
        (
            r.id, f"{r.status}, {r.finish_reason}" if r.finish_reason else r.status, str(r.prompt_tokens),
            _count(r.cached_tokens), _count(r.computed_tokens), str(len(r.output_ids)), _seconds(r.ttft, simulated),
        )
        for r in report.requests
    ]  # fmt: skip
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(w) if i < 2 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))) for row in rows]
    t = report.totals
    rate = "unknown" if t.hit_rate is None else f"{t.hit_rate:.1%}"
    lines.append(
        f"\n{t.cached_tokens:,} of {t.prompt_tokens:,} prompt tokens reused ({rate}), {t.steps:,} steps, "
        f"{t.evictions:,} evictions of {t.evicted_tokens:,} tokens, {_seconds(t.duration, simulated)}"
    )
    if report.invariants is not None:
        lines.append(f"invariants: {report.invariants if report.invariants == 'ok' else '; '.join(report.invariants)}")
    return "\n".join(lines)


def _count(value: int | None) -> str:
    return "-" if value is None else str(value)


def _comparison_table(result: comparing.Comparison) -> str:
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
    return "\n".join(lines)
