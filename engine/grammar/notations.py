"""A tree of characters in the notations of other libraries, so that they read the very same language.

Patterns are not passed on as they were written: notations differ (`[a&&b]` is two letters in `re` and an
intersection elsewhere), and nothing may quietly mean something else. Characters are written as code points; a
part that stands in several places gets a name and is written once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence

from engine.grammar.alphabet import children
from engine.grammar.charsets import Ranges
from engine.grammar.syntax import Both, Chars, Either, GrammarError, Minus, Node, Repeat, Seq
from engine.grammar.utf8 import SURROGATES, without

CHAIN = 2000
"""The longest repetition that is written as a chain of rules."""


def to_lark(node: Node) -> str:
    """A grammar of one terminal in llguidance's Lark. Raises GrammarError where it is nested too deep.

    `no_forcing`: where bytes are forced, every token that begins them is allowed, not only the one that a
    tokenizer would choose.
    """
    lark = _Lark(node)
    return "\n".join(['%llguidance {"no_forcing": true}', "start: WHOLE", f"WHOLE: {lark.whole(node)}", *lark.named])


def to_ebnf(node: Node) -> str:
    """A grammar in xgrammar's EBNF. Raises GrammarError where it is nested too deep or says both or minus."""
    ebnf = _Ebnf(node)
    return "\n".join([f"root ::= {ebnf.whole(node)}", *ebnf.named])


class _Writer(ABC):
    """What the notations have in common: sequences by spaces, options by bars, counts in braces."""

    library = ""
    name = ""
    never = ""

    def __init__(self, root: Node) -> None:
        self.uses: Counter[int] = Counter()
        self.names: dict[int, str] = {}
        self.named: list[str] = []
        stack = [root]
        while stack:
            node = stack.pop()
            self.uses[id(node)] += 1
            if self.uses[id(node)] == 1:
                stack += children(node)

    def whole(self, node: Node) -> str:
        try:
            return self.written(node)
        except RecursionError:
            raise GrammarError(f"the grammar is nested too deep for {self.library}") from None

    def written(self, node: Node) -> str:
        """An expression for a node: its name where it stands in several places."""
        if isinstance(node, Chars) or self.uses[id(node)] < 2:
            return self.expression(node)
        if id(node) not in self.names:
            self.names[id(node)] = name = f"{self.name}{len(self.names)}"
            self.named.append(self.definition(name, self.expression(node)))
        return self.names[id(node)]

    def expression(self, node: Node) -> str:
        match node:
            case Chars(ranges):
                usable = without(ranges, SURROGATES)
                return self.characters(usable) if usable else self.never
            case Seq(parts):
                return f"( {' '.join(self.run(parts))} )" if parts else '""'
            case Either(options):
                return f"( {' | '.join(self.written(option) for option in options)} )" if options else self.never
            case Repeat(part, least, most):
                return self.never if most is not None and most < least else self.repeat(part, least, most)
            case Both(left, right):
                return self.both(self.written(left), self.written(right))
            case Minus(left, right):
                return self.minus(self.written(left), self.written(right))
        raise TypeError(f"{type(node).__name__} is no part of a grammar")

    def run(self, parts: Sequence[Node]) -> list[str]:
        """Parts of a sequence; single characters in a row as one text."""
        found: list[str] = []
        codes: list[int] = []
        for part in parts:
            code = _single(part)
            if code is not None:
                codes.append(code)
                continue
            found += [self.text(codes)] * bool(codes) + [self.written(part)]
            codes = []
        return found + [self.text(codes)] * bool(codes)

    def repeat(self, part: Node, least: int, most: int | None) -> str:
        return f"( {self.written(part)} ){{{least},{'' if most is None else most}}}"

    @abstractmethod
    def definition(self, name: str, expression: str) -> str:
        """A named part."""

    @abstractmethod
    def characters(self, ranges: Ranges) -> str:
        """One character out of these."""

    @abstractmethod
    def text(self, codes: Sequence[int]) -> str:
        """These characters, one after the other."""

    def both(self, left: str, right: str) -> str:
        raise GrammarError(f"{self.library} knows no texts that two patterns both match")

    def minus(self, left: str, right: str) -> str:
        raise GrammarError(f"{self.library} knows no texts that one pattern matches and another does not")


class _Lark(_Writer):
    library, name, never = "llguidance", "PART", "( /a/ & /b/ )"

    def definition(self, name: str, expression: str) -> str:
        return f"{name}: {expression}"

    def characters(self, ranges: Ranges) -> str:
        inside = "".join(f"\\u{{{a:x}}}-\\u{{{b:x}}}" for a, b in ranges)
        return f"/[{inside}]/"

    def text(self, codes: Sequence[int]) -> str:
        inside = "".join(f"\\u{{{code:x}}}" for code in codes)
        return f"/{inside}/"

    def both(self, left: str, right: str) -> str:
        return f"( {left} & {right} )"

    def minus(self, left: str, right: str) -> str:
        return f"( {left} & ~( {right} ) )"


class _Ebnf(_Writer):
    library, name, never = "xgrammar", "part", r"[^\u0000-\U0010ffff]"
    chains = rules = 0

    def repeat(self, part: Node, least: int, most: int | None) -> str:
        """As rules that say one of the options and then what is left.

        Braces, stars, and options in a rule of their own cost xgrammar 20 ms a mask where options are longer than
        a character; so written they cost it some microseconds.
        """
        if isinstance(part, Chars) or max(least, most or 0) > CHAIN:
            return super().repeat(part, least, most)
        options = part.options if isinstance(part, Either) else (part,)
        said = [self.expression(option) if isinstance(option, Chars) else self.rule(option) for option in options]
        self.chains += 1
        chain = f"chain{self.chains}left"
        last = least if most is None else most
        for left in range(last + 1):
            ways = [f"{option} {chain}{max(left - 1, 0)}" for option in said] if left or most is None else []
            if left <= last - least:
                ways.insert(0, '""')
            self.named.append(self.definition(f"{chain}{left}", " | ".join(ways)))
        return f"{chain}{last}"

    def rule(self, node: Node) -> str:
        """The name of a rule for a node; a sequence's first character stays in sight."""
        if isinstance(node, Seq) and len(node.parts) > 1 and isinstance(node.parts[0], Chars):
            return f"{self.expression(node.parts[0])} {self.rule(Seq(node.parts[1:]))}"
        expression = self.written(node)
        self.rules += 1
        self.named.append(self.definition(f"rule{self.rules}", expression))
        return f"rule{self.rules}"

    def definition(self, name: str, expression: str) -> str:
        return f"{name} ::= {expression}"

    def characters(self, ranges: Ranges) -> str:
        inside = "".join(f"\\U{a:08x}-\\U{b:08x}" for a, b in ranges)
        return f"[{inside}]"

    def text(self, codes: Sequence[int]) -> str:
        inside = "".join(f"\\U{code:08x}" for code in codes)
        return f'"{inside}"'


def _single(node: Node) -> int | None:
    """The character that a node is, where it is just one."""
    if not isinstance(node, Chars) or len(node.ranges) != 1:
        return None
    ((first, last),) = node.ranges
    return first if first == last and not SURROGATES[0] <= first <= SURROGATES[1] else None
