"""Text for terminals and pipes: tables, marks, colours and wrapped lines."""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import sys
import textwrap
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final, Literal, TextIO

import click

from adapter.figures import LEVELS

Colour = Literal["green", "yellow", "red", "bold", "dim"]
_CODES: Final = {"green": "32", "yellow": "33", "red": "31", "bold": "1", "dim": "2"}
Mark = Literal["good", "warning", "bad"]
_MARKS: Final[dict[Mark, tuple[str, str, Colour]]] = {
    "good": ("√", "+", "green"),
    "warning": ("‼", "!", "yellow"),
    "bad": ("\N{MULTIPLICATION SIGN}", "x", "red"),
}
_ASCII: Final = str.maketrans(
    {
        "\N{EN DASH}": "-",
        "\N{MULTIPLICATION SIGN}": "x",
        "…": "...",
        "→": "->",
        "≤": "<=",
        "≥": ">=",
        **dict(zip(LEVELS, "_.,-=+*#", strict=True)),
    }
)
_COMMAND: Final = re.compile(r"`[^`]*`")
_GLUE: Final = "\ue000"
"""Stands for a space at which a line must not be broken."""
_SECRET: Final = "".join(chr(0xF0000 + secrets.randbelow(0xFFFD)) for _ in range(3))
"""Begins what :meth:`Screen.style` writes. It is drawn for each process, so that no name of an
object can contain it."""
_STYLE: Final = re.compile(f"{_SECRET}(.)")
_NO_SPACE: Final = (errno.ENOSPC, errno.EDQUOT)
_STYLES: Final = {"0": "0", **{colour[0].upper(): code for colour, code in _CODES.items()}}
"""The letter after the secret -> the terminal's code."""
_CONTROL: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufeff\ufff0-\uffff\U000e0000-\U000e0fff]+"
)
"""Controls, marks of direction, invisible characters, and halves of characters."""


@dataclass(frozen=True, slots=True)
class Screen:
    """What the output's reader can show. ``Screen()`` is plain text."""

    width: int = 100
    colours: bool = False
    unicode: bool = True

    def mark(self, mark: Mark) -> str:
        """Return the sign of a result."""
        sign, plain, colour = _MARKS[mark]
        return self.style(sign if self.unicode else plain, colour)

    def style(self, text: str, colour: Colour) -> str:
        """Return the text in a colour, if the reader shows colours."""
        if not self.colours or not text:
            return text
        return f"{_SECRET}{colour[0].upper()}{text}{_SECRET}0"

    def line(self, text: str) -> str:
        """Return a line in the characters and colours that the reader can show.

        Names and messages come from objects of others: what would move the terminal's cursor,
        colour the text or turn its direction is left out. Only :meth:`style` writes colours.
        """
        parts = _STYLE.split(text)
        parts[::2] = [self._make_printable(part) for part in parts[::2]]
        parts[1::2] = [f"\x1b[{_STYLES.get(letter, '0')}m" for letter in parts[1::2]]
        return "".join(parts)

    def _make_printable(self, text: str) -> str:
        text = _CONTROL.sub(" ", text)
        return text if self.unicode else text.translate(_ASCII).encode("ascii", "replace").decode()

    def wrap(self, text: str, indent: str = "", hanging: str | None = None) -> list[str]:
        """Break a text into lines. A command in backquotes stays on one line to be pasted."""
        whole = _COMMAND.sub(lambda match: match[0].replace(" ", _GLUE), text)
        lines = textwrap.wrap(
            whole,
            max(self.width, 40),
            initial_indent=indent,
            subsequent_indent=indent + "  " if hanging is None else hanging,
            break_long_words=False,
            break_on_hyphens=False,
        ) or [indent.rstrip()]
        return [line.replace(_GLUE, " ") for line in lines]


def screen_of(stream: TextIO | None = None) -> Screen:
    """Return what a stream's reader shows: colours on a terminal only, and without NO_COLOR."""
    stream = stream or sys.stdout
    terminal = stream.isatty()
    encoding = (getattr(stream, "encoding", None) or "ascii").lower()
    return Screen(
        width=shutil.get_terminal_size((100, 24)).columns if terminal else 100,
        colours=terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb",
        unicode=encoding.replace("-", "").startswith("utf"),
    )


def say(text: str, *, err: bool = False) -> None:
    """Print one line in the characters that the reader of a stream can show."""
    click.echo(screen_of(sys.stderr if err else sys.stdout).line(text), err=err)


@contextmanager
def whole_output() -> Iterator[None]:
    """Run a command, and write what is left of its output. If standard output cannot be written,
    say so in one line and exit with 2."""
    try:
        try:
            yield
        finally:
            _flush()
    except OSError as error:
        if not _of_output(error):
            raise
        _discard()
        if error.errno == errno.EPIPE:  # nobody reads the rest, as after `| head`
            sys.exit(1)
        why = error.strerror or str(error)
        hint = "free space on the disk of the file that it is redirected to, or name another file"
        fix = f"; {hint}" if error.errno in _NO_SPACE else ""
        with suppress(OSError):  # standard error may be the same file
            say(f"gpu-metrics-adapter: standard output cannot be written: {why}{fix}", err=True)
        sys.exit(2)


def _flush() -> None:
    if sys.stdout is not None:
        sys.stdout.flush()


def _of_output(error: OSError) -> bool:
    """Return whether standard output failed: what writes it, or its buffer, which still has the
    text."""
    codes = {frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)}
    if codes & {_flush.__code__, click.echo.__code__}:
        return True
    try:
        _flush()
    except OSError:
        return True
    return False


def _discard() -> None:
    """Keep the interpreter from writing the rest again when it ends."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def table(rows: Sequence[Sequence[str]], header: Sequence[str] = (), indent: str = "") -> list[str]:
    """Align cells in columns, three spaces apart, without trailing spaces."""
    lines = [list(header), *map(list, rows)] if header else [list(row) for row in rows]
    count = max((len(line) for line in lines), default=0)
    widths = [
        max((len(line[i]) for line in lines if i < len(line)), default=0) for i in range(count)
    ]
    return [
        (indent + "   ".join(cell.ljust(widths[i]) for i, cell in enumerate(line))).rstrip()
        for line in lines
    ]
