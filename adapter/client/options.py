"""The click options that the user's tools share."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

import click

from adapter.client.amount import Amount
from adapter.figures import age
from apiservice.runtime.nearest import nearest

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """Which cluster to look at, and how to show the result."""

    kubeconfig: Path | None = None
    context: str | None = None
    namespace: str = ""
    """Empty: the context's namespace."""
    output: Literal["text", "json"] = "text"
    watch: bool = False
    interval: float = 5.0
    """Seconds between two looks with ``--watch``."""


def joined(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Return one decorator for several options; they appear in this order in the help."""

    def apply(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return apply


_DURATION: Final = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)([smhd])", re.ASCII)
_SECONDS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


class Duration(click.ParamType[float]):
    """``90s``, ``10m``, ``1h``, ``2d``, as seconds."""

    name = "duration"

    def __init__(self, least: float = 0.0, most: float = math.inf) -> None:
        self._least = least
        self._most = most

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the seconds."""
        found = _DURATION.fullmatch(str(value))
        if found is None:
            self.fail(f"{value!r}: write a number and s, m, h or d, such as 10m", param, ctx)
        seconds = float(found[1]) * _SECONDS[found[2]]
        if not self._least <= seconds <= self._most:
            bounds = f"{age(self._least)} to {age(self._most)}"
            self.fail(f"{value!r}: give a time from {bounds}", param, ctx)
        return seconds


DURATION: Final = Duration()


class NearestChoice(click.Choice[str]):
    """A choice whose error names the nearest value."""

    def near(self, value: str) -> str:
        """Return the nearest value; empty if none resembles it."""
        close = nearest(value, map(str, self.choices), 1)
        return close[0] if close else ""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the value."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            near = self.near(str(value))
            guess = f"; did you mean {near}?" if near else ""
            self.fail(f"{error.message.rstrip('.')}{guess}", param, ctx)


KUBECONFIG = click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Kubeconfig [KUBECONFIG or ~/.kube/config; in a pod, its service account].",
)
CONTEXT = click.option("--context", metavar="NAME", help="Context of the kubeconfig.")
NAMESPACE = click.option(
    "-n", "--namespace", default="", metavar="NAME", help="Namespace [the context's]."
)
OUTPUT = click.option(
    "-o",
    "--output",
    type=NearestChoice(["text", "json"]),
    default="text",
    show_default=True,
    help="Output format.",
)
WATCH = click.option("-w", "--watch", is_flag=True, help="Look again until interrupted.")


def interval_option(text: str) -> Callable[[F], F]:
    """Return the option ``--interval``; this text says between which looks."""
    return click.option(
        "--interval",
        type=Amount(1, 3600),
        default=5.0,
        show_default=True,
        metavar="SECONDS",
        help=text,
    )


INTERVAL = interval_option("Time between two looks with --watch.")

client_options = joined(KUBECONFIG, CONTEXT, NAMESPACE, OUTPUT, WATCH, INTERVAL)
"""All of them; the names are the fields of :class:`ClientOptions`."""
