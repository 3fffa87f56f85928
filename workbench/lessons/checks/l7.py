"""L7: bytes, tokens and seconds by arithmetic written out again here; nothing of the engine's calculators or of its cost model."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from engine import Plugs
from workbench import scenario as scenarios
from workbench.calculators import MODELS
from workbench.lessons.attempt import attempt
from workbench.lessons.lesson import Lesson
from workbench.lessons.questions import Asked, Own
from workbench.lessons.reading import events
from workbench.lessons.verdicts import CheckFailed, event_sentence, fail
from workbench.runner import Run

GIB = 2**30
ROOM = 24 * GIB
"""Bytes for KV, in the predictions."""
LINK = 6e9
"""Bytes a second between host and device, in the lesson's own runs."""
PAGE, QUESTION = 16, 16
CLOSE = 0.05
"""How far off a break-even may be, as a share."""
PUBLISHED = {"llama-2-7b": (32, 32, 128), "llama-3.1-8b": (32, 8, 128), "qwen2.5-1.5b": (28, 2, 128)}
"""Layers, KV heads and head width, from each model's config.json."""
SERVED = {"h100-llama-3.1-8b": "llama-3.1-8b", "l4-llama-3.1-8b": "llama-3.1-8b", "m4-qwen2.5-1.5b": "qwen2.5-1.5b"}
"""The engine's simulated machines, and the model on each."""
SEEDS, CROWD_PAGES, SLACK = (0, 1, 2), 128, 1.04


# --- references --------------------------------------------------------------------------------


def each(model: str, number: int = 2) -> int:
    """Bytes of one token's keys and values."""
    layers, heads, width = PUBLISHED[model]
    return 2 * layers * heads * width * number


def fits(model: str, number: int = 2) -> int:
    """Tokens in the room of the predictions."""
    return ROOM // each(model, number)


def pass_seconds(before: int, new: int) -> float:
    """One pass of Llama-3.1-8B over `new` tokens after `before`, on an H100 at 60 % of its data sheet, and 2 ms beside its work."""
    layers, hidden, heads, kv_heads, width, inner, words = 32, 4096, 32, 8, 128, 14_336, 128_256
    weights = layers * (hidden * (heads + 2 * kv_heads) * width + heads * width * hidden + 3 * hidden * inner)
    pairs = new * before + new * (new + 1) // 2
    work = 2 * weights * new + 4 * layers * heads * width * pairs + 2 * hidden * words
    moved = 2 * (weights + hidden * words) + each("llama-3.1-8b") * (before + new)
    return 0.002 + max(work / (0.6 * 1979e12 / 2), moved / (0.6 * 3.35e12))


def even() -> float:
    """The link at which loading and computing take the same, by the rate of a prompt of 1,024 tokens; in GB/s."""
    return each("llama-3.1-8b") * 1024 / pass_seconds(0, 1024) / 1e9


def sooner(tokens: int, link: float = LINK) -> str:
    """What has a first token sooner: a prefix loaded and then its question, or both computed in one pass."""
    load = tokens * each("llama-3.1-8b") / link + pass_seconds(tokens, QUESTION)
    return "load" if load < pass_seconds(0, tokens + QUESTION) else "compute"


KEYS: dict[str, Callable[[Lesson], Any]] = {
    "each": lambda lesson: each("llama-3.1-8b"),
    "llama2": lambda lesson: fits("llama-2-7b"),
    "llama3": lambda lesson: fits("llama-3.1-8b"),
    "qwen": lambda lesson: fits("qwen2.5-1.5b"),
    "eight": lambda lesson: fits("llama-3.1-8b", 1),
    "even": lambda lesson: even(),
    "short": lambda lesson: sooner(512),
    "long": lambda lesson: sooner(8192),
}


# --- traffic -----------------------------------------------------------------------------------


def again(tokens: int, link: float | None, hardware: str = "h100-llama-3.1-8b", stays: bool = False) -> dict[str, Any]:
    """A prefix is served, pushed off the device by another prompt, and asked for again. `link` None: nothing is kept on the host.

    `stays`: there is room for both, so the prefix is never pushed off.
    """
    prefix, other = list(range(1_000, 1_000 + tokens)), list(range(31_000, 31_000 + tokens))
    tails = [list(range(k, k + QUESTION)) for k in (100, 200, 300)]
    prompts = {"first": prefix + tails[0], "other": other + tails[1], "again": prefix + tails[2]}
    names = list(prompts)
    requests = [{"id": name, "tokens": prompts[name], "max_new_tokens": 1, **({"after": names[i - 1]} if i else {"at_step": 1})} for i, name in enumerate(names)]
    engine: dict[str, Any] = {"executor": "cost", "hardware": hardware, "page_size": PAGE, "pages": (2 if stays else 1) * (tokens + 2 * QUESTION) // PAGE, "prefill_budget": None}
    if link is not None:
        engine |= {"host_pages": 4 * tokens // PAGE, "host_bandwidth": link}
    return {"name": f"a prefix of {tokens:,} tokens, asked for again", "engine": engine, "requests": requests}


def crowd(seed: int) -> dict[str, Any]:
    """Twelve readers of one handbook, three a step, whose answers are short and long."""
    rng = random.Random(seed)
    requests = [
        {"id": f"R{i + 1}", "at_step": 1 + i // 3, "tokens": f"A8+{'BCDEFGHIJKLM'[i]}{rng.randint(4, 20)}", "max_new_tokens": rng.choice((8, 16, 32, 48))}
        for i in range(12)
    ]
    return {"name": "twelve readers", "engine": {"executor": "puppet", "pages": CROWD_PAGES, "max_running": 12}, "requests": requests}


def first_token(run: Run) -> float:
    """Milliseconds (simulated) to the last request's first token."""
    ttft = run.report.requests[-1].ttft
    assert ttft is not None
    return 1000 * ttft


# --- checks ------------------------------------------------------------------------------------


def check_arithmetic(lesson: Lesson, arithmetic: Callable[..., Any]) -> list[str]:
    """Bytes against published shapes, against what the engine's pool takes and refuses; break-even against what the engine decides."""
    for name in MODELS:
        model = MODELS[name]
        if model.vectors != 2:
            continue
        for number in (1, 2, 4):
            size, _ = _asked(arithmetic, model.layers, model.kv_heads, model.head_width, number, 1000.0)
            want = 2 * model.layers * model.kv_heads * model.head_width * number
            if size != want:
                fail(
                    f"{model.name}, {number} bytes a number: bytes a token", size, want,
                    hint="keys and values, in every layer, for each KV head, as many numbers as a head is wide, each of so many bytes",
                )  # fmt: skip
    lines = ["bytes a token are right for six published models, with numbers of 1, 2 and 4 bytes"]
    for hardware, name in SERVED.items():
        layers, heads, width = PUBLISHED[name]
        run = lesson.run(again(64, 1e12, hardware))
        rates = run.trace.header.rates
        size, link = _asked(arithmetic, layers, heads, width, 2, rates["prefill_rate"])
        _pool(hardware, size, int((rates["memory"] - rates["weight_bytes"]) // (size * PAGE)))
        _flips(lesson, hardware, link)
        lines.append(f"{hardware}: the pool takes exactly as many pages as you say and refuses one more; the engine changes its mind within 5 % of {link / 1e9:.3g} GB/s")
    return lines


def _asked(arithmetic: Callable[..., Any], *shape: Any) -> tuple[int, float]:
    given = attempt("arithmetic", arithmetic, *shape)
    if not (isinstance(given, tuple) and len(given) == 2 and all(isinstance(one, (int, float)) and not isinstance(one, bool) for one in given)):
        raise CheckFailed(f"given layers, KV heads, head width, bytes a number and rate as {shape}, your function returned {given!r}; expected two numbers: bytes a token, and the link in bytes a second")
    return given


def _pool(hardware: str, size: int, pages: int) -> None:
    for count, fine in ((pages, True), (pages + 1, False)):
        data = {"engine": {"executor": "cost", "hardware": hardware, "page_size": PAGE, "pages": count}, "requests": [{"tokens": "A8"}]}
        try:
            scenarios.parse(data)
            took = True
        except scenarios.ScenarioError:
            took = False
        if took is not fine:
            fail(f"{hardware}, {size:,} bytes a token: whether the pool takes {count:,} pages of {PAGE}", took, fine)


def _flips(lesson: Lesson, hardware: str, link: float) -> None:
    """The engine computes a little below the learner's break-even, and loads a little above."""
    for share, want in ((1 - CLOSE, 0), (1 + CLOSE, 1)):
        run = lesson.run(again(1024, max(1.0, share * link), hardware))
        event = events(run, "request.admitted", request="again")[0]
        if bool(event.loaded) != bool(want):
            did = "loads" if event.loaded else "computes"
            raise CheckFailed(
                f"{hardware}: at {share * link / 1e9:.4g} GB/s, {'above' if want else 'below'} your break-even of {link / 1e9:.4g}, the engine still {did}: "
                f"loading would take {event.load_seconds:.4g} s, computing {event.recompute_seconds:.4g} s\n  {event_sentence(run, event.seq)}\n"
                "  Hint: loading a token takes its bytes divided by the link, computing it takes one divided by the rate; at which link are the two equal?"
            )  # fmt: skip


def safe(waiting: Any, running: Sequence[Any]) -> bool:
    """Room for all that this one and all others may still say."""
    return bool(waiting.pages_free >= waiting.prompt - waiting.matched + waiting.may_produce + sum(r.may_produce for r in running))


def check_admission(lesson: Lesson, rule: Callable[..., Any]) -> list[str]:
    """The engine admits by the learner's rule: nobody is sent back, and it takes hardly more steps than a rule that is safe for certain."""
    if not callable(rule):
        raise CheckFailed(f"check(\"admission\", ...): give it your function itself; got {rule!r}")
    mine = [_admitted(lesson, rule, seed) for seed in SEEDS]
    for run in mine:
        back = events(run, "request.retracted")
        if back:
            raise CheckFailed(
                f"expected that nobody is sent back, got {len(back)} retractions\n  {event_sentence(run, back[0].seq)}\n"
                "  Hint: whoever is admitted grows by one token a step until `may_produce` is used up, and so do all those that run"
            )  # fmt: skip
    steps, best = sum(run.report.totals.steps for run in mine), sum(_admitted(lesson, safe, seed).report.totals.steps for seed in SEEDS)
    if steps > SLACK * best:
        raise CheckFailed(
            f"nobody is sent back, but {steps} steps are too many: a rule that is safe as well takes {best}\n  {_stood_by(mine[0])}\n"
            "  Hint: what matched needs no new pages, and what the others hold already is not in `pages_free` any more; count neither twice"
        )  # fmt: skip
    return [f"nobody was sent back in {len(mine)} runs, and they took {steps} steps; a plain safe rule takes {best}"]


def _admitted(lesson: Lesson, rule: Callable[..., Any], seed: int) -> Run:
    try:
        return lesson.run(crowd(seed), plugs=Plugs(admit=rule))
    except CheckFailed as error:
        if "is no answer" not in str(error):
            raise
        raise CheckFailed(f"{error}\n  Hint: return a comparison, as waiting.pages_free >= ...") from None


def _stood_by(run: Run) -> str:
    """The first time somebody is not admitted though pages are there."""
    passed = events(run, "request.passed_over")
    return event_sentence(run, passed[0].seq) if passed else "nobody was passed over in the first run"


CHECKS: dict[str, Callable[..., list[str]]] = {"arithmetic": check_arithmetic, "admission": check_admission}


def questions(lesson: Lesson, rng: random.Random) -> Own:
    """A prefix that comes back over a link of the learner's own: what loading takes, what computing takes, what the engine did."""
    tokens = PAGE * rng.randint(40, 120)
    link = rng.choice((3.0, 3.5, 4.0, 7.0, 8.0, 9.0)) * 1e9
    run = lesson.run(again(tokens, link))
    event = events(run, "request.admitted", request="again")[0]
    load = 1000 * event.host * each("llama-3.1-8b") / link
    compute = 1000 * event.host / (1024 / pass_seconds(0, 1024))
    facts = {
        "machine and model, simulated": "Llama-3.1-8B on an H100, numbers of 2 bytes", "tokens that lie on the host alone": event.host,
        "the link": f"{link / 1e9:g} GB/s, a GB being 1e9 bytes", "prefill rate": f"{1024 / pass_seconds(0, 1024):,.0f} tokens a second",
    }  # fmt: skip
    asked = (
        Asked("How many milliseconds does loading these tokens take?", load, event.seq, "ms", 0.01, "tokens times bytes a token, divided by the link"),
        Asked("How many milliseconds does computing them take, by the prefill rate?", compute, event.seq, "ms", 0.01, "tokens divided by the rate"),
        Asked("How many tokens did the engine load?", event.host if load < compute else 0, event.seq, "tokens", hint="all or none: whichever way takes less by these two figures"),
    )  # fmt: skip
    return Own(run, asked, facts)
