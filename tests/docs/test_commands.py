"""Every command of every document exists, with the flags that it is given."""

from __future__ import annotations

import itertools
import re

import click
import pytest

from adapter import __version__
from adapter.__main__ import main
from tests.docs import unverified
from tests.docs.commands import Command, commands
from tests.docs.pages import EXAMPLES, ROOT, Block, Page, pages

COMMANDS = [command for page in pages() for command in commands(page)]
END_TO_END = {"helm", "kubectl"}
"""Programs that `make e2e` brings: tests/e2e/test_docs.py asks them."""
PLAIN = {
    "cd",
    "git",
    "export",
    "echo",
    "grep",
    "sed",
    "base64",
    "sort",
    "less",
    "true",
    "mkdir",
    "date",
    "id",
}
"""What every shell has."""


def of(*programs: str) -> list[Command]:
    return [command for command in COMMANDS if command.program in programs]


def every(found: list[Command]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("command", found, ids=lambda command: command.place)


def test_every_program_is_one_that_is_checked() -> None:
    known = {"gpu-metrics-adapter", "make", *END_TO_END, *PLAIN, *unverified.OTHERS}
    assert {f"{one.place}: {one.program}" for one in COMMANDS if one.program not in known} == set()


@every(of("gpu-metrics-adapter"))
def test_our_own_program_takes_it(command: Command) -> None:
    """Parsed, choices and types included, and not run."""
    subcommand: click.Command | None = main
    name: str | None = "gpu-metrics-adapter"
    rest = list(command.arguments)
    while isinstance(subcommand, click.Group) and rest:
        with click.Context(subcommand, info_name=name) as context:
            # Options may stand before the command.
            _, rest, _ = subcommand.make_parser(context).parse_args(rest)
            if rest:
                name, subcommand, rest = subcommand.resolve_command(context, rest)
    assert subcommand is not None
    subcommand.make_context(name, rest)


@every(of("make"))
def test_make_has_the_target(command: Command) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z0-9-]+):", makefile, re.MULTILINE))
    assert {word for word in command.arguments if "=" not in word} <= targets


def test_make_has_every_target_that_prose_names() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = {code.split()[1] for page in pages() for code in page.codes if code.startswith("make ")}
    assert named <= set(re.findall(r"^([a-z0-9-]+):", makefile, re.MULTILINE))


@every([one for one in COMMANDS if one.program in ("kubectl", "helm")])
def test_files_that_a_command_names_are_here(command: Command) -> None:
    """Files of this repository; what a reader writes himself is a block of the page."""
    words = command.arguments
    named = {after for word, after in itertools.pairwise(words) if word in ("-f", "-k")}
    missing = {
        name for name in named if name != "-" and "://" not in name and not (ROOT / name).exists()
    }
    assert missing == set()


def test_what_nobody_runs_is_listed() -> None:
    listed = unverified.FILE.read_text(encoding="utf-8").splitlines()
    assert listed == list(unverified.rows()), (
        "the documents show something else that no test runs: look at it, and run "
        "`python -m tests.docs.unverified`"
    )


def test_the_image_of_the_examples_is_this_release() -> None:
    """What the documents build is what charts and examples pull."""
    used = set(
        re.findall(r"gpu-metrics-adapter:(\d[\w.]*)", "".join(page.text for page in pages()))
    )
    for path in EXAMPLES.glob("*.yaml"):
        used |= set(re.findall(r"gpu-metrics-adapter:([\w.]+)", path.read_text(encoding="utf-8")))
    assert used == {__version__}


SPLIT = {
    "one": ("a b", ["a b"]),
    "goes on": ("a \\\n  b", ["a b"]),
    "an open quote goes on": ("a 'b\nc'", ["a 'b\nc'"]),
    "comments": ("# no\na  # no\nb", ["a", "b"]),
    "a pipe, and then": ("a | b && c", ["a", "b", "c"]),
    "into a file": ("a > file", ["a"]),
    "a variable": ('X=1\na "$X" ${X}2', ["a 1 12"]),
    "a variable of this command": ("X=1 a", ["a"]),
    "an answer": ("X=$(a b)\nc $X", ["a b", "c ANSWER"]),
    "single quotes": ("a '$X'", ["a '$X'"]),
}


def page_of(text: str, language: str = "sh") -> Page:
    page = Page(ROOT / "README.md")
    page.__dict__["blocks"] = [Block("page", 1, language, f"{text}\n")]
    return page


@pytest.mark.parametrize(("text", "words"), SPLIT.values(), ids=SPLIT.keys())
def test_a_block_is_split_as_a_shell_does(text: str, words: list[str]) -> None:
    assert [str(command) for command in commands(page_of(text))] == words


@pytest.mark.parametrize(
    "text", ["a $X", "for x in y", "a <<EOF", "a; b", "a &", "f() a", "(a)", "if a"]
)
def test_more_shell_than_that_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^page:2: "):
        commands(page_of(text))


def test_a_console_shows_commands_and_what_they_say() -> None:
    first, second = commands(page_of("$ a \\\n    b\none\ntwo\n$ c", "console"))
    assert (str(first), first.line, first.output) == ("a b", 2, "one\ntwo")
    assert (str(second), second.line, second.output) == ("c", 6, "")
    with pytest.raises(ValueError, match="begins with"):
        commands(page_of("a", "console"))
