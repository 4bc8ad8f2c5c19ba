"""The keys that the bytes of a terminal stand for."""

from __future__ import annotations

import codecs
import re
from typing import Final

_SEQUENCES: Final = {
    "[A": "up",
    "[B": "down",
    "[C": "right",
    "[D": "left",
    "OA": "up",
    "OB": "down",
    "OC": "right",
    "OD": "left",
    "[H": "home",
    "OH": "home",
    "[1~": "home",
    "[7~": "home",
    "[F": "end",
    "OF": "end",
    "[4~": "end",
    "[8~": "end",
    "[5~": "pageup",
    "[6~": "pagedown",
    "OM": "enter",
}
_CONTROLS: Final = {
    "\r": "enter",
    "\n": "enter",
    "\t": "tab",
    "\x7f": "backspace",
    "\x08": "backspace",
    "\x15": "clear",
    "\x04": "quit",
    "\x06": "pagedown",
    "\x02": "pageup",
    "\x0c": "redraw",
}
_ESCAPE: Final = re.compile(r"\x1b(?:\[[0-9;:<=>?]*[ -/]*[@-~]|O[@-~])")
_BEGUN: Final = re.compile(r"\x1b(?:\[[0-9;:<=>?]*[ -/]*|O)?")
_LONGEST: Final = 64
"""Characters of an escape sequence; a longer one is none."""


class KeyReader:
    """Splits bytes into names of keys. A printable character is its own name."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("ignore")
        self._rest = ""

    @property
    def pending(self) -> bool:
        """Whether the last bytes may be the beginning of a sequence, or the key Esc."""
        return bool(self._rest)

    def feed(self, data: bytes) -> list[str]:
        """Return the keys that are complete."""
        text, self._rest = self._rest + self._decoder.decode(data), ""
        keys: list[str] = []
        while text:
            if text[0] != "\x1b":
                keys += _plain(text[0])
                text = text[1:]
            elif sequence := _ESCAPE.match(text):
                # A sequence that has no name, such as a function key, does nothing.
                keys += filter(None, [_SEQUENCES.get(sequence[0][1:], "")])
                text = text[sequence.end() :]
            elif len(text) < _LONGEST and _BEGUN.fullmatch(text):
                self._rest = text
                break
            else:
                keys.append("esc")
                text = text[1:]
        return keys

    def flush(self) -> list[str]:
        """Return what pending bytes stand for if no more follow: the key Esc alone."""
        alone, self._rest = self._rest == "\x1b", ""
        return ["esc"] if alone else []


def _plain(character: str) -> list[str]:
    if character in _CONTROLS:
        return [_CONTROLS[character]]
    return [character] if character.isprintable() else []
