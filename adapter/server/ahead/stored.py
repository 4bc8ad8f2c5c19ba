"""Keep what was learned in a ConfigMap, so that no restart loses it.

Each replica of ``serve`` reads it at the start and before each write, and takes over what it knows
less of. So replicas that learn at the same time do not need a leader: what one of them overwrites,
the others have learned too. Only the account of ``serve`` may write the object.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final

import msgspec
import structlog

from adapter.nodepool.act.serverside import KubeObject, WriteError, Writer
from adapter.nodepool.learn.boots import KEPT
from adapter.nodepool.learn.historytext import decode, encode
from adapter.server.ahead.learner import Learner
from adapter.server.ahead.replicaload import ReplicaLoad
from adapter.server.ahead.starts import StartTimes
from adapter.server.ahead.workloadload import LoadKey, WorkloadLoad
from apiservice.provider import GroupResource

log = structlog.get_logger(__name__)

NAME: Final = "gpu-metrics-adapter-ahead"
_KEY: Final = "loads"
_BYTES: Final = 900_000
"""Bytes of the ConfigMap's 1 MiB. Beyond that, what was asked about least recently is left out."""
_RETRY: Final = 10.0
"""Seconds between two attempts to read it at the start."""


class _StoredLoad(msgspec.Struct):
    namespace: str
    group: str
    resource: str
    name: str
    metric: str
    history: str
    replica: ReplicaLoad
    starts: list[float]
    asked: float


class StoredLoads:
    """Reads and writes what a learner knows.

    Args:
        namespace: of the ConfigMap.
        interval: seconds between two writes.
    """

    def __init__(
        self,
        learner: Learner,
        writer: Writer,
        namespace: str,
        interval: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._learner = learner
        self._writer = writer
        self._namespace = namespace
        self._interval = interval
        self._clock = clock
        self.problem = ""
        """Why it is not read or stored; empty if it is."""

    async def run(self) -> None:
        """Read until it succeeds, then write at the interval, until cancelled."""
        known = False
        while True:
            if known:
                await self.write()
            else:
                known = await self.read()
            await asyncio.sleep(self._interval if known else _RETRY)

    async def read(self) -> bool:
        """Take over what is stored. Return whether it could be read; a failure is logged."""
        try:
            found = await self._writer.read(_configmap(self._namespace, {}))
        except WriteError as error:
            self._fail("what was learned of loads cannot be read", error)
            return False
        text = ((found or {}).get("data") or {}).get(_KEY, "")
        self._learner.restore(dict(_restored(text.splitlines())))
        self.problem = ""
        return True

    async def write(self) -> None:
        """Store what is known. A failure is logged, and the next write tries again."""
        if not self._learner.loads or not await self.read():
            return
        data = {_KEY: dump(self._learner.loads)}
        try:
            await self._writer.apply(_configmap(self._namespace, data))
        except WriteError as error:
            self._fail("what was learned of loads is not stored", error)

    def _fail(self, what: str, error: WriteError) -> None:
        if str(error) != self.problem:
            log.warning(what, error=str(error))
        self.problem = str(error)


def stored_loads(learner: Learner, client: Any, interval: float) -> StoredLoads:
    """Return the store of a learner in the cluster of a client, in the namespace of the pod."""
    from apiservice.kube.client import call  # noqa: PLC0415 - 35 MB

    return StoredLoads(
        learner, Writer(partial(call, client), lambda: True), client.namespace, interval
    )


def dump(loads: Mapping[LoadKey, WorkloadLoad]) -> str:
    """Return loads as lines of JSON, with those asked about last first, in bounded size."""
    rows: list[bytes] = []
    size = 0
    for key, load in sorted(loads.items(), key=lambda item: -item[1].asked):
        row = _StoredLoad(
            key.namespace,
            key.resource.group,
            key.resource.resource,
            key.name,
            key.metric,
            encode(load.history),
            load.replica,
            [*load.starts.watched],
            load.asked,
        )
        text = msgspec.json.encode(row)
        size += len(text) + 1
        if size > _BYTES:
            break
        rows.append(text)
    return b"\n".join(rows).decode()


def _restored(lines: Iterable[str]) -> Iterable[tuple[LoadKey, WorkloadLoad]]:
    """Yield what the lines hold. Log and leave out lines that cannot be read."""
    for line in lines:
        try:
            row = msgspec.json.decode(line, type=_StoredLoad)
        except msgspec.MsgspecError as error:
            log.warning("stored load ignored", error=str(error))
            continue
        found = decode(row.history)
        if found.problem is not None:
            log.warning("stored load ignored", workload=row.name, error=found.problem)
            continue
        resource = GroupResource(row.resource, row.group)
        key = LoadKey(row.namespace, resource, row.name, row.metric)
        starts = StartTimes(watched=tuple(row.starts[-KEPT:]))
        yield (
            key,
            WorkloadLoad(row.asked, history=found.history, replica=row.replica, starts=starts),
        )


def _configmap(namespace: str, data: dict[str, str]) -> KubeObject:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": NAME,
            "namespace": namespace,
            "labels": {"app.kubernetes.io/managed-by": "gpu-metrics-adapter"},
        },
        "data": data,
    }
