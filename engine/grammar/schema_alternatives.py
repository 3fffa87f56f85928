"""A schema as a list of alternatives: references followed, `allOf`, `anyOf`, `oneOf` and `not` taken apart.

An alternative is a conjunction of plain schemas, whose own words all hold, and of other alternatives that must
not hold. Together the alternatives of a schema say what the schema says, except that inside what must not hold
a `oneOf` counts as an `anyOf`: too much is then taken away, never too little.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.grammar.schema_bounds import Notes
from engine.grammar.schema_formats import FORMATS
from engine.grammar.schema_keywords import SPEAKS_OF, TYPES
from engine.grammar.schema_refs import Schema, recursive, resolve, step
from engine.grammar.syntax import GrammarError

MAX_ALTERNATIVES = 500
"""More combinations of branches than this at one place are refused."""


class ImpossibleError(GrammarError):
    """Nothing satisfies the part of the schema at `where`. Whether that matters is for the parts around it to say."""

    def __init__(self, message: str, where: int | str | None, meant: bool = False) -> None:
        super().__init__(message, where)
        self.meant = meant
        """It was to be so: by a `false`, or where recursion has to stop."""


@dataclass(frozen=True, slots=True)
class Plain:
    """One schema of the text, of which only its own words count, without references and branches."""

    schema: Schema = field(compare=False)
    path: str
    opened: tuple[tuple[str, int], ...] = ()
    """How often each recursive reference has been followed on the way from the top of the document to here."""
    cut: bool = False
    """Recursion ends here: nothing is written in this place."""

    def __contains__(self, word: str) -> bool:
        return isinstance(self.schema, dict) and word in self.schema

    def __getitem__(self, word: str) -> Any:
        return self.schema[word] if isinstance(self.schema, dict) else None

    def get(self, word: str, default: Any) -> Any:
        """What the schema says under a word, `default` where it says nothing."""
        return self.schema.get(word, default) if isinstance(self.schema, dict) else default

    def at(self, word: str, *names: str | int) -> str:
        """The path of a word of this schema, or of what lies under it."""
        path = step(self.path, word)
        for name in names:
            path = step(path, name)
        return path

    def below(self, word: str, *names: str | int) -> Plain:
        """The schema under a word of this one."""
        schema = self[word]
        for name in names:
            schema = schema[name]
        return Plain(schema, self.at(word, *names), self.opened, self.cut)


@dataclass(frozen=True, slots=True)
class Alternative:
    """All of `plains` hold, and nothing in `less` does."""

    plains: tuple[Plain, ...] = ()
    less: tuple[tuple[Alternative, str], ...] = ()
    """What must not hold, each with the path of the `oneOf` or `not` that says so."""

    @property
    def cut(self) -> bool:
        """Whether recursion ends here."""
        return any(plain.cut for plain in self.plains)

    @property
    def path(self) -> str:
        """Where it stands: its first plain schema that says something."""
        said = [plain for plain in self.plains if Alternative((plain,)).spoken_of() or "type" in plain]
        return (said or self.plains)[0].path

    def stated(self, word: str) -> list[tuple[Any, str]]:
        """All that the plain schemas say under a word, with the paths."""
        return [(plain[word], plain.at(word)) for plain in self.plains if word in plain]

    def words(self) -> set[str]:
        """All words of the plain schemas."""
        return {word for plain in self.plains if isinstance(plain.schema, dict) for word in plain.schema}

    def types(self) -> frozenset[str]:
        """The types that may hold as the standard reads it: without a `type`, all of them."""
        allowed = frozenset(TYPES) - {"integer"}
        for names, _ in self.stated("type"):
            allowed = common_types(allowed, [names] if isinstance(names, str) else names)
        return allowed

    def types_meant(self) -> frozenset[str]:
        """The types to write: without a `type`, those that the schema's words speak of, if there are any."""
        return self.spoken_of() if self.spoken_of() and not self.stated("type") else self.types()

    def spoken_of(self) -> frozenset[str]:
        """The types that words other than `type` say something about."""
        spoken = {SPEAKS_OF[word] for word in self.words() if word in SPEAKS_OF}
        return frozenset(spoken | {FORMATS[name].type for name, _ in self.stated("format")})

    @property
    def open(self) -> bool:
        """Whether the plain schemas say nothing at all of a value."""
        return not self.stated("type") and not self.spoken_of() and self.values() is None

    @property
    def never(self) -> bool:
        """Whether one of the plain schemas is `false`."""
        return any(plain.schema is False for plain in self.plains)

    def covers(self, name: str) -> bool:
        """Whether every value of a type satisfies this alternative, because nothing is said of the type."""
        silent = name in self.types() and name not in self.spoken_of() and self.values() is None
        return silent and not self.less and not self.never

    def values(self) -> tuple[list[Any], str] | None:
        """The values of the first `enum` or `const`, with its path; None where there is neither."""
        for plain in self.plains:
            for word in ("const", "enum"):
                if word in plain:
                    return ([plain[word]] if word == "const" else plain[word]), plain.at(word)
        return None


def common_types(left: Iterable[str], right: Iterable[str]) -> frozenset[str]:
    """Types that both sides allow. A whole number is a number."""
    sides = [{*side, "integer"} if "number" in side else {*side} for side in (set(left), set(right))]
    found = sides[0] & sides[1]
    return frozenset(found - {"integer"} if "number" in found else found)


class Branches:
    """Takes the schemas of one text apart."""

    def __init__(self, root: Schema, depth: int, notes: Notes) -> None:
        self.root = root
        self.depth = depth
        """How often each recursive reference is followed on one way down the document."""
        self.notes = notes
        self._recursive = recursive(root)

    def alternatives(self, plains: Sequence[Plain]) -> list[Alternative]:
        """All ways in which all of these schemas hold for one value."""
        found = [Alternative()]
        for plain in plains:
            found = _cross(found, self._expand(plain), plain.path)
        return found

    def _expand(self, plain: Plain) -> list[Alternative]:
        """One schema's alternatives."""
        found = [Alternative((plain,))]
        if "$ref" in plain:
            found = _cross(found, self._follow(plain), plain.at("$ref"))
        for i in range(len(plain.get("allOf", ()))):
            found = _cross(found, self._expand(plain.below("allOf", i)), plain.at("allOf"))
        for word in ("anyOf", "oneOf"):
            if word in plain:
                branches = [self._expand(plain.below(word, i)) for i in range(len(plain[word]))]
                if word == "oneOf":
                    branches = _exactly_one(branches, plain.at(word))
                found = _cross(found, [option for branch in branches for option in branch], plain.at(word))
        if "not" in plain:
            less = tuple((option, plain.at("not")) for option in self._expand(plain.below("not")))
            found = [Alternative(option.plains, option.less + less) for option in found]
        return found

    def _follow(self, plain: Plain) -> list[Alternative]:
        """The alternatives of what a reference points at."""
        schema, path = resolve(self.root, plain["$ref"], plain.at("$ref"))
        opened, cut = plain.opened, plain.cut
        if path in self._recursive:
            times = dict(opened)
            cut = cut or times.get(path, 0) >= self.depth
            if cut:
                self.notes.add(f"recursion stops where a reference has been followed {self.depth} times", path)
            times[path] = times.get(path, 0) + 1
            opened = tuple(sorted(times.items()))
        return self._expand(Plain(schema, path, opened, cut))


def _cross(left: list[Alternative], right: list[Alternative], where: str) -> list[Alternative]:
    """Both sides hold. Raises GrammarError where that makes too many alternatives."""
    if len(left) * len(right) > MAX_ALTERNATIVES:
        raise GrammarError(f"more than {MAX_ALTERNATIVES} combinations of branches", where)
    return [
        Alternative(a.plains + tuple(p for p in b.plains if p not in a.plains), a.less + b.less)
        for a in left
        for b in right
    ]


def _exactly_one(branches: list[list[Alternative]], where: str) -> list[list[Alternative]]:
    """Each branch without all the others."""
    found = []
    for i, branch in enumerate(branches):
        others = tuple((option, where) for k, other in enumerate(branches) if k != i for option in other)
        found.append([Alternative(option.plains, option.less + others) for option in branch])
    return found
