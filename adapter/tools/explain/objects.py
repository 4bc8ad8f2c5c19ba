"""The explanation of an object of any kind: `explain`, `top` and `ui` ask here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Final

from adapter.tools.client.access import Api
from adapter.tools.client.command import ToolReport
from adapter.tools.client.errors import ClientError
from adapter.tools.explain.gpureport import explain_gpu
from adapter.tools.explain.hpafacts import gather
from adapter.tools.explain.hpajudge import judge
from adapter.tools.explain.nodereport import explain_node
from adapter.tools.explain.podreport import explain_pod
from adapter.tools.explain.scaledreport import explain_scaled, scaled_of_hpa
from adapter.tools.explain.workloadreport import explain_workload


async def _hpa(api: Api, name: str) -> ToolReport:
    try:
        return judge(await gather(api, name))
    except ClientError as error:
        # KEDA makes the HPA of a ScaledObject, and makes none of one that is not valid.
        if error.status != HTTPStatus.NOT_FOUND:
            raise
        if (report := await scaled_of_hpa(api, name)) is None:
            raise
        return report


EXPLAINERS: Final[Mapping[str, Callable[[Api, str], Awaitable[ToolReport]]]] = {
    "hpa": _hpa,
    "pod": explain_pod,
    "node": explain_node,
    "gpu": explain_gpu,
    "workload": explain_workload,
    "scaledobject": explain_scaled,
}
"""What explains an object of a kind, by its name and in the namespace of the cluster's access."""
