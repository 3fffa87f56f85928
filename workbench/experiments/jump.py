"""Jump-forward: the same JSON decoded plainly, with verified and with unverified jumps over what the schema forces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from workbench import scenario as scenarios
from workbench.decoding import decode
from workbench.experiments.bench import Bench, Findings, Plan
from workbench.experiments.result import MEASURED, PAPER, Chart, Curve, Point, Row, told, within
from workbench.runner import Run
from workbench.scenario import ScenarioError

SUMMARY: dict[str, Any] = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "maxLength": 60},
        "year": {"type": "integer", "minimum": 0, "maximum": 2100},
        "summary": {"type": "string", "maxLength": 120},
    },
    "required": ["title", "year", "summary"],
}
ADDRESS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "first_name": {"type": "string", "maxLength": 16},
        "last_name": {"type": "string", "maxLength": 16},
        "street_address": {"type": "string", "maxLength": 24},
        "house_number": {"type": "integer", "minimum": 1, "maximum": 999},
        "postal_code": {"type": "string", "pattern": "^[0-9]{5}$"},
        "city": {"type": "string", "maxLength": 16},
        "country_code": {"type": "string", "pattern": "^[A-Z]{2}$"},
        "is_business_address": {"type": "boolean"},
    },
    "required": [
        "first_name", "last_name", "street_address", "house_number", "postal_code", "city", "country_code",
        "is_business_address",
    ],
}  # fmt: skip
WORKS = ("the novel Moby-Dick", "the film Alien", "the novel Frankenstein", "the film Casablanca", "the play Hamlet")
PEOPLE = ("Ada Lovelace in London", "a bakery in Lyon", "Alan Turing in Manchester", "a garage in Detroit", "Marie Curie in Paris")
CASES = {
    "title, year, summary": (SUMMARY, [f"Describe {work} as JSON with title, year and summary." for work in WORKS], 12),
    "address card": (ADDRESS, [f"Make up an address card as JSON for {one}." for one in PEOPLE], 40),
}
"""Case -> schema, five prompts, and the least share of passes (%) that verified jumps have to save with one-space spacing."""
BACKENDS = ("own", "llguidance", "xgrammar")
MODES = ("off", "verified", "unverified")
CAP = 200


@dataclass(frozen=True)
class Arm:
    """One mode's five answers: texts, passes and tokens of each; seconds of the whole run as measured."""

    texts: list[str | None]
    passes: list[int]
    tokens: list[int]
    rolled_back: int
    seconds: float


def find(bench: Bench) -> Findings:
    """Every case and spacing in every mode; `quick`: the first case, one-space, two prompts."""
    rows: list[Row] = []
    saved: dict[str, list[Point]] = {mode: [] for mode in MODES[1:]}
    main: Run | None = None
    cases = list(CASES.items())[: 1 if bench.quick else None]
    for case, (schema, prompts, least) in cases:
        for spacing in ("one-space",) if bench.quick else ("one-space", "compact"):
            asked = _traffic(schema, prompts[: 2 if bench.quick else None])
            bench.run(asked, f"{case}, {spacing}: warming up", spacing=spacing, jump="off")
            arms: dict[str, Arm] = {}
            for mode in MODES:
                run = bench.run(asked, f"{case}, {spacing}: {mode}", spacing=spacing, jump=mode)
                main = run if mode == "verified" and main is None else main
                arms[mode] = _arm(run)
            where = f"{case}, {spacing}"
            rows += _rows(where, arms, least if spacing == "one-space" else None)
            for mode, points in saved.items():
                share = _saved(arms["off"], arms[mode])
                points += [] if share is None else [Point(where, share)]
    rows += _backends(bench)
    assert main is not None
    rows += [
        told("published: output tokens", None, "tokens", "measured", 317, MEASURED),
        told("published: passes, plain", None, "passes", "measured", 312, MEASURED),
        told("published: passes, jump-forward", None, "passes", "measured", 247, MEASURED),
        told("published: passes saved", None, "%", "measured", 21, MEASURED),
        told("published: outputs identical, of 5", None, "", "measured", 4, MEASURED),
        told("published: JSON throughput with jump-forward over without", None, "times", "measured", 1.6, PAPER),
    ]
    chart = Chart(
        kind="shares", title="Passes saved, of those that plain decoding takes", x="", y="passes saved, %",
        curves=[Curve(name=mode, points=points) for mode, points in saved.items()],
    )  # fmt: skip
    return Findings(_setup(bench), rows, main, _differs(), [chart])


def _backends(bench: Bench) -> list[Row]:
    """The first case by every grammar backend that is here: compile and mask time, and what each lets jump."""
    case, (schema, prompts, _) = next(iter(CASES.items()))
    asked = prompts[: 2 if bench.quick else None]
    rows: list[Row] = []
    for backend in BACKENDS:
        # Another description is another grammar: this one has been compiled and visited by none.
        traffic = _traffic(schema | {"description": f"cold, {backend}"}, asked)
        try:
            scenarios.parse(traffic, {"engine.grammar": backend})
        except ScenarioError:
            continue  # it is not installed
        warm_up = _traffic(schema | {"description": "warm-up"}, prompts[:1])
        bench.run(warm_up, f"{case}, {backend}: warming up", spacing="one-space", grammar=backend)
        run = bench.run(traffic, f"{case}: {backend}", spacing="one-space", jump="verified", grammar=backend)
        answers = [decode(run.trace, request.id) for request in run.report.requests]
        masks = [seconds for answer in answers for seconds in answer.masks]
        compiled = next(a.grammar.seconds for a in answers if a.grammar is not None)
        label = f"{case}, {backend}: {{}}"
        rows += [
            told(label.format("compiling"), round(1000 * compiled, 3), "ms", "measured"),
            told(label.format(f"{len(masks)} masks, in all"), round(1000 * sum(masks), 3), "ms", "measured"),
            told(label.format("tokens jumped over"), sum(a.count("jumped") for a in answers), "tokens", "measured"),
            told(label.format("passes"), sum(a.passes for a in answers), "passes", "measured"),
        ]
    return rows


def _traffic(schema: dict[str, Any], prompts: list[str]) -> dict[str, Any]:
    """One request after the other, greedy."""
    requests = [
        {"id": f"P{i + 1}", "messages": [{"role": "user", "content": prompt}], "json_schema": schema, "max_new_tokens": CAP}
        | ({"after": f"P{i}"} if i else {})
        for i, prompt in enumerate(prompts)
    ]
    return {"name": "jump", "engine": {"executor": "model", "dtype": "float32", "pages": 2048}, "requests": requests}


def _arm(run: Run) -> Arm:
    answers = [decode(run.trace, request.id) for request in run.report.requests]
    return Arm(
        [a.text for a in answers], [a.passes for a in answers], [len(a.tokens) for a in answers],
        sum(a.rolled_back for a in answers), run.report.totals.duration,
    )  # fmt: skip


def _saved(plain: Arm, other: Arm) -> float | None:
    """Share of plain passes saved, in percent, over the pairs whose texts are the same; None where none is."""
    same = [i for i, text in enumerate(plain.texts) if text == other.texts[i]]
    if not same:
        return None
    return round(100 * (1 - sum(other.passes[i] for i in same) / sum(plain.passes[i] for i in same)), 2)


def _rows(where: str, arms: dict[str, Arm], least: int | None) -> list[Row]:
    plain = arms["off"]
    n = len(plain.texts)
    rows = [
        told(f"{where}: passes, plain", sum(plain.passes), "passes", "measured"),
        told(f"{where}: tokens, plain", sum(plain.tokens), "tokens", "measured"),
        told(f"{where}: seconds, plain", round(plain.seconds, 3), "s", "measured"),
    ]
    for mode in MODES[1:]:
        arm = arms[mode]
        same = sum(a == b for a, b in zip(plain.texts, arm.texts, strict=True))
        label, share = f"{where}: {{}}, {mode}", _saved(plain, arm)
        if mode == "verified":
            rows.append(within(label.format(f"texts identical, of {n}"), same, n, n, "", "measured", rule="all of them"))
        else:
            rows.append(told(label.format(f"texts identical, of {n}"), same, "", "measured"))
        rows.append(told(label.format("passes"), sum(arm.passes), "passes", "measured"))
        rows.append(told(label.format("tokens"), sum(arm.tokens), "tokens", "measured"))
        if mode == "verified" and least is not None and share is not None:
            rows.append(within(label.format("passes saved"), share, least, None, "%", "measured", rule=f"at least {least} %"))
        else:
            rows.append(told(label.format("passes saved, where the texts are the same"), share, "%", "measured"))
        if mode == "verified":
            rows.append(told(label.format("drafted tokens taken back"), arm.rolled_back, "tokens", "measured"))
        rows.append(told(label.format("seconds"), round(arm.seconds, 3), "s", "measured"))
    return rows


def _setup(bench: Bench) -> str:
    asked = "the first case alone, two prompts, one-space spacing" if bench.quick else "five prompts each, greedy, spacing one-space and compact"
    return (
        f"{bench.model_name} in float32 under a JSON schema, {asked}, at most {CAP} tokens an answer. Every mode on a fresh engine with "
        "the same token ids, one request after the other, after a warm-up run that is not counted; passes are counted from the trace and "
        "include the one that ends the prompt. A pair of answers whose texts differ counts nothing as saved. At the end the first case by each "
        f"grammar backend of {', '.join(BACKENDS)} that is installed here, each on a grammar that it has not seen (its library's own set-up is in the warm-up)."
    )


def _differs() -> str:
    return (
        "The published run had another model, other prompts and 16-bit numbers, and its jumps were unverified; how much is forced depends on the "
        "schema's keys against what the model writes between them. Verified jumps give the answer of plain decoding, so they save passes and "
        "change nothing; unverified ones spell the answer as the tokenizer would, and the model may go on differently."
    )


PLAN = Plan(
    "jump", "How many passes does jumping over what a JSON schema forces save, and is the answer the same?",
    "measured", "some 30 s with a model", "some minutes with a model", find,
)  # fmt: skip
