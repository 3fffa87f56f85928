"""From alternatives to a tree: what may be written where all of some schemas hold."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import product
from math import prod

from engine.grammar.schema_alternatives import (
    MAX_ALTERNATIVES,
    Alternative,
    Branches,
    ImpossibleError,
    Plain,
    common_types,
)
from engine.grammar.schema_apart import apart, differences
from engine.grammar.schema_arrays import array_node
from engine.grammar.schema_bounds import Bounds, Notes
from engine.grammar.schema_free import FREE_TYPES, free_node
from engine.grammar.schema_keywords import TYPES
from engine.grammar.schema_layout import Layout
from engine.grammar.schema_measure import Sizes, states_of
from engine.grammar.schema_numbers import exactly, number, wide_number
from engine.grammar.schema_objects import object_node
from engine.grammar.schema_patterns import has_utf8
from engine.grammar.schema_refs import Schema
from engine.grammar.schema_strings import quoted, string, wide_string
from engine.grammar.schema_values import Judge, is_type, written
from engine.grammar.syntax import GrammarError, Minus, Node, either, text

STRING_WORDS = ("minLength", "maxLength", "pattern", "format")
NUMBER_WORDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "format")


class Writer:
    """Writes one schema with one set of bounds. Equal parts at equal depths become one node."""

    def __init__(self, root: Schema, layout: Layout, bounds: Bounds, depth: int) -> None:
        self.layout, self.bounds = layout, bounds
        self.notes = Notes()
        self.sizes = Sizes()
        self.branches = Branches(root, depth, self.notes)
        self.judge = Judge(root)
        self._values: dict[tuple[object, ...], Node | ImpossibleError] = {}
        self._scalars: dict[tuple[object, ...], Node] = {}
        self._free: dict[tuple[object, ...], Node] = {}

    def value(self, plains: Sequence[Plain], depth: int) -> Node:
        """What may be written where all of these schemas hold, `depth` containers deep.

        Raises ImpossibleError where nothing may, and GrammarError where that cannot be worked out.
        """
        key = (tuple(plains), self.layout.level(depth))
        if key not in self._values:
            try:
                self._values[key] = self._value(plains, depth)
            except ImpossibleError as reason:
                self._values[key] = reason
        found = self._values[key]
        if isinstance(found, ImpossibleError):
            raise found
        return found

    def _value(self, plains: Sequence[Plain], depth: int) -> Node:
        nodes: list[Node] = []
        reasons: list[tuple[Alternative, ImpossibleError]] = []
        for alternative in self.branches.alternatives(plains):
            try:
                nodes.append(self.alternative(alternative, depth))
            except ImpossibleError as impossible:
                reasons.append((alternative, impossible))
        if not nodes:
            raise _why([reason for _, reason in reasons])
        for alternative, reason in reasons:
            self.left_out(reason, alternative.path)
        return either(nodes)

    def alternative(self, alternative: Alternative, depth: int) -> Node:
        """What may be written where one alternative holds. Raises as `value` does."""
        for plain in alternative.plains:
            if plain.schema is False:
                raise ImpossibleError("`false` allows no value", plain.path, meant=True)
            if plain.cut:
                raise ImpossibleError("its recursion never ends", plain.path, meant=True)
        if alternative.values() is not None:
            return self._listed(alternative, depth)
        if alternative.open and not alternative.less:
            if alternative.plains:
                self.note_free(alternative.path)
            return self.free(frozenset(FREE_TYPES), depth, self.bounds.free_depth)
        types = alternative.types_meant()
        if not types:
            raise ImpossibleError("no type is left that all schemas here allow", alternative.stated("type")[-1][1])
        return _any_of([partial(self._typed, alternative, name, depth) for name in TYPES if name in types])

    def _listed(self, alternative: Alternative, depth: int) -> Node:
        """The values of an `enum` or `const` that all else allows."""
        values, path = alternative.values() or ([], "")
        texts = [written(v, self.layout, depth) for v in values if self.judge.alternative(v, alternative)]
        texts = [each for each in texts if has_utf8(each)]
        if not texts:
            raise ImpossibleError("none of the values listed here is allowed", path)
        return either([text(each) for each in texts])

    def _typed(self, alternative: Alternative, name: str, depth: int) -> Node:
        """What may be written of one type."""
        if name in ("null", "boolean"):
            values = [None] if name == "null" else [False, True]
            allowed = [v for v in values if self.judge.alternative(v, alternative)]
            if not allowed:
                raise ImpossibleError(f"no {name} value is allowed", alternative.less[0][1])
            return either([text(written(v, self.layout, depth)) for v in allowed])
        if name in ("string", "integer", "number"):
            return self.scalar(alternative, name)
        parts = self._kept_apart(alternative, name)
        node = _any_of([partial(self._container, part, name, depth) for part in parts])
        if len(parts) > 1:
            # They differ in one place, so that the automaton reads them side by side, which costs more.
            self.sizes.set(node, 2 * self.sizes.of(node))
        return node

    def _container(self, alternative: Alternative, name: str, depth: int) -> Node:
        if alternative.open:
            self.note_free(alternative.path)
            return self.free(frozenset((name,)), depth, self.bounds.free_depth)
        return (array_node if name == "array" else object_node)(alternative, self, depth)

    def _kept_apart(self, alternative: Alternative, name: str) -> list[Alternative]:
        """Alternatives of arrays or objects that never satisfy what must not hold. Raises GrammarError for none."""
        choices: list[list[Plain]] = []
        alone = Alternative(alternative.plains)
        for less, path in alternative.less:
            if less.covers(name):
                raise ImpossibleError(f"every {name} is ruled out", path)
            if name in less.types() and not apart(alone, less, self):
                choices.append(differences(less) if name == "object" else [])
                if choices[-1]:
                    continue
                word = path.rsplit("/", 1)[1]
                raise GrammarError(
                    f"`{word}` is not supported here: for an {name} it cannot be shown that one branch excludes another",
                    path,
                )
        if prod(map(len, choices)) > MAX_ALTERNATIVES:
            raise GrammarError(f"more than {MAX_ALTERNATIVES} combinations of branches", alternative.less[0][1])
        return [Alternative(alone.plains + more) for more in product(*choices)]

    def scalar(self, alternative: Alternative, name: str) -> Node:
        """The strings or numbers that an alternative allows. Raises ImpossibleError where there are none."""
        if name == "string":
            node = string(alternative, self.bounds, self.notes)
            simple = not alternative.less and not alternative.stated("pattern") and not alternative.stated("format")
        else:
            node, simple = number(alternative, name == "integer", self.notes), False
        key = (name, *_said(alternative, STRING_WORDS if name == "string" else NUMBER_WORDS))
        if key in self._scalars:
            return self._scalars[key]
        for less, _ in alternative.less:
            if not less.never and common_types(less.types(), (name,)):
                with suppress(ImpossibleError):
                    node = Minus(node, self.wide_scalar(less, name))
        if not simple:
            self.counted(node, f"no {name} satisfies all that is said here", alternative.path)
        self._scalars[key] = node
        return node

    def wide_scalar(self, alternative: Alternative, name: str) -> Node:
        """At least all strings or numbers that an alternative allows."""
        if listed := alternative.values():
            values = [v for v in listed[0] if is_type(v, "string" if name == "string" else "number")]
            return either([quoted(v) if isinstance(v, str) else exactly(v) for v in values])
        if name == "string":
            return wide_string(alternative)
        return wide_number(alternative, "number" not in alternative.types())

    def free(self, types: frozenset[str], depth: int, containers: int) -> Node:
        """Any value of these types, at most so many containers deep."""
        key = (types, containers, self.layout.level(depth))
        if key not in self._free:
            self._free[key] = free_node(types, containers, self, depth)
        return self._free[key]

    def note_free(self, path: str) -> None:
        """Note how far a value goes of which nothing is said."""
        within = f"at most {self.bounds.free_depth} containers deep and {self.bounds.free_items} items wide"
        self.notes.add(
            f"any value is {within}, its strings at most {self.bounds.free_characters} characters long", path
        )

    def counted(self, node: Node, complaint: str, path: str) -> Node:
        """The node, its states counted. Raises ImpossibleError where it matches nothing."""
        try:
            states = states_of(node)
        except GrammarError as error:
            raise GrammarError(str(error), path) from error
        if not states:
            raise ImpossibleError(complaint, path)
        self.sizes.set(node, states)
        return node

    def left_out(self, reason: ImpossibleError, path: str) -> None:
        """Note that a part of the schema can never hold and is left out, unless that is what it says."""
        if not reason.meant:
            self.notes.add(f"left out, as it can never hold: {reason}", str(reason.where or path))


def _any_of(attempts: Sequence[Callable[[], Node]]) -> Node:
    """All that is possible of several. Raises ImpossibleError where nothing is."""
    nodes: list[Node] = []
    reasons: list[ImpossibleError] = []
    for attempt in attempts:
        try:
            nodes.append(attempt())
        except ImpossibleError as reason:
            reasons.append(reason)
    if not nodes:
        raise _why(reasons)
    return either(nodes)


def _why(reasons: Sequence[ImpossibleError]) -> ImpossibleError:
    """One reason for several branches that cannot hold."""
    first = next((reason for reason in reasons if not reason.meant), reasons[0])
    if len(reasons) == 1:
        return first
    return ImpossibleError(
        f"none of {len(reasons)} branches can hold; {first}", first.where, all(r.meant for r in reasons)
    )


def _said(alternative: Alternative, words: Sequence[str]) -> tuple[str, ...]:
    """Equal for alternatives that say the same under these words, and take the same away."""
    said = [json.dumps({word: plain[word] for word in words if word in plain}) for plain in alternative.plains]
    for less, _ in alternative.less:
        said += ["less", *_said(less, (*words, "type", "enum", "const"))]
    return tuple(said)
