"""L8: what every order of an agent's prompt reuses, by counting whole pages of prompts that came before: no engine."""

from __future__ import annotations

import functools
import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from workbench.experiments.bench import Bench
from workbench.experiments.ordering import BLOCK, OWN, PUBLIC, scenario
from workbench.lessons.attempt import attempt
from workbench.lessons.lesson import Lesson
from workbench.lessons.questions import Asked, Own
from workbench.lessons.reading import events
from workbench.lessons.verdicts import CheckFailed, expect
from workbench.runner import Run
from workbench.scenario import parse
from workbench.workloads.agent import Call
from workbench.workloads.assembled import Pieces, pieces, requests
from workbench.workloads.texts import Words

TEMPLATES = {"header": "header first", "note": "note in the middle", "shuffled": "tools shuffled", "stamp": "timestamp first"}
SESSIONS = 8
"""Of the public set, where it is there."""
PASSAGES, OWN_PASSAGES = "xquad/xquad.en.json", "corpus.jsonl"
ENOUGH = 0.95
"""Of the canonical order's reuse, what a mended template has to reach."""
Prompt = Sequence[int]


def agreed(a: Prompt, b: Prompt) -> int:
    """How many tokens two prompts share from their start."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def found(prompts: Iterable[Prompt], size: int = BLOCK) -> list[int]:
    """Of each prompt, the tokens in whole pages that one before it began with; its last token is never looked up."""
    seen: dict[Any, Any] = {}
    out = []
    for prompt in prompts:
        known, node = 0, seen
        for start in range(0, len(prompt) - size + 1, size):
            page = tuple(prompt[start : start + size])
            known += size if page in node and known == start and start + size < len(prompt) else 0
            node = node.setdefault(page, {})
        out.append(known)
    return out


def share(prompts: Sequence[Prompt], size: int = BLOCK) -> float:
    """Of all prompt tokens, those that are found again, in per cent."""
    return 100 * sum(found(prompts, size)) / sum(map(len, prompts))


def where() -> tuple[Bench, str]:
    """Where the lesson's agents come from: the public set if it is on this machine, else our own."""
    bench = Bench()
    return bench, bench.traffic_file(PUBLIC, OWN)[0]


@functools.cache
def _prompts(file: str, order: str) -> tuple[Prompt, ...]:
    made = parse(scenario(where()[0], file, order, SESSIONS, "words"), files=True)
    return tuple(request.tokens or () for request in made.requests)


def prompts(order: str) -> tuple[Prompt, ...]:
    """Every prompt of the lesson's agents in one order, as they come."""
    return _prompts(where()[1], order)


def place(name: str) -> int:
    """A template's place among the five, 1 for the one that reuses most."""
    shares = {key: share(prompts(order)) for key, order in {"canonical": "canonical", **TEMPLATES}.items()}
    return 1 + sorted(shares, key=lambda key: -shares[key]).index(name)


@functools.cache
def _retrieved(file: str, canonical: bool) -> float:
    made = parse(passages(file, canonical), files=True)
    return share([request.tokens or () for request in made.requests])


def passages(file: str, canonical: bool) -> dict[str, Any]:
    """Questions with three passages each, as they were found or each subject's in one fixed order."""
    return {
        "name": f"passages, {'canonical' if canonical else 'retrieval'} order", "engine": {"executor": "puppet", "page_size": BLOCK, "pages": 2**16},
        "workload": {"kind": "rag", "file": file, "order": "canonical" if canonical else "retrieval", "sequential": True, "output": 0, "text": "words"},
    }  # fmt: skip


def gained(lesson: Lesson) -> str:
    """What the canonical order of passages does, as one of the choices."""
    bench, _ = where()
    file, _ = bench.traffic_file(PASSAGES, OWN_PASSAGES)
    more = _retrieved(file, True) - _retrieved(file, False)
    return "more than 10 points higher" if more > 10 else "lower" if more < -2 else "about the same"


KEYS: dict[str, Callable[[Lesson], Any]] = {
    **{name: functools.partial(lambda name, lesson: place(name), name) for name in TEMPLATES},
    "parts": lambda lesson: agreed(*prompts("timestamp first")[:2]),
    "reused": lambda lesson: found(prompts("timestamp first"))[1],
    "passages": gained,
}


# --- exercises -----------------------------------------------------------------------------------


CASES = (
    ("a difference in the middle", [5, 6, 7, 8], [5, 6, 9, 8]), ("the very first token", [1, 2, 3], [4, 2, 3]), ("the same twice", [1, 2, 3], [1, 2, 3]),
    ("the first is the beginning of the second", [1, 2], [1, 2, 3, 4]), ("the second is the beginning of the first", [1, 2, 3, 4], [1, 2, 3]),
    ("equal again after the difference", [1, 2, 3, 4, 5], [1, 9, 3, 4, 5]), ("nothing on one side", [], [1, 2]),
)  # fmt: skip


def check_divergence(lesson: Lesson, divergence: Callable[..., Any]) -> list[str]:
    """Small cases, every pair of prompts that follow each other, and the engine's own look-up of the second one."""
    for what, a, b in CASES:
        came = attempt(what, divergence, list(a), list(b))
        expect(f"{what}, {a} and {b}", came, agreed(a, b), hint="compare one position after another, from 0; if all agree, the shorter one's length")
    pairs = 0
    for order in ("canonical", *TEMPLATES.values()):
        known = prompts(order)
        for number, (a, b) in enumerate(itertools.pairwise(known), 1):
            came = attempt(f"{order}: prompts {number} and {number + 1}", divergence, list(a), list(b))
            expect(f"{order}: prompts {number} and {number + 1}", came, agreed(a, b), hint="the first difference alone counts")
            pairs += 1
    file = where()[1]
    run = lesson.run(scenario(where()[0], file, "timestamp first", SESSIONS, "words") if file == OWN else lesson.card.runs["stamp"].scenario)
    second = events(run, "request.matched")[1]
    first, then = (list(request.tokens) for request in run.scenario.requests[:2])
    expect("timestamp first: where the engine's look-up stopped", attempt("timestamp first", divergence, first, then), second.raw_length, run=run, event=second.seq)
    return [f"{pairs} pairs of prompts and {len(CASES)} small cases part where you say", f"the engine stopped at the same token: event {second.seq} of the run with the time in front"]


def _put_together(assemble: Callable[..., Any], made: list[tuple[Call, Pieces]]) -> list[list[str]]:
    """The learner's prompts, each checked to hold every piece once and its history in order."""
    out = []
    for call, parts in made:
        given = attempt(f"call {call.id}", assemble, parts)
        if not isinstance(given, (list, tuple)):
            shown = f"a {type(given).__name__}" if given is not None else "None; does it return its list?"
            raise CheckFailed(f"call {call.id}: assemble must return a list of texts, the parts from front to back; got {shown}")
        for spot, text in enumerate(given, 1):
            if not isinstance(text, str):
                star = "; a star puts the items of a list in, as *call.history does" if isinstance(text, (list, tuple)) else ""
                raise CheckFailed(f"call {call.id}: item {spot} of your list is a {type(text).__name__} and not a text{star}")
        missing, extra = Counter(parts.all) - Counter(given), Counter(given) - Counter(parts.all)
        if missing:
            raise CheckFailed(f"call {call.id}: the {parts.name_of(next(iter(missing)))} is missing. The agent needs every part; only their order is yours")
        if extra:
            text = next(iter(extra))
            raise CheckFailed(f"call {call.id}: {parts.name_of(text)} {'stands in it twice' if text in parts.all else 'is no part of this call'}: {text.strip()[:60]!r}")
        if [text for text in given if text in parts.history] != parts.history:
            raise CheckFailed(f"call {call.id}: the history is not in its own order. What was said first comes first, or the conversation is another one")
        out.append(list(given))
    return out


def _behind(made: list[tuple[Call, Pieces]], texts: list[list[str]]) -> tuple[str, str | None]:
    """Where prompts part soonest before they need to, in words, and the later one's request: within a session, and between two."""
    spell = Words().encode
    ids = [[i for text in one for i in spell(text)] for one in texts]
    last: dict[int, int] = {}
    worst: tuple[int, str, str] | None = None
    for now, (call, parts) in enumerate(made):
        before = last.get(call.number)
        if before is None and last:
            before = 0
        if before is not None:
            at = agreed(ids[before], ids[now])
            stays = [*parts.tools, parts.instructions, *([parts.session, *made[before][1].history] if call.number in last else [])]
            lost = sum(len(spell(text)) for text in stays) - at
            if lost > 0 and (worst is None or lost > worst[0]):
                worst = lost, f"{call.id} parts from {made[before][0].id} at token {at}, in its {_piece(parts, texts[now], at)}", call.id
        last[call.number] = now
    return (f"{worst[1]}: all that stands behind it is computed again", worst[2]) if worst else ("no early difference was found", None)


def _piece(parts: Pieces, texts: list[str], at: int) -> str:
    """The piece in which a token lies."""
    for text in texts:
        at -= len(Words().encode(text))
        if at < 0:
            return parts.name_of(text)
    return "end"


def check_template(lesson: Lesson, assemble: Callable[..., Any]) -> list[str]:
    """The engine serves the agents with the learner's template; it reuses nearly what the canonical order does."""
    bench, file = where()
    knobs = {k: v for k, v in scenario(bench, file, "canonical", SESSIONS, "words")["workload"].items() if k not in ("kind", "order")}
    made = pieces(knobs)
    texts = _put_together(assemble, made)
    given = iter(texts)
    data = scenario(bench, file, "canonical", SESSIONS, "words") | {"name": "your template"}
    del data["workload"]
    run = lesson.run(data | {"requests": requests(made, lambda _: next(given))})
    best = share([r["tokens"] for r in requests(made, lambda p: [*sorted(p.tools), p.instructions, *p.history])])
    came = 100 * run.report.totals.cached_tokens / run.report.totals.prompt_tokens
    if came < ENOUGH * best:
        hint, late = _behind(made, texts)
        event = events(run, "request.matched", request=late)[0].seq if late else None
        expect("prompt tokens reused with your template", f"{came:.1f} %", f"{ENOUGH * best:.1f} % or more", run=run, event=event, hint=hint)
    return [
        f"every part is there, and {came:.1f} % of the prompt tokens are reused",
        f"that is {came / best:.3f} times the canonical order's {best:.1f} %, which carries none of the parts that change",
    ]


CHECKS: dict[str, Callable[..., list[str]]] = {"divergence": check_divergence, "template": check_template}


# --- the learner's own run -----------------------------------------------------------------------

TOOLS = ("find order by number", "cancel order by number", "refund money to card", "ask a person for help", "track parcel by code", "change address of order", "list shops near town")
RULES = ("be brief and kind", "always ask before you change anything", "never promise a date", "answer in the language of the customer")
SAID = (
    "where is my parcel", "it left the depot on monday", "please cancel it", "it was cancelled today", "can I have my money back", "seven euros were sent to your card",
    "which shop is open now", "the one by the river", "thank you very much", "my street has another name now",
)  # fmt: skip
PAGE = 4


def drawn(rng: random.Random) -> tuple[list[list[str]], str]:
    """Four prompts of one small agent, as words, and where its clock stands."""
    tools = [word for tool in rng.sample(TOOLS, 3) for word in ("tool", *tool.split())]
    rules = rng.choice(RULES).split()
    said = [line.split() for line in rng.sample(SAID, 4)]
    hour, minutes = rng.randint(8, 17), rng.sample(range(10, 60), 4)
    spot = rng.choice(("after the tools", "after the rules", "in front"))
    out = []
    for k in range(4):
        clock = ["clock", str(hour), str(minutes[k])]
        history = [word for line in said[: k + 1] for word in line]
        front, middle, back = (clock if spot == name else [] for name in ("in front", "after the tools", "after the rules"))
        out.append([*front, *tools, *middle, *rules, *back, *history])
    return out, spot


def at_the_end(words: Sequence[str]) -> list[str]:
    """A prompt with its clock behind everything else."""
    at = list(words).index("clock")
    return [*words[:at], *words[at + 3 :], *words[at : at + 3]]


def served(prompts: Sequence[Sequence[str]], name: str) -> dict[str, Any]:
    """One prompt after the other, a token a word."""
    made = [
        {"id": f"P{i + 1}", "tokens": [Words().encode(word)[0] for word in prompt], "max_new_tokens": 0, **({"after": f"P{i}"} if i else {"at_step": 1})} for i, prompt in enumerate(prompts)
    ]
    return {"name": name, "engine": {"executor": "puppet", "page_size": PAGE, "pages": 128}, "requests": made}


def questions(lesson: Lesson, rng: random.Random) -> Own:
    """Four prompts: where two part, what the last one finds, and what it would find with the clock at the end."""
    prompts, spot = drawn(rng)
    run: Run = lesson.run(served(prompts, "your own agent"))
    moved = [at_the_end(prompt) for prompt in prompts]
    ids = {name: [Words().encode(word)[0] for word in " ".join(one).split()] for name, one in (("a", prompts[0]), ("b", prompts[1]))}
    matched = {e.request: e for e in events(run, "request.matched")}
    facts: dict[str, Any] = {f"P{i + 1}": " ".join(prompt) for i, prompt in enumerate(prompts)}
    facts |= {"tokens": "one a word, counted from 0", "page": f"{PAGE} tokens", "clock": f"the words clock, hour and minute; here it stands {spot}"}
    whole = [[Words().encode(word)[0] for word in prompt] for prompt in prompts]
    ended = [[Words().encode(word)[0] for word in prompt] for prompt in moved]
    asked = (
        Asked("Which token of P2 is the first that differs from P1? Count from 0.", agreed(ids["a"], ids["b"]), matched["P2"].seq, "", hint="the hour is the same in both; count the words before the minute"),
        Asked("How many tokens of P4 were found in the cache?", found(whole, PAGE)[3], matched["P4"].seq, "tokens", hint="only whole pages are shared, and only up to the first difference"),
        Asked("How many tokens of P4 would be found if the clock stood at the very end of every prompt?", found(ended, PAGE)[3], None, "tokens",
              hint="P3's tools, rules and history are then the beginning of P4; round down to whole pages"),
    )  # fmt: skip
    return Own(run, asked, facts)
