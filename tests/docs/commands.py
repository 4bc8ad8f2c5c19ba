"""The commands of ``sh`` and ``console`` blocks, as a shell would split them.

One command a line; ``\\`` and open quotes go on; ``#`` comments. ``|``, ``&&``, ``>`` and ``<``
divide, ``NAME=value`` sets a variable that later lines of the same page may use, and
``$(command)`` is checked as a command of its own. Words in capitals are placeholders.
Loops, functions, here-documents and background jobs are refused.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import NamedTuple

from tests.docs.pages import Block, Page

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_INNER = re.compile(r"\$\(([^()]*)\)")
_VARIABLE = re.compile(r"\$\{?([A-Za-z_]\w*)\}?")
_REFUSED = frozenset({"for", "while", "until", "if", "case", "function"})
_PUNCTUATION = frozenset("();<>|&")


class Command(NamedTuple):
    """One program with its arguments."""

    block: Block
    line: int
    words: tuple[str, ...]
    output: str = ""
    """What a ``console`` block shows below it."""

    @property
    def program(self) -> str:
        """The first word."""
        return self.words[0]

    @property
    def arguments(self) -> tuple[str, ...]:
        """The others."""
        return self.words[1:]

    @property
    def place(self) -> str:
        """Where it is."""
        return f"{self.block.page}:{self.line}"

    def __str__(self) -> str:
        return shlex.join(self.words)


def commands(page: Page) -> list[Command]:
    """Every command of a page, in order.

    Raises:
        ValueError: a line is not of the shell that is described above, or uses a variable
            that no line before it sets.
    """
    known: dict[str, str] = {}
    return [
        command
        for block in page.blocks
        if block.language in ("sh", "console")
        for line, text, output in _lines(block)
        for command in _split(block, line, text, output, known)
    ]


def _lines(block: Block) -> Iterator[tuple[int, str, str]]:
    """(line, command, output) of a block."""
    console = block.language == "console"
    rows = list(enumerate(block.text.splitlines(), block.line + 1))
    while rows:
        number, text = rows.pop(0)
        if console:
            if not text.startswith("$ "):
                raise ValueError(f"{block.page}:{number}: a console block begins with `$ `")
            text = text.removeprefix("$ ")
        while rows and not _whole(text):
            text = (
                text.removesuffix("\\") + ("\n" if not text.endswith("\\") else "") + rows.pop(0)[1]
            )
        output = []
        while console and rows and not rows[0][1].startswith("$ "):
            output.append(rows.pop(0)[1])
        if text.strip() and not text.lstrip().startswith("#"):
            yield number, text, "\n".join(output)


def _whole(text: str) -> bool:
    """Nothing of the command is on the next line."""
    if text.endswith("\\"):
        return False
    try:
        _words(text)
    except ValueError:
        return False
    return True


def _words(text: str) -> list[str]:
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    return list(lexer)


def _split(
    block: Block, line: int, text: str, output: str, known: dict[str, str]
) -> Iterator[Command]:
    place = f"{block.page}:{line}"
    for inner in _INNER.findall(text):
        yield from _split(block, line, inner, "", known)
    text = _INNER.sub("ANSWER", text)
    for name in _VARIABLE.findall(re.sub(r"'[^']*'", "", text)):
        if name not in known and name not in ("HOME", "PATH", "PWD"):
            raise ValueError(f"{place}: ${name} is set by no line before")
    words: list[str] = []
    rest = _words(text)
    while rest:
        word = rest.pop(0)
        if word in ("|", "&&"):
            yield from _command(block, line, words, "", known)
            words = []
        elif word in (">", ">>", "<"):
            rest.pop(0)
        elif _PUNCTUATION.issuperset(word) or word in _REFUSED:
            raise ValueError(f"{place}: {word} is more shell than a document should need")
        else:
            words.append(word)
    yield from _command(block, line, words, output, known)


def _command(
    block: Block, line: int, words: list[str], output: str, known: dict[str, str]
) -> Iterator[Command]:
    while words and (assignment := _ASSIGNMENT.fullmatch(words[0])):
        known[assignment[1]] = _filled(assignment[2], known)
        words = words[1:]
    if words:
        yield Command(block, line, tuple(_filled(word, known) for word in words), output)


def _filled(word: str, known: dict[str, str]) -> str:
    return _VARIABLE.sub(lambda match: known.get(match[1], match[0]), word)
