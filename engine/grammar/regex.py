r"""Regular expressions, as Python's `re` writes them, as trees of characters.

A pattern describes the whole text, as `re.fullmatch` takes it. Classes mean what they mean in `re`: \d, \w and \s
are Unicode's, so \d is any decimal digit of any script, [0-9] the ten of ASCII; `ascii=True` takes \d, \w, \s as
under re.ASCII, which is nearer to the patterns in JSON schemas. A dot is any character but a line feed.

Groups only group. Lazy quantifiers describe the same texts as greedy ones and are taken as these. Anchors at the
very start and end say what holds anyway. What describes no set of texts by itself, or depends on what stands
around a place, is refused by its name and its place: anchors elsewhere, \b, look-around, back-references,
possessive quantifiers, atomic groups, conditionals, inline flags.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from engine.grammar.charsets import Ranges, category, complement, union
from engine.grammar.syntax import EMPTY, LAST, Chars, GrammarError, Node, Repeat, Seq, either

MAX_DEPTH = 100
"""So deep may groups stand within groups."""

CONTROLS = {"t": 9, "n": 10, "r": 13, "f": 12, "v": 11, "a": 7}
HEX = {"x": 2, "u": 4, "U": 8}
"""Letter of a hexadecimal escape -> its digits."""
DOT = complement(((10, 10),))
OCTAL = re.compile("[0-7]{1,3}")
NAME = re.compile(r"\{([^}]+)\}")
COUNTS = re.compile(r"\{(\d*)(,?)(\d*)\}", re.ASCII)
EXTENSIONS = {
    "=": "look-ahead",
    "!": "look-ahead",
    "<=": "look-behind",
    "<!": "look-behind",
    "P=": "a back-reference",
    ">": "an atomic group",
    "(": "a conditional",
}
"""What follows `(?` -> what it is called, where it cannot be taken."""


def parse(pattern: str, ascii: bool = False) -> Node:
    """The tree of a pattern. Raises GrammarError with the offset of what is wrong or cannot be taken."""
    parser = _Parser(pattern, ascii)
    part = parser.options(at_start=True, depth=0)
    if parser.at < len(pattern):
        raise parser.error("`)` closes no group")
    return part.node


@dataclass(frozen=True, slots=True)
class _Part:
    """A piece of a pattern; `first` and `last` are where it has an anchor that nothing may precede or follow."""

    node: Node
    blank: bool = False
    """It matches the empty text and nothing else."""
    first: int | None = None
    last: int | None = None


class _Parser:
    def __init__(self, pattern: str, ascii: bool) -> None:
        self.pattern, self.ascii = pattern, ascii
        self.at = 0

    def error(self, what: str, at: int | None = None) -> GrammarError:
        at = self.at if at is None else at
        return GrammarError(f"{what} (position {at})", at)

    def refusal(self, what: str, at: int) -> GrammarError:
        return self.error(f"{what} cannot be turned into an automaton", at)

    def take(self, text: str) -> bool:
        """Go past `text` if it stands here."""
        if not self.pattern.startswith(text, self.at):
            return False
        self.at += len(text)
        return True

    # --- the pattern's structure

    def options(self, at_start: bool, depth: int) -> _Part:
        """Alternatives, up to a closing parenthesis or the end."""
        found = [self.sequence(at_start, depth)]
        while self.take("|"):
            found.append(self.sequence(at_start, depth))
        return _Part(
            either(part.node for part in found),
            all(part.blank for part in found),
            next((part.first for part in found if part.first is not None), None),
            next((part.last for part in found if part.last is not None), None),
        )

    def sequence(self, at_start: bool, depth: int) -> _Part:
        """One part after the other."""
        parts: list[_Part] = []
        last: int | None = None
        self.skip_comments()
        while self.at < len(self.pattern) and self.pattern[self.at] not in "|)":
            begin = self.at
            part = self.quantified(self.atom(at_start and all(p.blank for p in parts), depth), begin)
            if last is not None and not part.blank:
                raise self.refusal("an end anchor that is not at the end", last)
            last = part.last if last is None else last
            parts.append(part)
            self.skip_comments()
        first = next((part.first for part in parts if part.first is not None), None)
        nodes = tuple(part.node for part in parts if not part.blank)
        return _Part(nodes[0] if len(nodes) == 1 else Seq(nodes), not nodes, first, last)

    def skip_comments(self) -> None:
        while self.pattern.startswith("(?#", self.at):
            end = self.pattern.find(")", self.at)
            if end < 0:
                raise self.error("a comment is not closed")
            self.at = end + 1

    def atom(self, at_start: bool, depth: int) -> _Part:
        """One character, class, group or anchor."""
        begin, char = self.at, self.pattern[self.at]
        if char == "(":
            return self.group(at_start, depth)
        if char in "*+?" or self.counts():
            raise self.error(f"`{char}` has nothing to repeat")
        if char == "^" or self.pattern.startswith(r"\A", begin):
            if not at_start:
                raise self.refusal("a start anchor that is not at the start", begin)
            self.at += 1 if char == "^" else 2
            return self.anchor(_Part(EMPTY, blank=True, first=begin))
        if char == "$" or self.pattern.startswith(r"\Z", begin):
            self.at += 1 if char == "$" else 2
            return self.anchor(_Part(EMPTY, blank=True, last=begin))
        self.at += 1
        if char == ".":
            return _Part(Chars(DOT))
        if char == "[":
            return _Part(Chars(self.char_class(begin)))
        if char == "\\":
            return _Part(Chars(self.escape(begin, within_class=False)))
        return _Part(Chars(((ord(char), ord(char)),)))

    def anchor(self, part: _Part) -> _Part:
        self.skip_comments()
        if self.at < len(self.pattern) and (self.pattern[self.at] in "*+?" or self.counts()):
            raise self.error("an anchor cannot be repeated")
        return part

    def group(self, at_start: bool, depth: int) -> _Part:
        begin = self.at
        if depth == MAX_DEPTH:
            raise self.error(f"groups are nested more than {MAX_DEPTH} deep")
        self.at += 1
        if self.take("?"):
            self.extension(begin)
        part = self.options(at_start, depth + 1)
        if not self.take(")"):
            raise self.error("a group is not closed", begin)
        return part

    def extension(self, begin: int) -> None:
        """What follows `(?`: go past it where it only groups."""
        for text, what in EXTENSIONS.items():
            if self.pattern.startswith(text, self.at):
                raise self.refusal(what, begin)
        if self.take(":"):
            return
        if self.take("P<") or self.take("<"):
            end = self.pattern.find(">", self.at)
            if end < 0 or not self.pattern[self.at : end].isidentifier():
                raise self.error("a group's name is missing or no name")
            self.at = end + 1
            return
        if self.pattern[self.at : self.at + 1] in set("aiLmsux-"):
            raise self.refusal("an inline flag", begin)
        raise self.error("`(?` is followed by nothing that is known", begin)

    # --- how often

    def counts(self) -> re.Match[str] | None:
        """A counted repetition that stands here. Other braces are characters."""
        match = COUNTS.match(self.pattern, self.at)
        return match if match and match[0] != "{}" else None

    def quantified(self, part: _Part, begin: int) -> _Part:
        """The part as often as the quantifier after it says, if there is one."""
        self.skip_comments()
        at = self.at
        bounds = self.quantifier()
        if bounds is None:
            return part
        least, most = bounds
        if self.at < len(self.pattern) and self.pattern[self.at] == "+":
            raise self.refusal("a possessive quantifier", at)
        self.take("?")
        self.skip_comments()
        if self.at < len(self.pattern) and (self.pattern[self.at] in "*+?" or self.counts()):
            raise self.error("a quantifier follows a quantifier")
        if most is not None and most < least:
            raise self.error(f"the least count {least} is above the most {most}", at)
        if part.blank:
            return part
        anchored = part.first if part.first is not None else part.last
        if anchored is not None and most != 0 and (most is None or most > 1):
            raise self.refusal("an anchor that is repeated", anchored)
        return _Part(Repeat(part.node, least, most), most == 0, part.first, part.last)

    def quantifier(self) -> tuple[int, int | None] | None:
        for char, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self.take(char):
                return bounds
        match = self.counts()
        if not match:
            return None
        self.at = match.end()
        low, comma, high = match.groups()
        if not comma:
            return int(low), int(low)
        return int(low or 0), int(high) if high else None

    # --- characters

    def char_class(self, begin: int) -> Ranges:
        """What is between the brackets."""
        negated = self.take("^")
        start = self.at
        found: list[tuple[int, int]] = []
        while True:
            if self.at >= len(self.pattern):
                raise self.error("a character class is not closed", begin)
            if self.at > start and self.take("]"):
                return complement(union(found)) if negated else union(found)
            at = self.at
            low = self.class_item(begin)
            if not self.pattern.startswith("-", self.at) or self.pattern.startswith("-]", self.at):
                found += low
                continue
            self.at += 1
            high = self.class_item(begin)
            if not _is_one(low) or not _is_one(high) or high[0][0] < low[0][0]:
                raise self.error(f"`{self.pattern[at : self.at]}` is no range of characters", at)
            found.append((low[0][0], high[0][0]))

    def class_item(self, begin: int) -> Ranges:
        """One character or escape within brackets."""
        if self.at >= len(self.pattern):
            raise self.error("a character class is not closed", begin)
        char = self.pattern[self.at]
        self.at += 1
        return self.escape(self.at - 1, within_class=True) if char == "\\" else ((ord(char), ord(char)),)

    def escape(self, begin: int, within_class: bool) -> Ranges:
        """What a backslash and what follows it mean."""
        if self.at >= len(self.pattern):
            raise self.error("a backslash escapes nothing", begin)
        char = self.pattern[self.at]
        self.at += 1
        if char in "dDwWsS":
            return category(char, self.ascii)
        if char in HEX:
            code = self.hexadecimal(HEX[char], begin)
        elif char in CONTROLS:
            code = CONTROLS[char]
        elif char == "N":
            code = self.named(begin)
        elif char == "b" and within_class:
            code = 8
        elif char in "0123456789":
            code = self.octal(begin, within_class)
        elif char in "bB":
            raise self.refusal("a word boundary", begin)
        elif char.isascii() and char.isalpha():
            raise self.error(f"`\\{char}` is no escape that is known", begin)
        else:
            code = ord(char)
        return ((code, code),)

    def hexadecimal(self, digits: int, begin: int) -> int:
        text = self.pattern[self.at : self.at + digits]
        self.at += len(text)
        if not re.fullmatch(f"[0-9a-fA-F]{{{digits}}}", text) or int(text, 16) > LAST:
            raise self.error(f"`{self.pattern[begin : self.at]}` is no character", begin)
        return int(text, 16)

    def named(self, begin: int) -> int:
        match = NAME.match(self.pattern, self.at)
        self.at = match.end() if match else self.at
        try:
            return ord(unicodedata.lookup(match[1] if match else ""))
        except (KeyError, TypeError):  # TypeError: the name of several characters
            raise self.error(r"`\N` names no character", begin) from None

    def octal(self, begin: int, within_class: bool) -> int:
        """A character by its octal number. Other digits are a back-reference, except in a class, where they are an error."""
        digits = OCTAL.match(self.pattern, begin + 1)
        text = digits[0] if digits else ""
        if not within_class and not text.startswith("0") and len(text) < 3:
            raise self.refusal("a back-reference", begin)
        self.at = begin + 1 + max(len(text), 1)
        if not text or int(text, 8) > 0o377:
            raise self.error(f"`{self.pattern[begin : self.at]}` is no character", begin)
        return int(text, 8)


def _is_one(ranges: Ranges) -> bool:
    """Whether it is a single character."""
    return len(ranges) == 1 and ranges[0][0] == ranges[0][1]
