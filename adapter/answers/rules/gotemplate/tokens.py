"""Split a template into texts and actions, and an action into tokens.

Trim markers and comments follow Go's text/template: ``<<-`` and ``->>`` remove white space of the
neighbouring text, and a comment is ``<</* … */>>``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from adapter.answers.rules.gotemplate.errors import TemplateError

LEFT: Final = "<<"
RIGHT: Final = ">>"
_SPACE: Final = " \t\r\n"
_TOKEN: Final = re.compile(
    r"""
    (?P<space>[ \t\r\n]+)
  | (?P<string>"(?:[^"\\\n]|\\.)*")
  | (?P<raw>`[^`]*`)
  | (?P<number>[+-]?[0-9][0-9_]*(?:\.[0-9]+)?(?![A-Za-z0-9_.]))
  | (?P<declare>:=)
  | (?P<field>\.[A-Za-z_]\w*)
  | (?P<dot>\.)
  | (?P<variable>\$\w*)
  | (?P<word>[A-Za-z_]\w*)
  | (?P<sign>[=|(),])
    """,
    re.VERBOSE,
)
_COMMENT: Final = {False: re.compile(r"/\*"), True: re.compile(r"[ \t\r\n]*/\*")}
"""The beginning of a comment after a left delimiter, without and with a trim marker."""
_COMMENT_END: Final = re.compile(r"([ \t\r\n]-)?>>")
_ESCAPE: Final = re.compile(
    r"\\(?:([abfnrtv\\'\"])|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3})|(.))",
    re.DOTALL,
)
_SIMPLE: Final = dict(zip("abfnrtv\\'\"", "\a\b\f\n\r\t\v\\'\"", strict=True))


class TemplateToken(NamedTuple):
    """A token of an action. ``kind`` is a group of :data:`_TOKEN`, or ``end``."""

    kind: str
    text: str


class Piece(NamedTuple):
    """A part of a template: a text, or the tokens of an action."""

    text: str
    tokens: tuple[TemplateToken, ...] | None
    """None for a text."""


def pieces(template: str) -> Iterator[Piece]:
    """Yield the texts and actions of a template.

    Raises:
        TemplateError: an action does not end, or contains a character that no token begins with.
    """
    place = 0
    trim = False
    while (begin := template.find(LEFT, place)) >= 0:
        text = template[place:begin]
        inside = begin + len(LEFT)
        trims = template.startswith("-", inside) and template[inside + 1 : inside + 2] in tuple(
            _SPACE
        )
        if trims:
            inside += 1
        text = text.lstrip(_SPACE) if trim else text
        yield Piece(text.rstrip(_SPACE) if trims else text, None)
        if _COMMENT[trims].match(template, inside):
            place, trim = _comment(template, inside)
            continue
        tokens, place, trim = _action(template, inside)
        yield Piece("", tokens)
    rest = template[place:]
    yield Piece(rest.lstrip(_SPACE) if trim else rest, None)


def _comment(template: str, inside: int) -> tuple[int, bool]:
    """Return the position after a comment, and whether it trims the text after it."""
    end = template.find("*/", inside)
    if end < 0:
        raise TemplateError("a comment does not end")
    closing = _COMMENT_END.match(template, end + 2)
    if closing is None:
        raise TemplateError("a comment must end before >>")
    return closing.end(), closing.group(1) is not None


def _action(template: str, place: int) -> tuple[tuple[TemplateToken, ...], int, bool]:
    """Return the tokens of an action, the position after it, and whether it trims."""
    tokens: list[TemplateToken] = []
    while True:
        if template.startswith(RIGHT, place):
            return tuple(tokens), place + len(RIGHT), False
        if template[place : place + 1] in tuple(_SPACE) and template.startswith(
            "-" + RIGHT, place + 1
        ):
            return tuple(tokens), place + 1 + 1 + len(RIGHT), True
        match = _TOKEN.match(template, place)
        if match is None:
            here = template[place : place + 1]
            raise TemplateError(f"unexpected {here!r} in an action" if here else "unclosed action")
        tokens.append(_token(match))
        place = match.end()


def _token(match: re.Match[str]) -> TemplateToken:
    kind, text = match.lastgroup or "", match.group()
    if kind == "string":
        return TemplateToken("string", _ESCAPE.sub(_unescape_character, text[1:-1]))
    if kind == "raw":
        return TemplateToken("string", text[1:-1])
    return TemplateToken(kind, text)


def _unescape_character(match: re.Match[str]) -> str:
    simple, *codes, octal, other = match.groups()
    if other is not None:
        raise TemplateError(f"unknown escape \\{other} in a string")
    if simple is not None:
        return _SIMPLE[simple]
    try:
        return chr(int(octal, 8) if octal else int(next(filter(None, codes)), 16))
    except (ValueError, OverflowError):
        raise TemplateError("a string contains an escape that is not a character") from None
