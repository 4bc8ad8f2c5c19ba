"""The tokens of PromQL."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_TOKEN: Final = re.compile(
    r"""\s*(?:
    (?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`[^`]*`)
    |(?P<number>(?:[0-9]|\.[0-9])(?:[eE][+-](?=[0-9])|[0-9a-zA-Z_.])*)
    |(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)
    |(?P<sign>==|!=|>=|<=|=~|!~|[-+*/%^<>=(){}\[\],])
    |(?P<end>\Z)
    )""",
    re.VERBOSE,
)


class NotWidenedError(ValueError):
    """The query may mix objects; the text says where."""


class PromqlToken(NamedTuple):
    """A token, and its place in the query."""

    kind: str
    text: str
    start: int
    end: int


def tokens(query: str) -> list[PromqlToken]:
    """Return the tokens of a query; the last one marks its end.

    Raises:
        NotWidenedError: a part of it is not understood.
    """
    tokens_read: list[PromqlToken] = []
    place = 0
    while not tokens_read or tokens_read[-1].kind != "end":
        match = _TOKEN.match(query, place)
        if match is None or match.lastgroup is None:
            rest = query[place:].strip()[:20]
            raise NotWidenedError(f"{rest!r} is not in the part of PromQL that is understood")
        kind = match.lastgroup
        tokens_read.append(PromqlToken(kind, match[kind], match.start(kind), match.end()))
        place = match.end()
    return tokens_read
