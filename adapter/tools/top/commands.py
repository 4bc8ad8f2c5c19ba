"""The command line of ``top``."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import click

from adapter.tools.client.options import (
    ACCESS,
    ALL_NAMESPACES,
    ClientOptions,
    NearestChoice,
    ends,
    interval_option,
    join_options,
    looks_everywhere,
    namespace_option,
    output_option,
)

if TYPE_CHECKING:
    from adapter.tools.client.access import Api
    from adapter.tools.top.facts import ReadScope
    from adapter.tools.top.plain import PlainOptions, PlainReport
    from adapter.tools.top.tables import ViewName

_VIEWS: Final = ("gpus", "pods", "workloads", "hpas", "nodes", "pools")
_NAMESPACED: Final = ("pods", "workloads", "hpas")
_OF_CLUSTER: Final = ("gpus", "nodes", "pools")


class _View(NearestChoice):
    """The name of a view, in the singular too, as kubectl takes it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the view."""
        several = f"{value}s".lower()
        return super().convert(several if several in self.choices else value, param, ctx)


@click.command()
@click.argument("view", type=_View(_VIEWS), required=False)
@join_options(
    ACCESS,
    namespace_option("Namespace of pods, workloads and HPAs [the context's; without a word, all]."),
    ALL_NAMESPACES,
)
@click.option("-l", "--selector", default="", metavar="LABELS", help="Label selector.")
@click.option(
    "--sort-by", default="", metavar="COLUMN", help="Column to sort by [the load, or the decision]."
)
@click.option("--reverse", is_flag=True, help="Reverse the order.")
@click.option("--once", is_flag=True, help="Print one table even on a terminal.")
@click.option("--no-headers", is_flag=True, help="Print the rows alone, once.")
@output_option("wide", text="Output format; all but text print once.")
@interval_option("Time between two looks of the live picture.")
@ends(two="a list could not be read")
def top(
    view: ViewName | None,
    all_namespaces: bool,
    selector: str,
    sort_by: str,
    reverse: bool,
    once: bool,
    no_headers: bool,
    interval: float,
    **given: Any,
) -> None:
    """Show the load of GPUs, pods, workloads, HPAs, nodes or pools, live on a terminal.

    Without a word it shows what needs attention, the busiest GPUs, and the nodes with idle GPUs.
    The key ? lists the keys. Without a terminal it prints one table. It reads the cluster with
    your rights and writes nothing. docs/top.md describes the views.

    \b
    Examples:
      gpu-metrics-adapter top
      gpu-metrics-adapter top pods -A --sort-by mem
      gpu-metrics-adapter top gpus --once --no-headers | head
    """
    from adapter.tools.top.facts import ReadScope  # noqa: PLC0415 - --help needs none of it
    from adapter.tools.top.plain import PlainOptions  # noqa: PLC0415 - the same

    if given["namespace"] and view in _OF_CLUSTER:
        raise click.UsageError(
            f"-n means nothing to `top {view}`, which shows the whole cluster: remove it; `top "
            f"pods -n {given['namespace']}` shows the pods of a namespace"
        )
    whole = looks_everywhere(given["namespace"], all_namespaces, by_default=view not in _NAMESPACED)
    if view is None and (sort_by or reverse or no_headers):
        raise click.UsageError(
            "the overview has several tables: name one of them, such as `top gpus --sort-by mem`"
        )
    output = given.pop("output")
    scope = ReadScope(given["namespace"], selector)
    plain = PlainOptions(
        view or "overview", sort_by, reverse, headers=not no_headers, wide=output == "wide"
    )
    options = ClientOptions(
        output="text" if output == "wide" else output, interval=interval, **given
    )
    if once or no_headers or output != "text" or not _terminal():
        _print(options, plain, scope, whole=whole)
    _live(options, plain, scope, whole=whole)


def _terminal() -> bool:
    streams = (sys.stdin, sys.stdout)
    return all(stream.isatty() for stream in streams) and os.environ.get("TERM", "dumb") != "dumb"


def _print(options: ClientOptions, plain: PlainOptions, scope: ReadScope, *, whole: bool) -> None:
    from adapter.tools.client.command import run  # noqa: PLC0415 - --help needs none of it
    from adapter.tools.top.plain import report  # noqa: PLC0415 - the same

    async def look(api: Api) -> PlainReport:
        return await report(api, _scope(api, scope, whole=whole), plain)

    run(options, look)


def _scope(api: Api, scope: ReadScope, *, whole: bool) -> ReadScope:
    """Return the scope with the context's namespace, unless all are read."""
    return scope if whole or scope.namespace else replace(scope, namespace=api.namespace)


def _live(options: ClientOptions, plain: PlainOptions, scope: ReadScope, *, whole: bool) -> None:
    try:
        from adapter.tools.top.start import start  # noqa: PLC0415 - termios may be missing
    except ModuleNotFoundError as error:
        if error.name != "termios":
            raise
        fix = "needs a terminal of Linux or macOS: add --once for one table"
        click.echo(f"gpu-metrics-adapter: the live picture {fix}", err=True)
        sys.exit(2)
    sys.exit(start(options, plain, lambda api: _scope(api, scope, whole=whole)))
