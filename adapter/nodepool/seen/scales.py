"""The scale subresources of HPAs' targets besides Deployments, StatefulSets and ReplicaSets.

Rollouts, LeaderWorkerSets and custom resources are sized by it, as the HPA controller reads it. It
has replicas and selector, and no pod template: the shape is that of the pods.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from operator import attrgetter
from typing import Final
from urllib.parse import quote

import msgspec
import structlog

from adapter.nodepool.model.apicall import ApiCall, get
from adapter.nodepool.seen.autoscalers import HpaInfo
from adapter.nodepool.seen.workloads import ScalableWorkload
from adapter.pipeline.cluster.workload import Workload
from apiservice.kube.client import ClusterAnswerError
from apiservice.runtime.inturn import in_turn

log = structlog.get_logger(__name__)
_AT_ONCE: Final = 8
"""Concurrent requests."""
_MOST: Final = 500
"""Scales that a round reads, of the namespaces in turn: no namespace takes the reads of others."""


class _Spec(msgspec.Struct):
    replicas: int = 0


class _Status(msgspec.Struct):
    replicas: int = 0
    selector: str = ""


class _Scale(msgspec.Struct):
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


class Scales:
    """Reads scale subresources, in bounded time."""

    def __init__(self, call: ApiCall) -> None:
        self._call = call
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._said: dict[tuple[str, Workload], str] = {}
        """Target -> why its scale could not be read, so that each reason is logged once."""

    async def read(self, of: Iterable[HpaInfo], seconds: float) -> list[ScalableWorkload]:
        """Return the scales of HPAs' targets, without those that cannot be read within ``seconds``.

        A target without a selector is left out too: the HPA controller does not scale it.
        """
        by_target = {(hpa.namespace, hpa.target): hpa for hpa in of}
        turns = in_turn(by_target.values(), attrgetter("namespace"))
        if len(turns) > _MOST:
            log.warning("not every scale is read", scales=len(turns), read=_MOST)
        self._said = {key: why for key, why in self._said.items() if key in by_target}
        tasks = [asyncio.create_task(self._read_scale(hpa)) for hpa in turns[:_MOST]]
        if not tasks:
            return []
        try:
            done, late = await asyncio.wait(tasks, timeout=seconds)
        finally:
            for task in tasks:
                task.cancel()
        if late:
            log.warning("scales were not read in time", scales=len(late), seconds=seconds)
        return [row for task in done if (row := task.result()) is not None]

    async def _read_scale(self, hpa: HpaInfo) -> ScalableWorkload | None:
        root = "/apis" if "/" in hpa.version else "/api"
        place = f"{root}/{hpa.version}/namespaces/{quote(hpa.namespace)}"
        path = f"{place}/{hpa.target.resource.resource}/{quote(hpa.target.name)}/scale"
        try:
            async with self._slots:
                scale = await get(self._call, path, _Scale)
        except ClusterAnswerError as error:
            self._leave_out(hpa, str(error))
            return None
        if not scale.status.selector:
            self._leave_out(hpa, f"GET {path}: the scale has no selector")
            return None
        self._said.pop((hpa.namespace, hpa.target), None)
        return ScalableWorkload(
            namespace=hpa.namespace,
            workload=hpa.target,
            replicas=scale.spec.replicas,
            status_replicas=scale.status.replicas,
            selector=scale.status.selector,
            shape=None,
            priority_class="",
        )

    def _leave_out(self, hpa: HpaInfo, why: str) -> None:
        key = (hpa.namespace, hpa.target)
        if self._said.get(key) != why:
            log.warning("an HPA's target gets no headroom", hpa=f"{key[0]}/{hpa.name}", reason=why)
        self._said[key] = why
