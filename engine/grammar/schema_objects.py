"""Objects of a schema: declared keys in their order, then undeclared ones where the schema speaks of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.grammar.schema_alternatives import Alternative, ImpossibleError, Plain
from engine.grammar.schema_keys import about_key
from engine.grammar.schema_patterns import searched
from engine.grammar.schema_strings import SAYABLE, quoted, spelled
from engine.grammar.syntax import EMPTY, Both, GrammarError, Minus, Node, Repeat, Seq, either, optional, text

if TYPE_CHECKING:
    from engine.grammar.schema_writer import Writer

MAX_PATTERNS = 3
"""More `patternProperties` than this at one place are refused: keys may match any selection of them."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A place in the order of keys."""

    members: Node
    """A member, or several with commas between."""
    required: bool


def object_node(alternative: Alternative, writer: Writer, depth: int) -> Node:
    """The objects that an alternative allows. Raises ImpossibleError where a required key can have no value."""
    comma = text(writer.layout.comma(depth))
    slots = _declared_slots(alternative, writer, depth)
    slots = _counted(slots, more_members(alternative, writer, depth), comma, alternative, writer)
    may_be_empty = not any(plain.get("minProperties", 0) for plain in alternative.plains)
    return _braces(slots, comma, may_be_empty, writer, depth)


def declared(alternative: Alternative) -> list[str]:
    """All keys under `properties`, in their order."""
    return list(dict.fromkeys(name for names, _ in alternative.stated("properties") for name in names))


def about(alternative: Alternative, name: str) -> tuple[Plain, ...]:
    """All that an alternative's schemas say of the value under a key."""
    return tuple(said for plain in alternative.plains for said in about_key(plain, name))


def _declared_slots(alternative: Alternative, writer: Writer, depth: int) -> list[Slot]:
    """One slot for each key that is declared or required and can have a value."""
    required = {name: path for names, path in alternative.stated("required") for name in names}
    names = declared(alternative)
    slots: list[Slot] = []
    for name in dict.fromkeys([*names, *required]):
        said = about(alternative, name)
        if not said:
            writer.note_free(required[name])
        try:
            key, value = quoted(name), writer.value(said, depth + 1)
        except ImpossibleError as reason:
            if name in required:
                place = reason.where if name in names and reason.where else required[name]
                raise ImpossibleError(f"the required key {name!r} can have no value: {reason}", place) from reason
            writer.left_out(reason, alternative.path)
            continue
        slots.append(Slot(Seq((key, text(writer.layout.colon), value)), name in required))
    return slots


def _counted(slots: list[Slot], more: Node | None, comma: Node, alternative: Alternative, writer: Writer) -> list[Slot]:
    """The slots, with one for undeclared members, so that `minProperties` and `maxProperties` hold.

    An undeclared key may be written twice, so of those only one is ever counted on.
    """
    least = max((int(count) for count, _ in alternative.stated("minProperties")), default=0)
    most = min((int(count) for count, _ in alternative.stated("maxProperties")), default=None)
    fixed = sum(slot.required for slot in slots)
    loose = len(slots) - fixed
    room = writer.bounds.keys if more else 0
    if least > fixed + loose + room:
        problem = f"`minProperties` {least} needs more keys than are declared here"
        raise ImpossibleError(problem, _path(alternative, "minProperties"))
    if most is not None:
        if most < max(fixed, least):
            problem = f"`maxProperties` {most} is below the {max(fixed, least)} keys that are needed"
            raise ImpossibleError(problem, _path(alternative, "maxProperties"))
        if most == 1 and not fixed:
            members = [slot.members for slot in slots] + ([more] if more else [])
            return [Slot(either(members), least > 0)] if members else []
        if most == fixed:
            slots, loose = [slot for slot in slots if slot.required], 0
        elif most < fixed + loose:
            raise _cannot_count(alternative, "maxProperties")
        room = min(room, most - fixed - loose)
    if least == fixed + loose and not room:
        slots = [Slot(slot.members, True) for slot in slots]
    elif least > max(fixed, 1) and (loose or least > fixed + 1):
        raise _cannot_count(alternative, "minProperties")
    if more is None or not room:
        return slots
    several = Seq((more, Repeat(Seq((comma, more)), 0, room - 1)))
    return [*slots, Slot(several, least > fixed and not loose)]


def _path(alternative: Alternative, word: str) -> str:
    return alternative.stated(word)[0][1]


def _cannot_count(alternative: Alternative, word: str) -> GrammarError:
    return GrammarError(
        f"`{word}` is not supported where it would need optional keys to be counted", _path(alternative, word)
    )


def more_members(alternative: Alternative, writer: Writer, depth: int) -> Node | None:
    """One member whose key is not declared; None where no schema speaks of such keys, or none is possible."""
    patterns = list(dict.fromkeys(item for found, path in alternative.stated("patternProperties") for item in found))
    if not patterns and not alternative.stated("additionalProperties"):
        writer.notes.add("keys that are not declared are refused", alternative.path)
        return None
    if len(patterns) > MAX_PATTERNS:
        raise GrammarError(
            f"more than {MAX_PATTERNS} patterns are not supported", _path(alternative, "patternProperties")
        )
    known = either([text(name) for name in declared(alternative)])
    every = Minus(Repeat(SAYABLE, 0, writer.bounds.key_characters), known)
    options = []
    for bits in range(2 ** len(patterns)):
        chosen = [pattern for i, pattern in enumerate(patterns) if bits >> i & 1]
        said = _about_more(alternative, chosen)
        if said is None:
            writer.notes.add("keys that are not declared are refused", alternative.path)
            continue
        keys: Node = every
        for pattern in patterns:
            language = searched(pattern, _path(alternative, "patternProperties"))
            keys = (Both if pattern in chosen else Minus)(keys, language)
        try:
            value = writer.value(said, depth + 1)
            keys = writer.counted(spelled(keys), "no key that is not declared has this form", said[0].path)
        except ImpossibleError as reason:
            writer.left_out(reason, alternative.path)
            continue
        options.append(Seq((keys, text(writer.layout.colon), value)))
    if not options:
        return None
    most = f"objects have at most {writer.bounds.keys} keys that are not declared"
    writer.notes.add(f"{most}, of at most {writer.bounds.key_characters} characters", alternative.path)
    return either(options)


def _about_more(alternative: Alternative, patterns: Sequence[str]) -> tuple[Plain, ...] | None:
    """All that is said of an undeclared key that these patterns match; None where nobody speaks of such a key."""
    said: list[Plain] = []
    for plain in alternative.plains:
        matched = [p for p in patterns if "patternProperties" in plain and p in plain["patternProperties"]]
        said += [plain.below("patternProperties", p) for p in matched]
        if not matched and "additionalProperties" in plain:
            said.append(plain.below("additionalProperties"))
    return tuple(said) or None


def _braces(slots: Sequence[Slot], comma: Node, may_be_empty: bool, writer: Writer, depth: int) -> Node:
    """An object of these slots, in the writer's spacing."""
    opening, closing = text("{" + writer.layout.opening(depth)), text(writer.layout.closing(depth) + "}")
    begin = next((i for i, slot in enumerate(slots) if slot.required), None)
    if begin is not None:
        before = [optional(Seq((slot.members, comma))) for slot in slots[:begin]]
        after = [_later(slot, comma) for slot in slots[begin + 1 :]]
        return Seq((opening, *before, slots[begin].members, *after, closing))
    options = [text("{}")] if may_be_empty else []
    if slots:
        some = _some(slots, comma)
        writer.sizes.set(some, sum(writer.sizes.of(slot.members) + writer.sizes.of(comma) for slot in slots))
        options.append(Seq((opening, some, closing)))
    return either(options)


def _later(slot: Slot, comma: Node) -> Node:
    """A slot after another member."""
    member = Seq((comma, slot.members))
    return member if slot.required else optional(member)


def _some(slots: Sequence[Slot], comma: Node) -> Node:
    """At least one of several slots that may all be left out.

    Each of them may be the first, and then all that come later follow. That would spell out n slots n * n / 2
    times, but what follows a slot is one and the same node whether it stood first or later, and the automaton
    lays out one part before one continuation once.
    """
    some: list[Node] = []
    rest: Node = EMPTY
    for slot in reversed(slots):
        some = [either([Seq((slot.members, rest)), *some])]
        rest = Seq((_later(slot, comma), rest))
    return some[0]
