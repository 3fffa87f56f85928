"""The published experiments: exact figures come out exactly, the others keep what they state; timings are not asserted."""

from __future__ import annotations

import json
import re
from random import Random
from typing import Any

import msgspec
import pytest

from workbench import cli, experiments
from workbench import scenario as scenarios
from workbench.experiments import Bench, Experiment, Row, StoppedError, optimal, schedule, three_cases
from workbench.experiments.guessing import GUESSES, Guess, afterwards, find, grade
from workbench.experiments.result import exact, told, within
from workbench.experiments.stopwatch import Stopwatch
from workbench.experiments.themes import grouped
from workbench.experiments.words import amount, table, verdict
from workbench.figures.experiment import draw
from workbench.runner import run
from workbench.workloads.ceiling import best_possible

pytestmark = pytest.mark.xdist_group("experiments")  # each quick version runs once

SCRIPTED = (
    "walkthrough", "handbook", "capacity", "memory", "hits", "mooncake", "schedule", "aware", "branch-lru", "ordering", "optimal", "overlap", "offload", "routing", "separate", "amdahl", "speedup", "language",
)  # fmt: skip


@pytest.fixture(scope="module")
def results() -> dict[str, Experiment]:
    """Every scripted experiment's quick version, run once."""
    return {}


@pytest.fixture
def quick(results: dict[str, Experiment]) -> Any:
    def get(name: str) -> Experiment:
        if name not in results:
            results[name] = experiments.find(name).carry_out(Bench(quick=True))
        return results[name]

    return get


def ours(result: Experiment) -> dict[str, Any]:
    return {row.label: row.ours for row in result.rows}


# --- what all have in common -------------------------------------------------------------------


@pytest.mark.parametrize("name", SCRIPTED)
def test_every_quick_version_holds_what_it_states_and_its_invariants(quick: Any, name: str) -> None:
    result = quick(name)
    assert result.failed == [] and result.rows and result.quick
    assert result.run.invariants == "ok"
    assert all((row.agrees is None) == (row.rule is None) for row in result.rows)
    assert all(row.source for row in result.rows if row.published is not None)


@pytest.mark.parametrize("name", SCRIPTED)
def test_a_result_is_plain_json_and_its_main_run_can_be_run_again(quick: Any, name: str) -> None:
    result = quick(name)
    document = json.loads(msgspec.json.encode(result))
    assert {"name", "question", "setup", "rows", "differs_because", "seconds", "run"} <= set(document)
    assert {"label", "ours", "unit", "published", "source", "kind", "agrees"} <= set(document["rows"][0])
    assert msgspec.json.decode(msgspec.json.encode(result), type=Experiment).rows == result.rows
    again = run(scenarios.parse_text(result.scenario)).report
    assert [r.cached_tokens for r in again.requests] == [r.cached_tokens for r in result.run.requests]


@pytest.mark.parametrize("name", SCRIPTED)
def test_every_chart_can_be_drawn(quick: Any, name: str) -> None:
    for chart in quick(name).charts:
        figure = draw(chart)
        assert len(figure.data) == len(chart.curves)
        assert [list(trace.x if chart.kind == "spans" else trace.y) for trace in figure.data] == [[p.y for p in curve.points] for curve in chart.curves]


def test_an_experiment_without_a_run_holds_what_it_states_too(quick: Any) -> None:
    result = quick("attention")
    assert result.failed == [] and result.run is None and result.scenario is None
    assert json.loads(msgspec.json.encode(result))["run"] is None


def test_agreement_follows_from_the_rule() -> None:
    assert exact("x", 3, 3, "", "s").agrees and not exact("x", 3, 4, "", "s").agrees
    assert within("x", 7, 7, 11, "%", "replay", rule="7 to 11").agrees
    assert not within("x", 6.99, 7, 11, "%", "replay", rule="7 to 11").agrees
    assert within("x", 6, None, 7, "%", "replay", rule="under 7").agrees
    assert told("x", 5, "", "measured", 6).agrees is None


def test_numbers_and_verdicts_in_words() -> None:
    assert [amount(86016, "tokens"), amount(9.50, "%"), amount(0.00123, "s"), amount(None, "s"), amount(3.21e-6, "")] == [
        "86,016 tokens",
        "9.5 %",
        "0.0012 s",
        "-",
        "3.2e-06",
    ]
    assert [
        verdict(exact("", 1, 1, "", "s")),
        verdict(exact("", 1, 2, "", "s")),
        verdict(told("", 1, "", "exact")),
    ] == ["yes (equal)", "NO (equal)", "-"]


def test_an_experiment_can_be_stopped_between_runs_and_within_one() -> None:
    with pytest.raises(StoppedError):
        experiments.find("walkthrough").carry_out(Bench(stop=lambda: True))
    told_: list[str] = []
    with pytest.raises(StoppedError):
        experiments.find("walkthrough").carry_out(Bench(progress=told_.append, stop=lambda: bool(told_)))
    assert told_ == ["radix tree"]


# --- exact -------------------------------------------------------------------------------------


def test_walkthrough(quick: Any) -> None:
    assert [row.ours for row in quick("walkthrough").rows] == [0, 6, 7, 0, 4, 4]


def test_offload_loads_where_that_takes_less_and_the_arithmetic_says_the_same(quick: Any) -> None:
    figures = ours(quick("offload"))
    assert figures["1 GiB over 25 GB/s"] == round(1000 * 2**30 / 25e9, 2) == 42.95
    assert figures["computing takes 20 ms: tokens the engine loads"] == 0
    assert figures["computing takes 200 ms: tokens the engine loads"] == 1024
    question = 16 / 1024
    assert figures["computing takes 20 ms: first token, the engine deciding"] == pytest.approx(20 * (1 + question), abs=0.01)
    assert figures["computing takes 200 ms: first token, the engine deciding"] == pytest.approx(1000 * 2**30 / 25e9 + 200 * question, abs=0.01)
    assert figures["computing takes 200 ms: first token, no host tier"] == pytest.approx(200 * (1 + question), abs=0.01)
    load, compute, took = quick("offload").charts[0].curves
    assert all(t.y == pytest.approx(min(a.y, b.y), abs=0.01) for a, b, t in zip(load.points, compute.points, took.points, strict=True))


def test_handbook(quick: Any) -> None:
    assert [row.ours for row in quick("handbook").rows] == [86_016, 6_144, 6_144]


def test_capacity(quick: Any) -> None:
    result = quick("capacity")
    assert [row.ours for row in result.rows] == [8, 4]
    assert result.charts[0].ceiling == round(100 * 4 * 1024 / (8 * 1088), 2)


def test_capacity_over_a_range_of_rooms() -> None:
    cyclic, grouped = experiments.find("capacity").carry_out(Bench()).charts[0].curves
    assert [(p.label, p.y) for p in cyclic.points][:5] == [
        (f"room for {r}", 0) for r in ("1.25", "1.5", "2", "2.5", "3")
    ]
    assert [p.y for p in cyclic.points][6:] == [47.06] * 3 and {p.y for p in grouped.points} == {47.06}


# --- replay ------------------------------------------------------------------------------------


def test_schedule_at_a_sixty_fourth_of_its_size(quick: Any) -> None:
    found = ours(quick("schedule"))
    where = "seed 0, evicted page by page"
    assert [found[f"{arm}: reuse, {where}"] for arm in ("fcfs", "lpm", "lpm-as-shipped", "lpm-fair, bound 2,048", "lpm-fair, bound 1,024")] == [
        9.65, 75.23, 12.09, 88.14, 83.92,
    ]  # fmt: skip
    assert found["best possible reuse"] == 88.24
    assert (found[f"fcfs: median wait, {where}"], found[f"fcfs: slowest wait, {where}"]) == (2_114, 3_936)
    assert found[f"lpm-fair, bound 2,048: slowest wait, {where}"] == 3_596


def test_the_schedules_waits_agree_with_its_reuse(quick: Any) -> None:
    report = quick("schedule").run
    assert max(r.wait_tokens for r in report.requests) == report.totals.computed_tokens
    assert schedule.waits(report)[1] == max(r.wait_tokens for r in report.requests[:128])


def test_the_bounds_curve_runs_from_arrival_order_to_the_most_reuse(quick: Any) -> None:
    curve, *others = quick("schedule").charts[0].curves
    assert [p.label for p in curve.points] == ["0", "256", "512", "1,024", "2,048", "4,096", "no bound"]
    assert curve.points[0].y == others[0].points[0].y == 9.65
    assert [p.y for p in curve.points] == sorted(p.y for p in curve.points)


def test_branch_lru(quick: Any) -> None:
    # By hand: the second visitor needs 33 pages, 6 are free, so 27 of the handbook's 65 go: 38 x 16 are left.
    assert [row.ours for row in quick("branch-lru").rows] == [608, 0, 608, 0, 1024, 0, 608]


def test_optimal(quick: Any) -> None:
    found = ours(quick("optimal"))
    assert found["passages: lpm, one at a time, of the best possible"] == 16 * 7 * 256
    assert found["one handbook: lpm, one at a time, of the best possible"] == 95 * 256 + 8 * 11 * 64
    assert found["lpm, 8 at a time: share of the best possible, average"] == 81.9
    assert found["lpm with the barrier, 8 at a time: share of the best possible, average"] == 98.8


def test_returns_to_a_branch_are_counted() -> None:
    a, b, c = [1, 2, 3], [1, 2, 4], [5]
    assert optimal.returns([a, b, c]) == 0 and optimal.returns([a, c, b]) == 1 and optimal.returns([c, b, a, a]) == 0


@pytest.mark.parametrize("seed", range(12))
def test_longest_prefix_first_is_optimal_in_a_cache_as_large_as_the_longest_request(seed: int) -> None:
    """Theorem 3.1, on random trees: prompts of any lengths, some the beginnings of others, none twice."""
    rng = Random(seed)
    prompts = {tuple(rng.randrange(3) for _ in range(rng.randrange(2, 12))) for _ in range(24)}
    shuffled = sorted(prompts)
    rng.shuffle(shuffled)
    # One that is the beginning of another is served after it, or computes its last token anew: compare with that.
    ordered = [list(p) for p in shuffled]
    engine = {"pages": max(map(len, ordered)) + 1, "max_running": 1, "policy": "lpm"}
    requests = [{"tokens": p, "max_new_tokens": 0} for p in ordered]
    report = run(scenarios.parse({"engine": engine, "requests": requests}), check=True).report
    last_tokens = sum(any(q != p and q[: len(p)] == p for q in ordered) for p in ordered)
    assert best_possible(ordered) - last_tokens <= report.totals.cached_tokens <= best_possible(ordered)


# --- measured ----------------------------------------------------------------------------------


def test_the_stopwatch_counts_each_call_once() -> None:
    watch = Stopwatch()
    report = run(scenarios.load("walkthrough"), started=watch.start).report
    assert watch.calls > 0 and watch.seconds > 0
    assert [r.cached_tokens for r in report.requests] == [0, 6, 7]


def test_jump_saves_passes_and_leaves_the_texts_as_they_were(embedded: Any) -> None:
    result = experiments.find("jump").carry_out(Bench(quick=True, model=lambda: embedded))
    assert not result.failed
    rows = {row.label: row.ours for row in result.rows}
    where = "title, year, summary, one-space"
    assert rows[f"{where}: texts identical, of 2, verified"] == 2
    plain, verified = rows[f"{where}: passes, plain"], rows[f"{where}: passes, verified"]
    assert rows[f"{where}: passes saved, verified"] == round(100 * (1 - verified / plain), 2)
    for backend in ("own", "llguidance"):  # one language, so one answer, whoever works the masks out
        assert rows[f"title, year, summary, {backend}: passes"] == verified
        assert rows[f"title, year, summary, {backend}: tokens jumped over"] == plain - verified


@pytest.mark.model
def test_overhead_runs_the_model_with_the_cache_off_and_on(embedded: Any) -> None:
    result = experiments.find("overhead").carry_out(Bench(quick=True, model=lambda: embedded))
    assert result.run.totals.cached_tokens == 0 and len(result.run.requests) == 6 and result.run.invariants == "ok"
    assert all(row.ours is not None for row in result.rows) and result.run.header.model == embedded.name


@pytest.mark.model
def test_a_known_prefix_gives_the_same_first_token_and_nearly_the_same_logits(embedded: Any) -> None:
    result = experiments.find("prefill").carry_out(Bench(quick=True, model=lambda: embedded))
    found = ours(result)
    assert result.failed == [] and found["pairs with the same first token, of 2"] == 2
    assert result.run.requests[-1].cached_tokens == 256 and result.run.requests[-1].computed_tokens == 16
    assert 0 <= found["largest difference of a log-probability, best 20 tokens"] <= 1e-3


@pytest.mark.model
def test_reuse_pays_on_one_handbook_and_not_on_many_that_do_not_fit(embedded: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(three_cases, "QUICK_HERE", three_cases.cases(32, 2, 1, 2, 7))
    result = experiments.find("three-cases").carry_out(Bench(quick=True, model=lambda: embedded))
    found = ours(result)
    assert result.failed == [] and len(result.charts) == 3
    for where in ("simulated L4", "this machine, scaled"):
        assert found[f"{where}: many unrelated handbooks, warmed: prompt tokens reused"] == 0
        assert found[f"{where}: one shared handbook, warmed: prompt tokens reused"] > found[f"{where}: one shared handbook, fresh: prompt tokens reused"]
    gains = [found[f"simulated L4: {case}, warmed against no cache: whole request, times shorter"] for case in ("one shared handbook", "long answers", "many unrelated handbooks")]
    assert gains[0] > gains[1] > gains[2] == 1
    assert grade(GUESSES["three-cases"], "one handbook that all share", result).right


# --- guesses, and what the page offers ----------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in SCRIPTED if name in GUESSES])
def test_what_is_asked_is_answered_by_rows_of_the_result(quick: Any, name: str) -> None:
    guess, result = GUESSES[name], quick(name)
    rows = [find(result, pattern) for pattern in (guess.options.values() or [guess.row])]
    assert all(row is not None and row.ours is not None for row in rows)
    assert not guess.options or len({row.label for row in rows}) == len(guess.options)


def test_a_guess_is_graded_by_the_row_that_tells(quick: Any) -> None:
    near = grade(GUESSES["capacity"], 5, quick("capacity"))
    assert near.right is None and near.words == "You said 5 handbooks; it came to 8 handbooks: you were 3 handbooks too low (38 % of it)."
    assert near.row == "cyclic (A B C D A B C D), room for two: handbooks computed"
    assert grade(GUESSES["capacity"], 8, quick("capacity")).right
    wrong = grade(GUESSES["schedule"], "first come, first served", quick("schedule"))
    assert not wrong.right and "(9.65 %); it was longest prefix first, nobody overtaken for long (88.14 %)" in wrong.words
    least = grade(GUESSES["ordering"], "the time in front", quick("ordering"))
    assert least.right and grade(Guess("?", "no such row"), 1, quick("ordering")) is None


def test_where_nothing_was_prepared_the_first_telling_row_is_asked(quick: Any) -> None:
    guess = afterwards(quick("walkthrough"))
    assert guess.ask == "radix tree, prompt 1: reused of 8: what do you expect?" and guess.unit == "tokens"
    assert grade(guess, 0, quick("walkthrough")).right


def test_every_experiment_is_offered_once_under_what_it_teaches() -> None:
    offered = [name for names in grouped([*experiments.PLANS, "a new one"]).values() for name in names]
    assert sorted(offered) == sorted([*experiments.PLANS, "a new one"])
    assert grouped(["a new one"]) == {"More": ["a new one"]}


def test_a_bench_keeps_runs_that_can_be_opened_and_the_main_one_among_them() -> None:
    bench = Bench(quick=True, keeps=True)
    result = experiments.find("memory").carry_out(bench)
    assert 1 <= len(bench.kept) <= 12 and any(run.report == result.run for run in bench.kept.values())
    assert Bench(quick=True).kept == {}


def test_what_each_order_costs_is_what_is_left_of_the_canonical_one(quick: Any) -> None:
    left, lost = quick("ordering").charts[0].curves
    assert left.points[0].x == "canonical" and lost.points[0].y == 0
    assert all(a.y + b.y == pytest.approx(left.points[0].y) for a, b in zip(left.points, lost.points, strict=True))


# --- commands ----------------------------------------------------------------------------------


def call(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    code = cli.main(list(argv))
    out = capsys.readouterr()
    return code, out.out, out.err


def test_experiments_lists_all_with_question_kind_and_duration(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "experiments")
    assert code == 0
    for plan in experiments.PLANS.values():
        assert (
            plan.name in out and plan.question in out and f"{plan.kind}; quick: {plan.quick}; full: {plan.full}" in out
        )


def test_experiment_prints_a_table_and_tells_progress_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(capsys, "experiment", "walkthrough", "--quick")
    assert code == 0 and err.splitlines() == ["radix tree", "blocks of four"]
    assert ["radix tree, prompt 3: reused of 8", "7 tokens", "7 tokens", "yes (equal)", "exact"] in [
        re.split(r"  +", line) for line in out.splitlines()
    ]


def test_experiment_json_is_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "experiment", "branch-lru", "--json")
    assert code == 0 and json.loads(out)["name"] == "branch-lru" and out.endswith("}\n")


def test_an_unknown_experiment_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(capsys, "experiment", "flight")
    assert (code, out) == (2, "") and err.startswith("error: 'flight' is no experiment; there are walkthrough, ")


def test_a_row_that_does_not_agree_exits_1(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from workbench.experiments import walkthrough

    monkeypatch.setitem(walkthrough.PUBLISHED, "radix", (0, 6, 8))
    code, out, _ = call(capsys, "experiment", "walkthrough")
    assert code == 1 and "NO (equal)" in out


def test_the_table_names_sources_and_differences(quick: Any) -> None:
    text = table(quick("branch-lru"))
    assert "Published in: a public write-up on prefix-cache serving." in text and "prints no figures" in text


# --- full size ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_full_schedule_keeps_its_bands_and_lpm_fair_beats_every_published_policy() -> None:
    result = experiments.find("schedule").carry_out(Bench())
    assert result.failed == []
    rows = {row.label: row for row in result.rows}

    def reuse(arm: str) -> list[Row]:
        return [row for label, row in rows.items() if label.startswith(f"{arm}: reuse")]

    assert len(reuse("fcfs")) == 6 and all(7 <= row.ours <= 11 for row in reuse("fcfs") if row.ours is not None)
    assert all(55 <= row.ours <= 80 for row in reuse("lpm") if row.ours is not None)
    assert all(row.ours >= 86 for row in reuse("lpm-fair, bound 131,072") if row.ours is not None)
    published = max(
        row.published for row in rows.values() if row.unit == "%" and row.published and "best" not in row.label
    )
    assert min(row.ours or 0 for row in reuse("lpm-fair, bound 131,072")) > published


@pytest.mark.slow
@pytest.mark.parametrize("name", ["handbook", "capacity", "optimal"])
def test_the_full_versions_hold_what_they_state(name: str) -> None:
    assert experiments.find(name).carry_out(Bench()).failed == []
