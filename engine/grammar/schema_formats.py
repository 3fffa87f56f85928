"""The values of `format` that are read: each is a language that a string has to be in, never a mere remark.

A string format is written as pieces, one after the other: a pattern, and how many characters it may take.
`wide` matches everything that anybody may call this format. It is what is taken away where the format must not
hold, so that a reader with other habits (a small `t` in a date-time, say) finds nothing wrong either.
"""

from __future__ import annotations

from dataclasses import dataclass

_YEAR = "([0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)"
_LEAP_YEAR = "([0-9]{2}(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)"
_MONTH_AND_DAY = (
    "((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))"
)
_DATE = f"({_YEAR}-{_MONTH_AND_DAY}|{_LEAP_YEAR}-02-29)"
_CLOCK = "([01][0-9]|2[0-3]):[0-5][0-9]"
_TIME = rf"{_CLOCK}:[0-5][0-9](\.[0-9]{{1,9}})?(Z|[+-]{_CLOCK})"
_HEX = "[0-9A-Fa-f]"
_UUID = f"{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}"
_ATOM = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LABEL = "[A-Za-z0-9]+(-+[A-Za-z0-9]+)*"
_NAME = f"([A-Za-z0-9._~!$&'()*+,;=-]|%{_HEX}{{2}})"
_PATH = f"([A-Za-z0-9._~!$&'()*+,;=:@-]|%{_HEX}{{2}})"
_URI = (
    rf"[A-Za-z][A-Za-z0-9+.-]*:(//{_NAME}+(:[0-9]+)?(/{_PATH}*)*|/?{_PATH}+(/{_PATH}*)*)"
    rf"(\?({_PATH}|[/?])*)?(#({_PATH}|[/?])*)?"
)


@dataclass(frozen=True, slots=True)
class Format:
    """What one value of `format` means."""

    type: str
    pieces: tuple[tuple[str, int | None], ...] = ()
    """Of a string: patterns for the whole of each piece, and the most characters it may take."""
    wide: str = ""
    """Of a string: a pattern for the whole."""
    limits: tuple[int, int] | None = None
    """Of a whole number: smallest and largest."""


FORMATS = {
    "date": Format("string", ((_DATE, None),), "[0-9]{4}-[0-9]{2}-[0-9]{2}"),
    "time": Format("string", ((_TIME, None),), "[0-9]{2}:[0-9]{2}:.*"),
    "date-time": Format("string", ((f"{_DATE}T{_TIME}", None),), "[0-9]{4}-[0-9]{2}-[0-9]{2}[^0-9].*"),
    "uuid": Format("string", ((_UUID, None),), _UUID),
    "email": Format("string", ((rf"{_ATOM}(\.{_ATOM})*", 64), ("@", None), (rf"{_LABEL}(\.{_LABEL})*", 63)), ".*@.*"),
    "uri": Format("string", ((_URI, None),), ".*:.*"),
    "int32": Format("integer", limits=(-(2**31), 2**31 - 1)),
    "int64": Format("integer", limits=(-(2**63), 2**63 - 1)),
}
"""Dates are those of the calendar from year 1, with 29 February in leap years only; a time has its offset, and
no leap second. Nobody's `uri` is without a scheme."""
