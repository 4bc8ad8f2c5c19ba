"""The explanation of a row: the text of ``explain``."""

from __future__ import annotations

from adapter.client.access import Api
from adapter.client.command import ToolReport
from adapter.client.errors import ClientError, odd_answers
from adapter.client.output import Screen
from adapter.explain.hpafacts import gather
from adapter.explain.hpajudge import judge
from adapter.explain.nodereport import explain_node
from adapter.explain.podreport import explain_pod
from adapter.top.rows import RowKey

UNEXPLAINED = "No HPA scales it. The key p shows pods, and / finds those of this workload."


async def explanation(api: Api, about: RowKey, screen: Screen) -> list[str]:
    """Return the lines of ``explain``, or of the failure."""
    try:
        with odd_answers():
            report = await _report(api, about)
            return [_command(about), "", *report.lines(screen)]
    except ClientError as error:
        return [_command(about), "", str(error)]


async def _report(api: Api, about: RowKey) -> ToolReport:
    if about.kind == "node":
        return await explain_node(api, about.name)
    here = api.within(about.namespace)
    if about.kind == "hpa":
        return judge(await gather(here, about.name))
    return await explain_pod(here, about.name)


def _command(about: RowKey) -> str:
    """Return the command that prints the same."""
    within = f" -n {about.namespace}" if about.namespace else ""
    return f"$ gpu-metrics-adapter explain {about.kind} {about.name}{within}"
