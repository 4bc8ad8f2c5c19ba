"""Regular expressions with RE2's syntax, as Go has them, and the expansion of ``$1``.

Python's ``re`` accepts another syntax and can take exponential time. RE2 is the library whose
syntax and meaning Go's ``regexp`` follows, and it takes linear time.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final

LONGEST: Final = 4096
"""Characters of an expression."""
_REFERENCE: Final = re.compile(r"\$(?:(\$)|\{(\w+)\}|(\w+))?")


class PatternError(ValueError):
    """The expression cannot be used; the text says why."""


@cache
def _library() -> tuple[Any, Any]:
    """Return RE2 and the options of every expression."""
    import re2  # noqa: PLC0415 - processes without a rules file do not need it

    options = re2.Options()
    options.log_errors = False
    return re2, options


def references(template: str) -> list[str]:
    """Return the names of the captures to which a template of :meth:`Captures.expand` refers."""
    groups = (match.groups() for match in _REFERENCE.finditer(template))
    return [braced or plain for _, braced, plain in groups if braced or plain]


class Pattern:
    """A compiled expression.

    Raises:
        PatternError: at construction, if it is not an expression of RE2.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        if len(text) > LONGEST:
            raise PatternError(f"has {len(text)} characters; the most are {LONGEST}")
        library, options = _library()
        try:
            self._compiled = library.compile(text, options)
        except library.error as error:
            message = error.args[0] if error.args else error
            raise PatternError(
                message.decode("utf-8", "replace") if isinstance(message, bytes) else str(message)
            ) from None
        self.groups: int = self._compiled.groups
        """Number of capture groups."""
        self._names: dict[str, int] = dict(self._compiled.groupindex)

    def has_group(self, name: str) -> bool:
        """Return whether :meth:`Captures.group` knows a name."""
        if name.isascii() and name.isdigit():
            return (name == "0" or name[0] != "0") and len(name) < 9 and int(name) <= self.groups
        return name in self._names

    def matches(self, text: str) -> bool:
        """Return whether the expression matches anywhere in the text."""
        return self._compiled.search(text) is not None

    def captures(self, text: str) -> Captures | None:
        """Return the captures of the first match; None without a match."""
        match = self._compiled.search(text)
        if match is None:
            return None
        groups = (match.group(0), *(match.group(i + 1) or "" for i in range(self.groups)))
        return Captures(groups, self._names)


class Captures:
    """The captures of a match; the first is the whole match."""

    def __init__(self, groups: tuple[str, ...], names: dict[str, int]) -> None:
        self._groups = groups
        self._names = names

    def group(self, name: str) -> str:
        """Return a capture by its number or name; empty if there is no such capture."""
        if name.isascii() and name.isdigit() and (name == "0" or name[0] != "0"):
            number = int(name) if len(name) < 9 else len(self._groups)
            return self._groups[number] if number < len(self._groups) else ""
        return self._groups[self._names[name]] if name in self._names else ""

    def expand(self, template: str) -> str:
        """Return the template with ``$1``, ``${1}`` and ``$name`` replaced.

        As in Go, ``$1x`` names a group ``1x``, and ``$$`` is a dollar sign.
        """

        def expand_reference(match: re.Match[str]) -> str:
            dollar, braced, plain = match.groups()
            if dollar:
                return "$"
            name = braced or plain
            return self.group(name) if name else match.group()

        return _REFERENCE.sub(expand_reference, template)
