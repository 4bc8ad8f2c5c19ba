"""The explanation of a row: the text of ``explain``."""

from __future__ import annotations

from adapter.config.process.output import Screen
from adapter.tools.client.access import Api
from adapter.tools.client.errors import ClientError, odd_answers
from adapter.tools.explain.objects import EXPLAINERS
from adapter.tools.top.rows import RowKey


async def explanation(api: Api, about: RowKey, screen: Screen) -> list[str]:
    """Return the lines of ``explain``, or of the failure."""
    try:
        with odd_answers():
            here = api.within(about.namespace) if about.namespace else api
            report = await EXPLAINERS[about.kind](here, about.name)
            return [_command(about), "", *report.lines(screen)]
    except ClientError as error:
        return [_command(about), "", str(error)]


def _command(about: RowKey) -> str:
    """Return the command that prints the same."""
    within = f" -n {about.namespace}" if about.namespace else ""
    return f"$ gpu-metrics-adapter explain {about.kind} {about.name}{within}"
