"""The commands: run, compare, calibrate, experiment, experiments, calculate, program, why, export, app.

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
from workbench import calculation, experiments, programs
from workbench import compare as comparing
from workbench import scenario as scenarios
from workbench.calculation import CALCULATORS
from workbench.calculators import MODELS
from workbench.experiments.words import table as rows_of
from workbench.explain import RunExplainer, plain
from workbench.presets import preset_names
from workbench.printed import calibration_table, comparison_table, simulated_at, table, table_again
from workbench.recording import as_scenario, run_again
from workbench.runner import run
from workbench.times import measured

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

    here = commands.add_parser("calibrate", help="time the model on this machine, for executor: cost with hardware: measured")
    here.add_argument("--model", default="embedded", help="`embedded`, a transformers id or a local folder")
    here.add_argument("--device", default="auto", choices=["auto", "cuda", "mps", "cpu"])
    here.add_argument("--dtype", default="auto", choices=["auto", "float32", "bfloat16", "float16"])
    here.add_argument("--json", action="store_true", help="print the calibration as one JSON document")
    here.set_defaults(do=_calibrate)

    published = commands.add_parser("experiment", help="a published experiment, run here", description=f"Experiments: {', '.join(experiments.PLANS)}.")
    published.add_argument("name", metavar="NAME")
    published.add_argument("--quick", action="store_true", help="the small version, in seconds")
    published.add_argument("--model", default="embedded", help="for those that run a model: `embedded`, a transformers id or a local folder")
    published.add_argument("--file", type=Path, metavar="FILE", help="for those that replay recorded traffic: run on this file")
    published.add_argument("--json", action="store_true", help="print the result as one JSON document")
    published.set_defaults(do=_experiment)

    listed = commands.add_parser("experiments", help="the published experiments that can be run here")
    listed.set_defaults(do=_experiments)

    written = commands.add_parser("program", help="an example program in the engine's language", description=f"Programs: {', '.join(programs.PROGRAMS)}.")
    written.add_argument("name", metavar="NAME")
    written.add_argument("--model", default="embedded", help="`embedded`, a transformers id or a local folder")
    written.add_argument("--trace", type=Path, metavar="OUT.jsonl", help="write the trace")
    written.add_argument("--json", action="store_true", help="print what was found and the report as one JSON document")
    written.add_argument("--check", action="store_true", help="watch the invariant at every step")
    written.set_defaults(do=_program)
    sums = commands.add_parser("calculate", help="what arithmetic says: memory, offload, speedup, amdahl, attention")
    kinds = sums.add_subparsers(required=True, metavar="CALCULATOR", dest="calculator")
    for one_sum in CALCULATORS.values():
        asked = kinds.add_parser(one_sum.name, help=one_sum.about, description=one_sum.about)
        if one_sum.shapes:
            asked.add_argument("--model", metavar="NAME", help=f"a published shape, instead of its numbers: {', '.join(MODELS)}")
        for number in one_sum.fields:
            asked.add_argument(f"--{number.key}", dest=number.key, metavar="N", help=f"{number.label}; {number.default:g} if not given".replace("%", "%%"))
        asked.add_argument("--json", action="store_true", help="print the answer as one JSON document")
        asked.set_defaults(do=_calculate)

    three = commands.add_parser("export", help="a recorded trace as one HTML file that opens offline")
    three.add_argument("trace", type=Path, metavar="TRACE.jsonl")
    three.add_argument("out", type=Path, metavar="OUT.html")
    three.set_defaults(do=_export)

    why = commands.add_parser("why", help="explain one moment of a recorded trace")
    why.add_argument("trace", type=Path, metavar="TRACE.jsonl")
    why.add_argument("--seq", type=int, default=None, metavar="N", help="the event to stand at; default: the last")
    why.add_argument("--replica", type=int, default=None, metavar="N", help="of several replicas this one, whose own events --seq then counts; default: --seq counts the run's")
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


def _recorded(args: argparse.Namespace) -> ev.Trace | None:
    """The trace that is to be replayed; None where a scenario is named."""
    if not args.scenario.endswith(".jsonl"):
        return None
    if args.model:
        raise scenarios.ScenarioError("--model: a recorded trace is replayed without a model")
    return ev.Trace.read(args.scenario)


def _load(args: argparse.Namespace) -> scenarios.Scenario:
    overrides = scenarios.settings(args.set)
    recorded = _recorded(args)
    if recorded is not None:
        return as_scenario(recorded, overrides)
    if args.model:
        overrides["engine.model"] = args.model
    return scenarios.load(args.scenario, overrides)


def _tell(scenario: scenarios.Scenario) -> None:
    for line in scenario.told:
        print(f"workload: {line}", file=sys.stderr)


def _model(scenario: scenarios.Scenario) -> Any:
    engine = scenario.engine
    if engine.executor != "model":
        return None
    from engine import load_model  # torch only where a model runs

    return load_model(engine.model, device=engine.device, dtype=engine.dtype, progress=_progress())


def _calibrated(scenario: scenarios.Scenario) -> None:
    """Calibrate this machine, telling how far it is, where a scenario simulates it and nothing is stored."""
    engine = scenario.engine
    if measured(engine):
        from engine import calibrated  # torch only where this machine is asked for

        calibrated(engine.model, device=engine.device, dtype=engine.dtype, progress=_progress())


def _progress() -> Any:
    last = [""]

    def tell(stage: str, fraction: float | None) -> None:
        line = stage if fraction is None else f"{stage} {fraction:.0%}"
        if line != last[0]:
            last[0] = line
            print(line, file=sys.stderr)

    return tell


def _run(args: argparse.Namespace) -> int:
    recorded = _recorded(args)
    if recorded is not None:
        again = run_again(recorded, scenarios.settings(args.set), check=args.check)
        done, told = again.run, table_again(again)
    else:
        scenario = _load(args)
        _tell(scenario)
        _calibrated(scenario)
        done = run(scenario, loaded=_model(scenario), check=args.check)
        told = table(done.report)
    if args.trace:
        done.trace.write(args.trace)
    if args.json:
        _print_json(done.report)
    else:
        print(told)
    return BROKEN if isinstance(done.report.invariants, list) else OK


def _compare(args: argparse.Namespace) -> int:
    if args.repeats < 1:
        raise scenarios.ScenarioError(f"--repeats: must be 1 or more; got {args.repeats}")
    arms = [comparing.parse_arm(a) for a in args.arm]
    scenario = _load(args)
    each = comparing.arms_of(scenario, arms)
    _tell(scenario)
    for one in each:
        _calibrated(one)
    result, _ = comparing.compare(
        scenario, arms, repeats=args.repeats, loaded=_model(scenario), check=args.check,
        progress=lambda text: print(text, file=sys.stderr),
    )  # fmt: skip
    if args.json:
        _print_json(result)
    else:
        print(comparison_table(result))
        if scenario.engine.executor == "replay":
            print(simulated_at(result.arms[0].report))
    return BROKEN if any(isinstance(a.report.invariants, list) for a in result.arms) else OK


def _calibrate(args: argparse.Namespace) -> int:
    from engine import calibrate  # torch only where a model runs

    made = calibrate(args.model, device=args.device, dtype=args.dtype, progress=_progress())
    if args.json:
        _print_json(made)
    else:
        print(calibration_table(made))
    return OK


def _experiment(args: argparse.Namespace) -> int:
    plan = experiments.find(args.name)

    @functools.cache
    def model() -> Any:
        from engine import load_model  # torch only where a model runs

        return load_model(args.model, progress=_progress())

    bench = experiments.Bench(
        quick=args.quick, progress=lambda text: print(text, file=sys.stderr), model=model, model_name=args.model, file=args.file,
    )  # fmt: skip
    result = plan.carry_out(bench)
    if args.json:
        _print_json(result)
    else:
        print(rows_of(result))
    return BROKEN if result.failed else OK


def _experiments(args: argparse.Namespace) -> int:
    width = max(map(len, experiments.PLANS))
    for plan in experiments.PLANS.values():
        print(f"{plan.name.ljust(width)}  {plan.question}\n{' ' * width}  {plan.kind}; quick: {plan.quick}; full: {plan.full}" + (f"; --file: {plan.takes}" if plan.takes else ""))
    return OK


def _program(args: argparse.Namespace) -> int:
    from engine import load_model  # torch only where a model runs

    example = programs.find(args.name)
    done, trace = programs.perform(example, args.model, load_model(args.model, progress=_progress()), check=args.check)
    if args.trace:
        trace.write(args.trace)
    if args.json:
        _print_json(done)
    else:
        print("\n".join(f"{name}: {value}" for name, value in done.found.items()))
        print(f"\n{table(done.run)}")
    return OK


def _calculate(args: argparse.Namespace) -> int:
    answer = calculation.find(args.calculator).answer({key: value for key, value in vars(args).items() if value is not None})
    if args.json:
        _print_json(answer)
    else:
        print(calculation.in_words(answer))
    return OK


def _export(args: argparse.Namespace) -> int:
    from workbench.export import to_html

    trace = ev.Trace.read(args.trace)
    args.out.write_text(to_html(trace, trace.header.scenario or args.trace.stem, trace.header.note), encoding="utf-8")
    print(f"{args.out}: {args.out.stat().st_size / 1000:.0f} kB, {len(trace):,} events", file=sys.stderr)
    return OK


def _why(args: argparse.Namespace) -> int:
    trace = ev.Trace.read(args.trace)
    explainer = RunExplainer(trace.header, trace)
    seq = args.seq if args.seq is not None else explainer.last(args.replica)
    asked = {name: value for name in ("request", "node", "page") if (value := getattr(args, name)) is not None}
    if len(explainer.replicas) > 1:
        which, at = explainer.place(seq, args.request, args.replica)
        print(f"replica {which}, its event {at}", file=sys.stderr)
    answer = explainer.ask(seq, asked, args.replica)
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
