"""L9: what may follow in a document, by keeping every way to read what stands there: no automaton, and nothing of the engine."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from engine import events as ev
from workbench.lessons.attempt import attempt
from workbench.lessons.lesson import Lesson
from workbench.lessons.questions import Asked, Own
from workbench.lessons.reading import events
from workbench.lessons.verdicts import CheckFailed, fail
from workbench.runner import Run

Part = tuple[str, Any]
"""("text", what stands there), ("string", most characters; its closing quote included) or ("one of", texts)."""
State = tuple[int, Any]
MANY = None
"""Among what may follow: more characters than one would list."""


def digits(count: int) -> list[Part]:
    """So many digits."""
    return [("one of", tuple("0123456789"))] * count


CAPITAL: Part = ("one of", tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
WINDS = tuple(f"wind from the {w}" for w in ("north", "northeast", "south", "southwest", "east", "west"))
DOCUMENTS: dict[str, list[Part]] = {
    "film": [
        ("text", '{"title": "'), ("string", 30), ("text", ', "year": '), ("one of", tuple(str(y) for y in range(1900, 2100))),
        ("text", ', "summary": "'), ("string", 60), ("text", "}"),
    ],
    "address": [
        ("text", '{"first_name": "'), ("string", 12), ("text", ', "postal_code": "'), *digits(5), ("text", '", "country_code": "'), CAPITAL, CAPITAL,
        ("text", '", "is_business_address": '), ("one of", ("true", "false")), ("text", "}"),
    ],
    "wind": [("text", '{"wind_direction": "'), ("one of", WINDS), ("text", '"}')],
}  # fmt: skip
"""The lesson's schemas, written by hand as what their documents consist of, one space behind each comma and colon."""


def begin(parts: Sequence[Part], at: int) -> State:
    """The state at the start of part number `at`."""
    return at, {"text": 0, "string": (0, False), "one of": ""}[parts[at][0]] if at < len(parts) else None


def after(parts: Sequence[Part], state: State, char: str) -> list[State]:
    """The states that a character leads to; none where it cannot stand there."""
    at, p = state
    if at == len(parts):
        return []
    kind, what = parts[at]
    if kind == "text":
        return [] if what[p] != char else [begin(parts, at + 1) if p + 1 == len(what) else (at, p + 1)]
    if kind == "one of":
        p += char
        out: list[State] = [(at, p)] if any(o.startswith(p) and o != p for o in what) else []
        return [*out, begin(parts, at + 1)] if p in what else out
    count, escaped = p
    if escaped:
        return [(at, (count + 1, False))] if char in '"\\bfnrt' else []
    if char == '"':
        return [begin(parts, at + 1)]
    if count == what or ord(char) < 32:
        return []
    return [(at, (count, True))] if char == "\\" else [(at, (count + 1, False))]


def read(parts: Sequence[Part], text: str, states: Iterable[State] | None = None) -> list[State]:
    """Every way to read `text`; none where no document begins like it."""
    now = [begin(parts, 0)] if states is None else list(states)
    for char in text:
        now = [later for state in now for later in after(parts, state, char)]
    return now


def following(parts: Sequence[Part], states: Iterable[State]) -> set[str | None]:
    """The characters that may come next."""
    out: set[str | None] = set()
    for at, p in states:
        if at == len(parts):
            continue
        kind, what = parts[at]
        if kind == "text":
            out.add(what[p])
        elif kind == "one of":
            out |= {o[len(p)] for o in what if o.startswith(p) and o != p}
        else:
            out |= {'"'} if p == (what, False) else {MANY}
    return out


def forced(parts: Sequence[Part], text: str) -> list[bool]:
    """Of each character of a document: whether it alone could stand there. Raises ValueError where one cannot."""
    out = []
    for i, char in enumerate(text):
        states = read(parts, text[:i])
        if not read(parts, char, states):
            raise ValueError(f"{text[:i]!r} cannot go on with {char!r}")
        out.append(len(nexts := following(parts, states)) == 1 and MANY not in nexts)
    return out


def scripted(lesson: Lesson, request: str) -> str:
    """What a request of the scripted run is told to say."""
    says = next(r.says for r in lesson.scenario("scripted").requests if r.id == request)
    return bytes(i for i in says or [] if isinstance(i, int)).decode()


def share(lesson: Lesson, request: str) -> float:
    """Per cent of a document's characters that are forced."""
    told = forced(DOCUMENTS[request], scripted(lesson, request))
    return 100 * sum(told) / len(told)


def allowed(lesson: Lesson) -> int:
    """Every token of the vocabulary, tried as the beginning of the film's year."""
    tokenizer = lesson.model().tokenizer
    states = read(DOCUMENTS["film"], '{"title": "M", "year": ')
    texts = tokenizer.texts(range(lesson.model().vocab_size))
    return sum(bool(text) and bool(read(DOCUMENTS["film"], text, states)) for text in texts.values())


KEYS: dict[str, Callable[[Lesson], Any]] = {
    "film": lambda lesson: share(lesson, "film"),
    "address": lambda lesson: share(lesson, "address"),
    "wind": lambda lesson: share(lesson, "wind"),
    "allowed": allowed,
}


# --- the exercise ------------------------------------------------------------------------------


def jumps_of(run: Run) -> list[tuple[str, list[int], ev.GrammarJumped]]:
    """Each jump of a run: whose, its tokens before it, and the event."""
    said: dict[str, list[int]] = {}
    members: list[str] = []
    out: list[tuple[str, list[int], ev.GrammarJumped]] = []
    for event in run.trace.events:
        if isinstance(event, ev.StepPlanned):
            members = event.members
        elif isinstance(event, ev.StepFinished):
            ids = iter(event.ids)
            for name, count in zip(members, event.emitted, strict=True):
                said.setdefault(name, []).extend(next(ids) for _ in range(count))
        elif isinstance(event, ev.GrammarJumped):
            so_far = said.setdefault(event.request, [])
            out.append((event.request, list(so_far), event))
            said[event.request] = so_far[: len(so_far) - len(event.before)] + event.after
    return out


def check_jump(lesson: Lesson, jump: Callable[..., Any], run: Any = None) -> list[str]:
    """The learner's jump beside each of the engine's, and on tokens that no model would choose."""
    if not callable(jump):
        raise CheckFailed(f"jump: expected a function jump(ids, forced, encode, decode), got {jump!r}")
    if not isinstance(run, Run) or run.scenario.engine.jump != "unverified":
        raise CheckFailed('jump: give the run with unverified jumps as well: lesson.check("jump", jump, runs["unverified"])')
    encode, decode = coder(lesson)
    engine = jumps_of(run)
    for request, before, event in engine:
        mine = _called(jump, before, event.run, encode, decode)
        _compare(mine, (event.after, len(event.before)), before, event.run, decode, run, event.seq, f"{request}, at event {event.seq}")
    odd = 0
    for text, run_text in (('{"', 'title": "'), ("{", '"na'), ('{"na', 'me": "'), ('{"title": "M", "ye', 'ar": '), ("", '{"a": '), ("tru", "e}")):
        for ids in (encode(text), [i for char in text for i in encode(char)]):
            whole = encode(decode(ids) + run_text)
            keep = max((k for k in range(min(len(ids), len(whole)) + 1) if ids[:k] == whole[:k]), default=0)
            mine = _called(jump, ids, run_text, encode, decode)
            _compare(mine, (whole[keep:], len(ids) - keep), ids, run_text, decode, None, None, f"{text!r} in {len(ids)} tokens, then {run_text!r}")
            odd += len(ids) > keep
    back = sum(bool(event.before) for _, _, event in engine)
    return [
        f"{len(engine)} jumps as the engine made them, {back} of them with tokens rolled back",
        f"12 more as the tokenizer spells them, {odd} of them with tokens rolled back",
    ]


def coder(lesson: Lesson) -> tuple[Callable[[str], list[int]], Callable[[Sequence[int]], str]]:
    """Text to ids and back, by the model's tokenizer, without markers."""
    tokenizer = lesson.model().tokenizer

    def decode(ids: Sequence[int]) -> str:
        texts = tokenizer.texts(ids)
        return "".join(texts[str(i)] for i in ids)

    return tokenizer.ids, decode


def _called(jump: Callable[..., Any], ids: list[int], forced: str, encode: Any, decode: Any) -> tuple[list[int], int]:
    given = attempt("jump", jump, list(ids), forced, encode, decode)
    if not isinstance(given, (tuple, list)) or len(given) != 2 or not isinstance(given[0], (list, tuple)) or isinstance(given[1], bool) or not isinstance(given[1], int):
        raise CheckFailed(f"jump({ids}, {forced!r}, encode, decode): expected (list of new ids, how many old ones go), got {given!r}")
    return list(given[0]), given[1]


def _compare(
    mine: tuple[list[int], int], right: tuple[list[int], int], ids: list[int], forced: str, decode: Any, run: Run | None, event: int | None, where: str
) -> None:
    if (mine[0], mine[1]) == (list(right[0]), right[1]):
        return
    whole = decode(ids) + forced
    try:
        spelt = decode(ids[: len(ids) - mine[1]] + mine[0])
    except (KeyError, TypeError, OverflowError):
        spelt = "something that is no text"
    hint = (
        f"together they say {spelt!r}, not {whole!r}" if spelt != whole
        else "the text is right; spell the old text and the forced one together, and keep only what both spellings have in common from the start"
    )  # fmt: skip
    fail(f"{where}: new ids, rolled back", mine, (list(right[0]), right[1]), run=run, event=event, hint=hint)


CHECKS: dict[str, Callable[..., list[str]]] = {"jump": check_jump}


# --- the learner's own run ---------------------------------------------------------------------

KEYWORDS = ("entry", "label", "remark", "status_code", "second_name", "origin", "reference", "item_no", "shade", "field", "checked_by")
NAMES = ("Ines", "Tove", "Olaf", "Mira", "Jon", "Freya")


def drawn(rng: random.Random) -> tuple[dict[str, Any], list[Part], str]:
    """A schema with four keys, its parts, and a document."""
    keys = rng.sample(KEYWORDS, 4)
    properties: dict[str, Any] = {}
    parts: list[Part] = []
    document: dict[str, Any] = {}
    for i, key in enumerate(keys):
        kind = rng.choice(("string", "year", "enum", "boolean")) if i else "string"
        lead = ("{" if not i else ", ") + f'"{key}": '
        if kind == "string":
            properties[key], document[key] = {"type": "string", "maxLength": 12}, rng.choice(NAMES)
            parts += [("text", lead + '"'), ("string", 12)]
        elif kind == "year":
            properties[key], document[key] = {"type": "integer", "minimum": 1900, "maximum": 1999}, rng.randint(1900, 1999)
            parts += [("text", lead), ("one of", tuple(str(y) for y in range(1900, 2000)))]
        elif kind == "boolean":
            properties[key], document[key] = {"type": "boolean"}, rng.random() < 0.5
            parts += [("text", lead), ("one of", ("true", "false"))]
        else:
            options = rng.sample(("red", "ready", "retired", "blue", "black", "brown"), 4)
            properties[key], document[key] = {"enum": options}, rng.choice(options)
            parts += [("text", lead + '"'), ("one of", tuple(options)), ("text", '"')]
    parts.append(("text", "}"))
    return {"type": "object", "properties": properties, "required": keys}, parts, json.dumps(document)


def questions(lesson: Lesson, rng: random.Random) -> Own:
    """A schema and a document: forced characters, forced runs, the longest."""
    schema, parts, document = drawn(rng)
    request = {"id": "own", "tokens": "A8", "json_schema": schema, "says": list(document.encode()), "max_new_tokens": len(document)}
    run = lesson.run({"name": "your own document", "engine": {"executor": "puppet", "pages": 1024, "jump": "off"}, "requests": [request]})
    told = forced(parts, document)
    lengths = [len(run_of) for run_of in "".join("x" if f else " " for f in told).split()]
    masked = events(run, "grammar.masked")
    compiled = events(run, "grammar.compiled")[0].seq
    facts = {"schema": json.dumps(schema), "document": document, "request": "own; its output ids are bytes"}
    asked = (
        Asked("How many of the document's characters are forced?", sum(told), compiled, "characters", hint="quotes that close a string are a choice, unless the string is as long as it may be"),
        Asked("How many runs of forced characters are there, one or more in a row?", len(lengths), masked[0].seq, "runs", hint="a run ends where the model has a choice"),
        Asked("How many characters has the longest of them?", max(lengths), compiled, "characters", hint="count the quotes, the colon and the spaces as well"),
    )  # fmt: skip
    return Own(run, asked, facts)
