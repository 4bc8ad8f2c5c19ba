"""Text for terminals and pipes, and the loop of --watch."""

from __future__ import annotations

import asyncio
import io
import sys
from pathlib import Path
from typing import Any

import pytest

from adapter.config.process.output import Screen, screen_of, table
from adapter.tools.client import command
from adapter.tools.client.access import Api
from adapter.tools.client.errors import ClientError
from adapter.tools.client.options import ClientOptions
from tests.adapter.clientapi import api_server


class Terminal(io.TextIOWrapper):
    """A stream that calls itself a terminal."""

    def __init__(self, encoding: str) -> None:
        super().__init__(io.BytesIO(), encoding=encoding)

    def isatty(self) -> bool:
        """A terminal."""
        return True


def test_columns_are_aligned_without_trailing_spaces() -> None:
    assert table([("a", "long"), ("bcd", "")], ("X", "Y")) == ["X     Y", "a     long", "bcd"]
    assert table([]) == []
    assert table([("a", "b")], indent="  ") == ["  a   b"]


@pytest.mark.parametrize(("variable", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_colours_are_for_terminals_that_want_them(
    variable: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    assert screen_of(Terminal("utf-8")).colours
    assert not screen_of(io.StringIO()).colours
    monkeypatch.setenv(variable, value)
    assert not screen_of(Terminal("utf-8")).colours


def test_marks_and_dashes_have_ascii_forms() -> None:
    plain, rich = Screen(unicode=False), Screen(colours=True)
    assert [plain.mark("good"), plain.mark("warning"), plain.mark("bad")] == ["+", "!", "x"]
    assert plain.line("3 \N{MULTIPLICATION SIGN} 2 → 6 … ü") == "3 x 2 -> 6 ... ?"
    assert rich.line(rich.mark("good")) == "\x1b[32m√\x1b[0m"
    assert not screen_of(Terminal("ISO-8859-1")).unicode


HOSTILE = {
    "a colour": "a\x1b[31mb",
    "a colour and its end": "\x1b[31m\N{MULTIPLICATION SIGN}\x1b[0m",
    "a clear": "pod\x1b[2J\x1b]0;title\x07",
    "C1 controls": "a\x9b31mb\x85c",
    "lines": "a\r\nb\u2028c\x0bd",
    "directions": "a\u202egnp\u2066b\u061cc",
    "invisible": "a\u200bb\ufeffc\xadd\U000e0041e",
    "half a character": "a\ud800b",
    "private characters": "".join(map(chr, range(0xF0000, 0xF0010))),
}


@pytest.mark.parametrize("unicode", [True, False])
@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_name_is_escaped_before_the_line_is_coloured(name: str, unicode: bool) -> None:
    plain, screen = Screen(unicode=unicode), Screen(colours=True, unicode=unicode)
    clean, sign = plain.line(name), plain.mark("good")
    assert all(character.isprintable() or character >= "\U000f0000" for character in clean)
    styled = screen.line(f"{screen.style(f'bad {name}', 'red')} {screen.mark('good')} {name}")
    assert styled == f"\x1b[31mbad {clean}\x1b[0m \x1b[32m{sign}\x1b[0m {clean}"


def test_text_is_wrapped_with_an_indent() -> None:
    screen = Screen(width=40)
    assert screen.wrap("word " * 12, "  ") == [
        "  word word word word word word word",
        "    word word word word word",
    ]
    assert screen.wrap("", "  ") == [""]


class Report:
    """A look with a number."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.status = 1

    def lines(self, screen: Screen) -> list[str]:
        """One line."""
        return [f"look {self.number}"]

    def json(self) -> dict[str, Any]:
        """One key."""
        return {"look": self.number}


@pytest.mark.parametrize(
    ("output", "printed"),
    [
        ("text", ["look 1", "", "gpu-metrics-adapter: gone", "look 3", ""]),
        ("json", ['{"look": 1}', "gpu-metrics-adapter: gone", '{"look": 3}']),
    ],
)
def test_a_watch_looks_again_and_survives_a_failure(
    output: Any,
    printed: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    looks = 0

    async def look(_: Api) -> Report:
        nonlocal looks
        looks += 1
        if looks == 2:
            raise ClientError("gone")
        if looks == 4:
            raise KeyboardInterrupt
        return Report(looks)

    async def sleep(_: float) -> None:
        """No time passes."""

    monkeypatch.setattr(asyncio, "sleep", sleep)
    monkeypatch.setattr(sys, "stderr", sys.stdout)
    with api_server(tmp_path) as (_, file), pytest.raises(SystemExit) as ended:
        command.run(ClientOptions(kubeconfig=file, output=output, watch=True), look)
    assert ended.value.code == 130
    lines = [line for line in capsys.readouterr().out.splitlines() if not line.endswith(" UTC")]
    assert lines == printed


def test_the_status_of_a_report_is_the_exit_status(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def look(_: Api) -> Report:
        return Report(7)

    with api_server(tmp_path) as (_, file), pytest.raises(SystemExit) as ended:
        command.run(ClientOptions(kubeconfig=file, output="json"), look)
    assert ended.value.code == 1
    assert capsys.readouterr().out == '{\n  "look": 7\n}\n'
