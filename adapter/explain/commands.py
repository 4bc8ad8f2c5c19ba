"""The command line of ``explain``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import click

from adapter.client.options import ClientOptions, client_options

if TYPE_CHECKING:
    from adapter.client.access import Api
    from adapter.client.command import ToolReport


@click.group()
def explain() -> None:
    """Explain why a pod has its value or none, and why an HPA decides so.

    It reads the cluster with your rights, through the API server, and writes nothing.
    docs/explain.md describes the output, docs/rights.md the rights.

    Exit codes: 0, 1 if something blocks, 2 if it could not look.
    """


@explain.command()
@click.argument("name")
@client_options
def hpa(name: str, **given: Any) -> None:
    """Explain what the HPA NAME decides now: for each metric and pod the value, the rule that
    decides, the arithmetic, what blocks, and the fix.

    It replays the algorithm of the HPA controller on the current values, for metrics of every
    type.

    \b
    Examples:
      gpu-metrics-adapter explain hpa llm -n chat
      gpu-metrics-adapter explain hpa llm -n chat --watch
    """

    async def look(api: Api) -> ToolReport:
        # Imported late: --help needs none of it.
        from adapter.explain.hpafacts import gather  # noqa: PLC0415
        from adapter.explain.hpajudge import judge  # noqa: PLC0415

        return judge(await gather(api, name))

    _run(given, look)


@explain.command()
@click.argument("name")
@client_options
def pod(name: str, **given: Any) -> None:
    """Explain the value of each metric of the pod NAME: devices, sharing, evidence and age, and
    for a value that is missing the reason and the fix.
    """

    async def look(api: Api) -> ToolReport:
        # Imported late: --help needs none of it.
        from adapter.explain.podreport import explain_pod  # noqa: PLC0415

        return await explain_pod(api, name)

    _run(given, look)


@explain.command()
@click.argument("name")
@client_options
def node(name: str, **given: Any) -> None:
    """Explain the node NAME: its GPUs, the pods that have them, and why pods have no value."""

    async def look(api: Api) -> ToolReport:
        # Imported late: --help needs none of it.
        from adapter.explain.nodereport import explain_node  # noqa: PLC0415

        return await explain_node(api, name)

    _run(given, look)


def _run(given: dict[str, Any], look: Callable[[Api], Awaitable[ToolReport]]) -> None:
    # Imported late: --help needs none of it.
    from adapter.client.command import run  # noqa: PLC0415

    run(ClientOptions(**given), look)
