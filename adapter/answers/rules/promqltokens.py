"""The tokens of PromQL."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_TEXT: Final = r"""(?:
    (?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`[^`]*`)
    |(?P<number>(?:[0-9]|\.[0-9])(?:[eE][+-](?=[0-9])|[0-9a-zA-Z_.])*)
    |(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)
    |(?P<sign>==|!=|>=|<=|=~|!~|[-+*/%^<>=(){}\[\],])
    |(?P<end>\Z)
    )"""
_TOKEN: Final = re.compile(r"\s*" + _TEXT, re.VERBOSE)
_AFTER_COMMENT: Final = re.compile(r"(?:\s|\#[^\n]*+)*+" + _TEXT, re.VERBOSE)


class NotWidenedError(ValueError):
    """The query may mix objects; the text says where."""


class PromqlToken(NamedTuple):
    """A token, and its place in the query."""

    kind: str
    text: str
    start: int
    end: int


def tokens(query: str, *, comments: bool = False) -> list[PromqlToken]:
    """Return the tokens of a query; the last one marks its end.

    Args:
        query: PromQL.
        comments: pass over comments; without it, they are not understood.

    Raises:
        NotWidenedError: a part of it is not understood.
    """
    tokens_read: list[PromqlToken] = []
    place, token = 0, _AFTER_COMMENT if comments else _TOKEN
    while not tokens_read or tokens_read[-1].kind != "end":
        match = token.match(query, place)
        if match is None or match.lastgroup is None:
            rest = query[place:].strip()[:20]
            raise NotWidenedError(f"{rest!r} is not in the part of PromQL that is understood")
        kind = match.lastgroup
        tokens_read.append(PromqlToken(kind, match[kind], match.start(kind), match.end()))
        place = match.end()
    return tokens_read


class TokenReader:
    """What the readers of queries have in common: a query, and a place among its tokens."""

    def __init__(self, query: str, *, comments: bool = False) -> None:
        self._query = query
        self._tokens = tokens(query, comments=comments)
        self._place = 0

    @property
    def _next(self) -> PromqlToken:
        return self._tokens[self._place]

    def _accept(self, *texts: str) -> bool:
        """Take the next token if it is one of these signs or words."""
        if self._next.kind in ("sign", "name") and self._next.text.lower() in texts:
            self._place += 1
            return True
        return False
