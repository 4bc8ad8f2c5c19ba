"""The click options that the user's tools share."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

import click
from click.core import ParameterSource

from adapter.figures import age
from adapter.tools.client.amount import Amount
from adapter.tools.client.impersonation import Impersonation
from apiservice.runtime.nearest import nearest

F = TypeVar("F", bound=Callable[..., Any])


Output = Literal["text", "json", "yaml"]


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """Which cluster to look at, and how to show the result."""

    kubeconfig: Path | None = None
    context: str | None = None
    namespace: str = ""
    """Empty: the context's namespace."""
    output: Output = "text"
    watch: bool = False
    interval: float = 5.0
    """Seconds between two looks with ``--watch``."""
    as_user: str = ""
    as_groups: tuple[str, ...] = ()

    @property
    def place(self) -> tuple[Path | None, str | None, str, Impersonation]:
        """The arguments of :func:`adapter.tools.client.access.cluster`.

        Raises:
            click.UsageError: there are groups without a user.
        """
        as_whom = identity(self.as_user, self.as_groups)
        return self.kubeconfig, self.context, self.namespace, as_whom


def identity(as_user: str, as_groups: Sequence[str]) -> Impersonation:
    """Return what ``--as`` and ``--as-group`` say.

    Raises:
        click.UsageError: there are groups without a user.
    """
    if as_groups and not as_user:
        raise click.UsageError("--as-group needs --as: the API server takes both or none")
    return Impersonation(as_user, tuple(as_groups))


def join_options(*options: Callable[[F], F]) -> Callable[[F], F]:
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

    name = "time"

    def __init__(self, least: float = 0.0, most: float = math.inf) -> None:
        self._least = least
        self._most = most

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the seconds."""
        duration = _DURATION.fullmatch(str(value))
        if duration is None:
            self.fail(f"{value!r}: write a number and s, m, h or d, such as 10m", param, ctx)
        seconds = float(duration[1]) * _SECONDS[duration[2]]
        if not self._least <= seconds <= self._most:
            bounds = f"{age(self._least)} to {age(self._most)}"
            self.fail(f"{value!r}: give a time from {bounds}", param, ctx)
        return seconds


DURATION: Final = Duration()
FILE: Final = click.Path(path_type=Path)
FILE.name = "file"
"""The word of a type stands for the value in a help text: FILE, TIME."""


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


class SharedOption(click.Option):
    """An option that may stand before the command too: ``-n chat explain hpa llm``."""

    def consume_value(
        self, ctx: click.Context, opts: Mapping[str, Any]
    ) -> tuple[Any, ParameterSource]:
        """Return the value, and where it is from; the nearest word of the command line wins."""
        value, source = super().consume_value(ctx, opts)
        if source in (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT):
            return value, source
        parent = ctx.parent
        while parent is not None:
            if _is_given(parent, str(self.name)):
                return parent.params[str(self.name)], ParameterSource.COMMANDLINE
            parent = parent.parent
        return value, source


def _is_given(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is ParameterSource.COMMANDLINE


class ToolGroup(click.Group):
    """A group of commands. It refuses a shared option that its command would not read."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the first word names."""
        name, command, rest = super().resolve_command(ctx, args)
        if command is None or isinstance(command, click.Group) or ctx.resilient_parsing:
            return name, command, rest
        names = {parameter.name for parameter in command.params}
        context: click.Context | None = ctx
        while context is not None:
            for option in context.command.params:
                if _is_given(context, str(option.name)) and option.name not in names:
                    ctx.fail(f"{option.opts[-1]} means nothing to `{name}`: remove it")
            context = context.parent
        return name, command, rest


Completed = Callable[[click.Context, click.Parameter, str], list[str]]


def complete(prefix: str, plural: str, *, namespaced: bool = False) -> Completed:
    """Return what completes the names of objects; see
    :func:`adapter.tools.client.completion.objects`."""

    def names(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
        from adapter.tools.client import completion  # noqa: PLC0415 - only a shell asks

        return completion.objects(ctx, incomplete, prefix, plural, namespaced=namespaced)

    return names


def _complete_contexts(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    from adapter.tools.client import completion  # noqa: PLC0415 - only a shell asks

    return completion.contexts(ctx, incomplete)


def ends(one: str = "", two: str = "it could not look") -> Callable[[F], F]:
    """Return a decorator that adds to a command's help what its exit codes mean.

    Args:
        one: what 1 says; empty for a command that never ends with 1.
        two: what 2 says beside a wrong word or option; empty if nothing else ends with 2.
    """
    fails = f", 1 if {one}" if one else ""
    unseen = f"if {two}, or for" if two else "for"
    text = f"Exit codes: 0{fails}, 2 {unseen} a wrong option or word."

    def apply(function: F) -> F:
        function.__doc__ = f"{inspect.cleandoc(function.__doc__ or '')}\n\n{text}"
        return function

    return apply


KUBECONFIG = click.option(
    "--kubeconfig",
    cls=SharedOption,
    type=FILE,
    help="Kubeconfig [KUBECONFIG or ~/.kube/config; in a pod, its service account].",
)
CONTEXT = click.option(
    "--context",
    cls=SharedOption,
    metavar="NAME",
    shell_complete=_complete_contexts,
    help="Context of the kubeconfig.",
)


def namespace_option(text: str) -> Callable[[F], F]:
    """Return the option ``--namespace``; the text says what it selects."""
    return click.option(
        "-n",
        "--namespace",
        cls=SharedOption,
        default="",
        metavar="NAME",
        shell_complete=complete("/api/v1", "namespaces"),
        help=text,
    )


NAMESPACE = namespace_option("Namespace [the context's].")
ALL_NAMESPACES = click.option("-A", "--all-namespaces", is_flag=True, help="All namespaces.")


class _IdentityName(click.ParamType[str]):
    """The name of a user or group, which becomes a header of each request."""

    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name."""
        text = str(value)
        if not text.isprintable() or not text.isascii() or text != text.strip():
            self.fail(f"{value!r}: write a name in visible ASCII characters", param, ctx)
        return text


IMPERSONATE = join_options(
    click.option(
        "--as",
        "as_user",
        cls=SharedOption,
        type=_IdentityName(),
        default="",
        metavar="USER",
        help="Ask as another user: jane, or system:serviceaccount:NAMESPACE:NAME.",
    ),
    click.option(
        "--as-group",
        "as_groups",
        cls=SharedOption,
        type=_IdentityName(),
        multiple=True,
        metavar="GROUP",
        help="Group of that user; may be repeated.",
    ),
)
ACCESS = join_options(KUBECONFIG, CONTEXT, IMPERSONATE)
"""The cluster, and as whom."""


def looks_everywhere(namespace: str, all_namespaces: bool, *, by_default: bool = False) -> bool:
    """Return whether all namespaces are looked at.

    Args:
        namespace: of ``-n``; empty without it.
        all_namespaces: whether ``-A`` is given.
        by_default: what is looked at without either.

    Raises:
        click.UsageError: both are given.
    """
    if namespace and all_namespaces:
        raise click.UsageError("-A and -n exclude each other: remove one of them")
    return all_namespaces or (by_default and not namespace)


FORMATS: Final = ("text", "json", "yaml")


def output_option(*more: str, text: str = "Output format.") -> Callable[[F], F]:
    """Return the option ``--output`` with the formats of every command, and more."""
    return click.option(
        "-o",
        "--output",
        type=NearestChoice([*FORMATS[:1], *more, *FORMATS[1:]]),
        default="text",
        show_default=True,
        help=text,
    )


OUTPUT = output_option()
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

client_options = join_options(ACCESS, NAMESPACE, OUTPUT, WATCH, INTERVAL)
"""All of them; the names are the fields of :class:`ClientOptions`."""
