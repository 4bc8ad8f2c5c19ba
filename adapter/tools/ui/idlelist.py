"""The part ``idle``: the pods on idle GPUs, read one by one, and what they cost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from adapter.answers.view.gpuclass import IDLE
from adapter.tools.client.access import Api
from adapter.tools.client.errors import VIEW, ClientError, odd_answers
from adapter.tools.client.tables import ObjectTable
from adapter.tools.idle.find import idle_devices
from adapter.tools.idle.prices import PriceList
from adapter.tools.idle.report import IdleReport
from adapter.tools.overview.columns import Columns

Json = dict[str, Any]

MOST_PODS: Final = 100
"""Pods that are read."""
_AT_ONCE: Final = 8


class IdleCandidates(NamedTuple):
    """Pods whose devices seem idle."""

    pods: tuple[tuple[str, str], ...] = ()
    """(namespace, name), at most 100, the longest idle first."""
    left: int = 0
    """Pods that are not read, because there are more."""
    held: int | None = None
    """Devices that pods hold; None if the list of devices cannot be read."""


def candidates(
    gpus: ObjectTable | None, pods: ObjectTable | None, idle_after: float = IDLE
) -> IdleCandidates:
    """Return the pods that are worth a look.

    Without the list of devices, these are the pods with a utilization of 0.

    Args:
        gpus: ``gpus``.
        pods: ``gpupods``.
        idle_after: seconds for which a device is idle.
    """
    if pods is None:
        return IdleCandidates()
    by = Columns(pods)
    idle, held = _idle_seconds(gpus) if gpus is not None else (None, None)
    idle_pods = []
    cells = zip(by.rows, by.texts("Device-IDs"), by.numbers("Util-Percent"), strict=True)
    for row, devices, util in cells:
        if idle is None:
            ago = idle_after if util == 0 else 0.0
        else:
            ago = max((idle.get(uuid, 0.0) for uuid in (devices or "").split(",")), default=0.0)
        if ago >= idle_after:
            idle_pods.append((-ago, row.namespace, row.name))
    idle_pods.sort()
    names = tuple((namespace, name) for _, namespace, name in idle_pods[:MOST_PODS])
    return IdleCandidates(names, max(0, len(idle_pods) - MOST_PODS), held)


def _idle_seconds(gpus: ObjectTable) -> tuple[Mapping[str, float], int]:
    """Return for how long devices are idle by UUID, and the number of those that pods hold."""
    by = Columns(gpus)
    rows = zip(by.texts("UUID"), by.numbers("Idle-Seconds"), strict=True)
    idle = {uuid: ago for uuid, ago in rows if uuid and ago is not None}
    return idle, sum(holder is not None for holder in by.cells("Pods"))


async def read_idle(
    api: Api,
    idle_candidates: IdleCandidates,
    prices: PriceList,
    team_label: str,
    idle_after: float = IDLE,
) -> IdleReport:
    """Read the pods and return the idle devices; raises ClientError."""
    slots = asyncio.Semaphore(_AT_ONCE)

    async def read(namespace: str, name: str) -> Json | None:
        path = f"{VIEW}/namespaces/{quote(namespace, safe='')}/gpupods/{quote(name, safe='')}"
        async with slots:
            try:
                return await api.get(path)
            except ClientError as error:
                if error.status == 404:  # it ended in the meantime
                    return None
                raise

    now = await api.clock() if idle_candidates.pods else time.time()
    pods = await asyncio.gather(*(read(*pod) for pod in idle_candidates.pods))
    with odd_answers():
        existing = [pod for pod in pods if pod is not None]
        devices = idle_devices(existing, prices, team_label, now, idle_after, whole=False)
    held = (
        devices.held
        if idle_candidates.held is None
        else max(idle_candidates.held, len(devices.idle))
    )
    return IdleReport(devices.idle, now, held, prices.currency, prices.note, minimum=idle_after)
