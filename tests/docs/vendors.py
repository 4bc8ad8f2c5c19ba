"""Command lines and chart values of others that cannot run here: known commands, flags, keys."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tests.docs.blocks import documents
from tests.docs.commands import Command
from tests.docs.pages import Block

_FILE = Path(__file__).with_name("vendors.yaml")


class Program(NamedTuple):
    """What is known of a program."""

    read: str
    """Where its flags were read."""
    commands: dict[str, frozenset[str]]
    """Subcommand -> flags; the empty one is the program itself."""


@functools.cache
def programs() -> dict[str, Program]:
    """Every program of the table."""
    rows = _table()["programs"]
    return {
        name: Program(
            row["read"], {path: frozenset(flags) for path, flags in row["commands"].items()}
        )
        for name, row in rows.items()
    }


def check(command: Command) -> Program:
    """The program, if the table has the command and each of its flags.

    Raises:
        ValueError: it has not; the text names what is unknown.
    """
    program = programs()[command.program]
    path = [path for path in program.commands if _begins(command.arguments, path.split())]
    if not path:
        raise ValueError(f"{command.place}: {command.program} has no such command: {command}")
    flags = {
        word.partition("=")[0]
        for word in command.arguments
        if word.startswith("-") and not word.lstrip("-").isdigit()
    }
    unknown = flags - program.commands[max(path, key=len)]
    if unknown:
        raise ValueError(
            f"{command.place}: {command.program} {path[-1]} is not known to have "
            f"{', '.join(sorted(unknown))}: look it up and add it to {_FILE.name}"
        )
    return program


def check_values(block: Block) -> str:
    """Where the keys of ``<!-- foreign: CHART values -->`` were read; empty for other files.

    Raises:
        ValueError: the chart is not in the table, or has no such key; the text names it.
    """
    name, is_values, _ = block.comment.removeprefix("foreign: ").partition(" values")
    if not is_values:
        return ""
    chart = _table()["values"].get(name)
    if chart is None:
        raise ValueError(f"{block.place}: {_FILE.name} knows no values of {name}")
    (content,) = documents(block)
    unknown = {key for key in _leaves(content) if key not in chart["keys"]}
    if unknown:
        raise ValueError(f"{block.place}: {name} is not known to have {', '.join(sorted(unknown))}")
    return str(chart["read"]).partition(",")[0]


def _leaves(content: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Dotted keys; free mappings, such as node selectors, end where the table's keys do."""
    for key, value in content.items():
        here = f"{path}{key}"
        if isinstance(value, Mapping) and here not in _ends():
            yield from _leaves(value, f"{here}.")
        else:
            yield here


@functools.cache
def _ends() -> frozenset[str]:
    return frozenset(key for chart in _table()["values"].values() for key in chart["keys"])


@functools.cache
def _table() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(_FILE.read_text(encoding="utf-8"))
    return found


def _begins(words: tuple[str, ...], path: list[str]) -> bool:
    return list(words[: len(path)]) == path
