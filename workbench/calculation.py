"""The calculators as forms: what is asked, within which bounds, and what is told. The command line and the page show the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from workbench.calculators import GIB, MODELS, Model, amdahl, expected_speedup, kv_bytes, load_or_compute, tokens_held
from workbench.experiments.result import Chart, Curve, Point
from workbench.experiments.words import amount

Values = Mapping[str, Any]
OWN = "my own numbers"


class Figure(msgspec.Struct, frozen=True):
    """One number that came out."""

    label: str
    value: int | float
    unit: str


class Answer(msgspec.Struct, kw_only=True):
    """What a calculator tells: one sentence, numbers, a chart."""

    words: str
    figures: list[Figure]
    chart: Chart


@dataclass(frozen=True)
class Field:
    """One number that is asked for. `whole`: no fractions."""

    key: str
    label: str
    default: int | float
    low: int | float
    high: int | float
    whole: bool = True

    def read(self, raw: object) -> int | float:
        """The number that somebody gave. Raises ValueError naming the field and what it takes."""
        kind = "a whole number" if self.whole else "a number"
        refusal = ValueError(f"{self.key}: must be {kind} from {self.low:,} to {self.high:,}; got {raw}")
        try:
            number = float(raw)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            raise refusal from None
        if not self.low <= number <= self.high or (self.whole and number != int(number)):
            raise refusal
        return int(number) if self.whole else number


@dataclass(frozen=True)
class Calculator:
    """One question that arithmetic answers."""

    name: str
    title: str
    about: str
    fields: tuple[Field, ...]
    work: Callable[[Values], Answer]
    shapes: bool = False
    """Whether a published model's shape can stand for some of the fields."""

    def answer(self, given: Values) -> Answer:
        """What comes out; fields that are not given keep their defaults. Raises ValueError naming a field."""
        model = given.get("model")
        known: dict[str, Any] = shape(str(model)) if model and model != OWN else {}
        values = {f.key: f.read(given.get(f.key, known.get(f.key, f.default))) for f in self.fields}
        return self.work(values)


def shape(model: str) -> dict[str, int]:
    """A published model's fields. Raises ValueError naming those that are known."""
    if model not in MODELS:
        raise ValueError(f"model: must be one of {', '.join(MODELS)}; got {model}")
    found = MODELS[model]
    return {"layers": found.layers, "kv-heads": found.kv_heads, "head-width": found.head_width, "vectors": found.vectors}


def find(name: str) -> Calculator:
    """A calculator by its name. Raises ValueError naming those that are there."""
    if name not in CALCULATORS:
        raise ValueError(f"{name!r} is no calculator; there are {', '.join(CALCULATORS)}")
    return CALCULATORS[name]


def in_words(answer: Answer) -> str:
    """An answer as plain text."""
    width = max(len(f.label) for f in answer.figures)
    rows = [f"{f.label.ljust(width)}  {amount(f.value, f.unit)}" for f in answer.figures]
    return "\n".join([answer.words, "", *rows])


# --- memory --------------------------------------------------------------------------------------

SHAPE = (
    Field("layers", "Layers", 32, 1, 1000),
    Field("kv-heads", "KV heads", 8, 1, 1024),
    Field("head-width", "Head width", 128, 1, 8192),
    Field("vectors", "Vectors a head (2: key and value; 1: one latent)", 2, 1, 2),
    Field("bytes", "Bytes a number (1: 8-bit)", 2, 1, 8),
)


def _model(v: Values) -> Model:
    return Model("", v["layers"], v["kv-heads"], v["head-width"], "", v["vectors"])


def _memory(v: Values) -> Answer:
    each = kv_bytes(v["layers"], v["kv-heads"], v["head-width"], v["bytes"], v["vectors"])
    shared, readers = each * v["tokens"], v["readers"]
    counts = sorted({1, *(max(1, readers * i // 8) for i in range(1, 9))})
    lines = {"private copies": [n * shared for n in counts], "one shared": [shared for _ in counts]}
    curves = [Curve(name=name, points=[Point(n, round(b / GIB, 4), f"{n:,} readers") for n, b in zip(counts, line, strict=True)]) for name, line in lines.items()]
    return Answer(
        words=f"One copy takes {shared / GIB:,.4g} GiB. {readers:,} readers with a copy each take {readers * shared / GIB:,.4g} GiB; sharing saves {100 * (1 - 1 / readers):.4g} % of it.",
        figures=[
            Figure("a token", each, "bytes"), Figure("the prefix, once", shared / GIB, "GiB"),
            Figure(f"{readers:,} private copies", readers * shared / GIB, "GiB"),
        ],
        chart=Chart(kind="capacity", title="Memory of a prefix, by how many read it at once", x="readers", y="GiB", curves=curves),
    )  # fmt: skip


# --- load or compute -----------------------------------------------------------------------------


def _offload(v: Values) -> Answer:
    saved, link, tokens, rate = v["mib"] * 2**20, v["link"] * 1e9, v["tokens"], v["rate"]
    choice = load_or_compute(saved, link, tokens, rate)
    won = "loading" if choice.loads else "computing"
    even = choice.even_link / 1e9
    speeds = sorted({round(top * i / 12, 4) for top in (2 * max(even, v["link"]),) for i in range(1, 13)} | {v["link"]})
    sweep = [load_or_compute(saved, speed * 1e9, tokens, rate) for speed in speeds]
    lines = {
        "load it": [c.load for c in sweep], "compute it again": [c.compute for c in sweep], "what takes less": [min(c.load, c.compute) for c in sweep],
    }  # fmt: skip
    curves = [
        Curve(name=name, points=[Point(s, round(1000 * t, 3), "loading" if c.loads else "computing") for s, c, t in zip(speeds, sweep, line, strict=True)])
        for name, line in lines.items()
    ]
    return Answer(
        words=f"{won.capitalize()} wins: loading takes {1000 * choice.load:,.4g} ms, computing {1000 * choice.compute:,.4g} ms. They meet at a link of {even:,.4g} GB/s.",
        figures=[
            Figure("load it", round(1000 * choice.load, 4), "ms"), Figure("compute it again", round(1000 * choice.compute, 4), "ms"),
            Figure("loading wins above a link of", round(even, 4), "GB/s"), Figure("loading wins below a prefill rate of", round(choice.even_rate, 2), "tokens/s"),
        ],
        chart=Chart(kind="times", title="Load or compute, by the link", x="link, GB/s", y="until it is there, ms", curves=curves),
    )  # fmt: skip


# --- what reuse is worth -------------------------------------------------------------------------


def _speedup(v: Values) -> Answer:
    def at(rate: float) -> tuple[float, float]:
        return expected_speedup([v["prompt"]], rate / 100, [v["answer"]], v["step"] / 1000, v["token"] / 1000)

    first, whole = at(v["hit-rate"])
    rates = range(0, 100, 5)
    curves = [
        Curve(name=name, points=[Point(r, round(at(r)[i], 4), f"hit rate {r} %") for r in rates])
        for i, name in enumerate(("to the first token", "the whole request"))
    ]
    return Answer(
        words=f"The first token comes {first:,.4g} times sooner; the whole request takes {whole:,.4g} times less.",
        figures=[Figure("to the first token", round(first, 4), "times faster"), Figure("the whole request", round(whole, 4), "times faster")],
        chart=Chart(kind="capacity", title="Expected speed-up against the hit rate", x="hit rate, % of prompt tokens", y="times faster", curves=curves),
    )  # fmt: skip


def _amdahl(v: Values) -> Answer:
    share, faster = v["share"], v["faster"]
    whole, most = amdahl(share, 100 - share, faster), None if share == 100 else 100 / (100 - share)
    points = [Point(s, round(amdahl(s, 100 - s, faster), 4), f"prefill is {s} % of the request") for s in range(0, 101, 5)]
    figures = [Figure("the whole request", round(whole, 4), "times faster")]
    limit = "" if most is None else f" However fast the prefill, it never becomes more than {most:,.4g} times faster."
    return Answer(
        words=f"With {share:g} % of its time in a prefill that becomes {faster:g} times faster, a request becomes {whole:,.4g} times faster.{limit}",
        figures=[*figures, *([Figure("with a prefill that takes nothing", round(most, 4), "times faster")] if most else [])],
        chart=Chart(
            kind="capacity", title=f"The whole request, when its prefill becomes {faster:g} times faster", x="prefill's share of the request, %",
            y="times faster", curves=[Curve(name="the whole request", points=points)],
        ),
    )  # fmt: skip


# --- data-parallel attention ---------------------------------------------------------------------

LAYOUTS = {"tensor parallelism": "tensor", "data-parallel attention": "data"}


def _attention(v: Values) -> Answer:
    model, room, gpus = _model(v), v["room"] * 1e9, v["gpus"]
    held = {name: tokens_held(room, gpus, model, v["bytes"], layout) for name, layout in LAYOUTS.items()}
    tensor, data = held.values()
    counts = sorted({n for n in (1, 2, 4, 8, 16, 32, gpus) if n <= max(8, gpus) and not (model.kv_heads % n and n % model.kv_heads)})
    curves = [
        Curve(name=name, points=[Point(n, tokens_held(room, n, model, v["bytes"], layout).whole, f"{n} GPUs") for n in counts])
        for name, layout in LAYOUTS.items()
    ]
    kept = "each KV head lies on one GPU" if tensor.copies == 1 else f"each KV head is kept {tensor.copies} times"
    times = data.whole / tensor.whole if tensor.whole else None
    gain = "" if times is None else f" Data-parallel attention caches {times:,.3g} times as many tokens." if times > 1.005 else " Both cache as many tokens."
    return Answer(
        words=f"With tensor parallelism over {gpus} GPUs {kept}.{gain} With it, a prefix that requests on several GPUs share is kept on each of them; weights and other layers are left out.",
        figures=[
            Figure("tensor parallelism: tokens in all", tensor.whole, "tokens"), Figure("tensor parallelism: copies of each KV head", tensor.copies, ""),
            Figure("data-parallel attention: tokens a GPU", data.each, "tokens"), Figure("data-parallel attention: tokens in all", data.whole, "tokens"),
        ],
        chart=Chart(kind="capacity", title="Different tokens that the GPUs cache together", x="GPUs", y="tokens in all", curves=curves),
    )  # fmt: skip


CALCULATORS = {
    c.name: c
    for c in (
        Calculator(
            "memory", "Memory of a prefix", "What a prefix's keys and values weigh: a copy for each reader, against one that all share.",
            (*SHAPE, Field("tokens", "Tokens", 8192, 1, 10**9), Field("readers", "Readers at once", 32, 1, 10**6)), _memory, shapes=True,
        ),
        Calculator(
            "offload", "Load or compute", "Saved state lies on the host: bring it back over the link, or compute it again?",
            (
                Field("mib", "Saved state, MiB", 1024, 0.001, 10**8, whole=False), Field("link", "Link, GB/s", 25, 0.001, 10**5, whole=False),
                Field("tokens", "Its tokens", 8192, 1, 10**9), Field("rate", "Prefill rate, tokens/s", 40_000, 0.001, 10**9, whole=False),
            ), _offload,
        ),
        Calculator(
            "speedup", "What a hit rate is worth", "A pass takes a fixed time and some for each token it forwards; each further token of the answer takes a pass.",
            (
                Field("prompt", "Prompt tokens", 2048, 1, 10**7), Field("hit-rate", "Hit rate, %", 75, 0, 100, whole=False), Field("answer", "Answer tokens", 64, 0, 10**6),
                Field("step", "A pass, ms", 8, 0.000001, 10**6, whole=False), Field("token", "A token, ms", 0.2, 0.000001, 10**6, whole=False),
            ), _speedup,
        ),
        Calculator(
            "amdahl", "A faster prefill", "Only the prefill becomes faster: what does the whole request gain? (Amdahl's law)",
            (Field("share", "Prefill's share, %", 10, 0, 100, whole=False), Field("faster", "Prefill becomes so many times faster", 5, 0.001, 10**6, whole=False)), _amdahl,
        ),
        Calculator(
            "attention", "GPUs that share a cache", "Tensor parallelism splits the KV heads over the GPUs, and copies them where there are too few; data-parallel attention keeps each request on one GPU.",
            (*SHAPE, Field("gpus", "GPUs", 8, 1, 1024), Field("room", "Room for KV on each GPU, GB", 40, 0.001, 10**6, whole=False)), _attention, shapes=True,
        ),
    )
}  # fmt: skip
