"""What is stored and what is not: keys and values stay, the answer depends on who asks; and a changed prefix changes all that follows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from workbench.experiments.bench import Bench, Findings, Plan
from workbench.experiments.result import HANDBOOK, Row, exact, within

Array = npt.NDArray[np.float64]
KEYS, VALUES = (0.0, 1.0), (2.0, 6.0)
QUERIES = {"0": (0.0, (0.5, 0.5), 4), "ln 3": (math.log(3), (0.25, 0.75), 5)}
"""Query -> its number, the published weights, the published result."""
TOKENS, PREFIX, CHANGED, WIDTH, VOCABULARY, SEED = 48, 32, 7, 32, 100, 0
AGREES, DIFFERS = 1e-12, 1e-3
"""Largest difference that is rounding in float64, and least that anyone would call a difference."""


def attend(query: Array, keys: Array, values: Array, first: int = 0, scale: float = 1.0) -> Array:
    """Causal attention of queries [n, d] at positions first ... first + n - 1 over keys and values [m, d]; returns [n, d]."""
    scores = query @ keys.T * scale
    scores = np.where(np.arange(len(keys)) > first + np.arange(len(query))[:, None], -np.inf, scores)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    result: Array = weights / weights.sum(axis=1, keepdims=True) @ values
    return result


@dataclass(frozen=True)
class State:
    """Keys and values of each layer, [tokens, width] each."""

    keys: list[Array]
    values: list[Array]

    def cut(self, size: int) -> State:
        """The state of the first `size` tokens."""
        return State([k[:size] for k in self.keys], [v[:size] for v in self.values])


def turned(rows: Array, positions: npt.NDArray[np.int64]) -> Array:
    """Rotary positions: each row [d] turned by its position, pair (i, i + d/2) by the angle position / 10000^(2i/d)."""
    half = rows.shape[1] // 2
    angles = positions[:, None] / 10000.0 ** (np.arange(half) / half)
    a, b = rows[:, :half], rows[:, half:]
    return np.hstack([a * np.cos(angles) - b * np.sin(angles), b * np.cos(angles) + a * np.sin(angles)])


class TwoLayers:
    """Two causal attention layers with a residual stream, random weights, float64.

    `rotary`: queries and keys are turned by their positions, as in Llama; values never are.
    """

    def __init__(self, seed: int, rotary: bool = False) -> None:
        self.rotary = rotary
        rng = np.random.default_rng(seed)
        self.embedding = rng.standard_normal((VOCABULARY, WIDTH))
        self.layers = [rng.standard_normal((4, WIDTH, WIDTH)) / math.sqrt(WIDTH) for _ in range(2)]

    def run(self, ids: npt.NDArray[np.int64], before: State | None = None, position: int = 0) -> tuple[Array, State]:
        """Output [n, width] at `ids` [n] and the state of all tokens, those of `before` kept and not computed.

        `position`: that of the very first token.
        """
        x = self.embedding[ids]
        keys, values = [], []
        for i, (q, k, v, o) in enumerate(self.layers):
            first = len(before.keys[i]) if before else 0
            at = position + first + np.arange(len(ids))
            asking, asked = (turned(y, at) if self.rotary else y for y in (x @ q, x @ k))
            keys.append(np.vstack([*([before.keys[i]] if before else []), asked]))
            values.append(np.vstack([*([before.values[i]] if before else []), x @ v]))
            x = x + attend(asking, keys[i], values[i], first, 1 / math.sqrt(WIDTH)) @ o
        return x, State(keys, values)


def apart(a: State, b: State, layer: int, rows: slice) -> float:
    """Largest difference of two states' keys and values in some rows of one layer."""
    return max(float(np.abs(x[layer][rows] - y[layer][rows]).max()) for x, y in ((a.keys, b.keys), (a.values, b.values)))


def differences(a: State, b: State, ahead: int = 0) -> dict[str, list[float]]:
    """Of each kind of row, per token of `a`, the largest difference to the same token in `b`, where it stands `ahead` places later."""
    pairs = {f"layer {layer + 1}, {kind}": (getattr(a, kind)[layer], getattr(b, kind)[layer]) for layer in range(len(a.keys)) for kind in ("keys", "values")}
    return {name: [float(d) for d in np.abs(x - y[ahead : ahead + len(x)]).max(axis=1)] for name, (x, y) in pairs.items()}


def small() -> list[Row]:
    """Two stored keys and values, and two queries that make different answers of them."""
    rows = []
    keys, values = (np.array(v)[:, None] for v in (KEYS, VALUES))
    for name, (number, weights, result) in QUERIES.items():
        query = np.array([[number]])
        got = [float(attend(query, keys, np.array(one)[:, None], first=1)[0, 0]) for one in ((1.0, 0.0), (0.0, 1.0))]
        for which, ours, published in zip(("first", "second"), got, weights, strict=True):
            rows.append(exact(f"query {name}: weight of the {which} key", round(ours, 12), published, "", HANDBOOK))
        rows.append(exact(f"query {name}: result", round(float(attend(query, keys, values, first=1)[0, 0]), 12), result, "", HANDBOOK))
    return rows


def find(bench: Bench) -> Findings:
    """The arithmetic, then two layers: a prefix kept, a prefix recomputed, a prefix changed."""
    model = TwoLayers(SEED)
    ids = np.random.default_rng(SEED + 1).integers(0, VOCABULARY, TOKENS)
    whole, state = model.run(ids)
    _, alone = model.run(ids[:PREFIX])
    suffix, _ = model.run(ids[PREFIX:], alone)
    other = ids.copy()
    other[CHANGED] = (other[CHANGED] + 1) % VOCABULARY
    _, changed = model.run(other)
    before, at, after = slice(0, CHANGED), slice(CHANGED, CHANGED + 1), slice(CHANGED + 1, PREFIX)
    kept = max(apart(state, alone, layer, slice(0, PREFIX)) for layer in (0, 1))
    same, differs = f"at most {AGREES:g}", f"at least {DIFFERS:g}"
    wrong, _ = model.run(other[PREFIX:], alone)
    truth, _ = model.run(other[PREFIX:], changed.cut(PREFIX))
    rows = [
        *small(),
        within("unchanged prefix: its state against the whole prompt's, largest difference", kept, None, AGREES, "", "exact", rule=same, source=HANDBOOK),
        within("unchanged prefix: the rest computed behind it against the whole prompt, largest difference", float(np.abs(suffix - whole[PREFIX:]).max()), None, AGREES, "", "exact",
               rule=same, source=HANDBOOK),
        within(f"token {CHANGED} changed: state before it, both layers, largest difference", max(apart(state, changed, i, before) for i in (0, 1)), None, AGREES, "", "exact", rule=same, source=HANDBOOK),
        within(f"token {CHANGED} changed: its own state, first layer, largest difference", apart(state, changed, 0, at), DIFFERS, None, "", "exact", rule=differs, source=HANDBOOK),
        within(f"token {CHANGED} changed: state after it, first layer, largest difference", apart(state, changed, 0, after), None, AGREES, "", "exact", rule=same, source=HANDBOOK),
        within(f"token {CHANGED} changed: state after it, second layer, largest difference", apart(state, changed, 1, after), DIFFERS, None, "", "exact", rule=differs, source=HANDBOOK),
        within(f"token {CHANGED} changed, the old state kept all the same: output of the rest, largest difference", float(np.abs(wrong - truth).max()), DIFFERS, None, "", "exact",
               rule=differs, source=HANDBOOK),
    ]  # fmt: skip
    setup = (
        f"First by hand: keys 0 and 1, values 2 and 6, and two queries; what is stored is the same, the answers are not. Then two causal attention layers of width {WIDTH} with random weights "
        f"in float64, and {TOKENS} random tokens: the state of the first {PREFIX} is kept and the rest computed behind it; then token {CHANGED} (from 0) is another one. In the first layer a "
        "token's keys and values come from the token alone; in the second they come from all before it, so one changed token changes all that follow."
    )
    return Findings(setup, rows)


PLAN = Plan(
    "attention", "Which stored keys and values stay true when another question follows, and which when the prefix changes?",
    "exact", "under a second", "under a second", find,
)  # fmt: skip
