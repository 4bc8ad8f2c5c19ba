"""The syntax tree of a template."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Constant:
    """A string, number, boolean, or nil."""

    value: str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Dot:
    """``.``, and the fields after it."""

    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Variable:
    """``$name``, and the fields after it. ``$`` is the whole argument."""

    name: str
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Chain:
    """A pipeline in parentheses, and the fields after it."""

    pipeline: Pipe
    fields: tuple[str, ...] = ()


Operand: TypeAlias = Constant | Dot | Variable | Chain


@dataclass(frozen=True, slots=True)
class Call:
    """A function and its arguments."""

    function: str
    arguments: tuple[Operand | Call, ...]


@dataclass(frozen=True, slots=True)
class Pipe:
    """Commands, each of which gets the result of the one before it as its last argument."""

    commands: tuple[Operand | Call, ...]
    variables: tuple[str, ...] = ()
    """Variables that it sets; ``range`` may set two."""
    declares: bool = False
    """Whether the variables are new (``:=``)."""


@dataclass(frozen=True, slots=True)
class Text:
    """A text that is written as it is."""

    text: str


@dataclass(frozen=True, slots=True)
class Output:
    """An action that writes its value, unless it sets a variable."""

    pipeline: Pipe


@dataclass(frozen=True, slots=True)
class Branch:
    """``if``, ``with`` or ``range``."""

    keyword: str
    pipeline: Pipe
    body: tuple[Node, ...]
    otherwise: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Jump:
    """``break`` or ``continue``."""

    keyword: str


Node: TypeAlias = Text | Output | Branch | Jump
