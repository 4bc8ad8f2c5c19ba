"""Keep what was learned in a ConfigMap, over restarts and for all replicas.

An HPA asks one replica, and after a restart another one. Without this, that one would have learned
nothing, and would scale a workload that has not changed.

Each replica reads the ConfigMap at the interval, takes what others know better, and writes what it
knows better. ``metadata.resourceVersion`` makes the API server refuse an update that another one
has overtaken: the next round tries again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus
from typing import Any, Final, NamedTuple

import msgspec
import structlog

from adapter.config.settings.memory import MemorySettings
from apiservice.runtime.jsontext import UNREADABLE

log = structlog.get_logger(__name__)

_MERGE: Final = "application/merge-patch+json"
_RETRY: Final = 10.0
"""Seconds between two attempts to read it at the start."""


class MemoryPart(NamedTuple):
    """What is kept under one key of the ConfigMap."""

    key: str
    merge: Callable[[str, float], str]
    """Takes what a text knows better, at a time in epoch seconds, and returns the text of what is
    known by both; the same text if this process knows nothing more. It raises for no text."""


class _Metadata(msgspec.Struct, rename="camel"):
    resource_version: str


class _ConfigMap(msgspec.Struct, rename="camel"):
    metadata: _Metadata
    data: dict[str, str] | None = None


class ClusterMemory:
    """Reads and writes one ConfigMap.

    Args:
        send: sends GET, or PATCH with a merge patch; returns the ConfigMap's JSON; raises
            ClusterAnswerError.
        parts: what is kept.
        interval: seconds between two rounds.
        clock: epoch seconds.
    """

    def __init__(
        self,
        send: Callable[[str, Any], Awaitable[bytes]],
        parts: Sequence[MemoryPart],
        interval: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._send = send
        self._parts = parts
        self._interval = interval
        self._clock = clock
        self._was_read = False
        self.problem = ""
        """Why it is not read or stored; empty if it is."""

    async def run(self) -> None:
        """Read and write repeatedly until cancelled."""
        while True:
            await self.round()
            await asyncio.sleep(self._interval if self._was_read else min(_RETRY, self._interval))

    async def round(self) -> None:
        """Read once, and write if this process knows more. A failure is logged."""
        from apiservice.kube.client import ClusterAnswerError  # noqa: PLC0415 - 35 MB

        try:
            await self._exchange()
        except (ClusterAnswerError, *UNREADABLE) as error:
            if getattr(error, "status", 0) == HTTPStatus.CONFLICT:
                return  # another replica was faster
            self._note(str(error))
        else:
            self._note("")

    async def _exchange(self) -> None:
        stored = msgspec.json.decode(await self._send("GET", None), type=_ConfigMap)
        data, now = stored.data or {}, self._clock()
        merged = {part.key: part.merge(data.get(part.key, ""), now) for part in self._parts}
        self._was_read = True
        more = {key: text for key, text in merged.items() if text != data.get(key, "")}
        if more:
            await self._send("PATCH", msgspec.to_builtins(_ConfigMap(stored.metadata, more)))

    def _note(self, problem: str) -> None:
        if problem != self.problem:
            if problem:
                log.warning("what was learned is not stored", error=problem)
            else:
                log.info("what was learned is stored")
        self.problem = problem


def cluster_memory(
    settings: MemorySettings, client: Any, parts: Sequence[MemoryPart]
) -> ClusterMemory | None:
    """Return the memory; None if no ConfigMap is named or ``client`` is None."""
    if not settings.configmap or client is None:
        return None
    from apiservice.kube.client import call  # noqa: PLC0415 - 35 MB

    namespace, _, name = settings.configmap.partition("/")
    path = f"/api/v1/namespaces/{namespace}/configmaps/{name}"

    async def send(method: str, body: Any) -> bytes:
        return await call(client, method, path, body, content_type=_MERGE)

    return ClusterMemory(send, parts, settings.interval)
