"""Keep what was learned about promises in a ConfigMap, over restarts and for all replicas.

An HPA asks one replica, and after a restart another one. Without this, that one would not know
which load keeps the promise, and would scale a workload that has not changed.

Each replica reads the ConfigMap once a minute, takes what others know better, and writes what it
knows better. ``metadata.resourceVersion`` makes the API server refuse an update that another one
has overtaken: the next minute tries again. Nothing is written while nobody promises anything.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, Final

import msgspec
import structlog

from adapter.answers.promises.memory import dump_lessons, load_lessons
from adapter.answers.promises.ratios import PromisedRatios
from adapter.config.settings.promises import PromisesSettings
from apiservice.runtime.jsontext import UNREADABLE

log = structlog.get_logger(__name__)

KEY: Final = "promises.jsonl"
"""Key of the ConfigMap's data."""
_MERGE: Final = "application/merge-patch+json"
_EVERY: Final = 60.0
"""Seconds between two rounds."""


class _Metadata(msgspec.Struct, rename="camel"):
    resource_version: str


class _ConfigMap(msgspec.Struct, rename="camel"):
    metadata: _Metadata
    data: dict[str, str] | None = None


class PromiseMemory:
    """Reads and writes one ConfigMap.

    Args:
        send: sends GET, or PATCH with a merge patch; returns the ConfigMap's JSON; raises
            ClusterAnswerError.
        ratios: what this process has learned.
        clock: epoch seconds.
    """

    def __init__(
        self,
        send: Callable[[str, Any], Awaitable[bytes]],
        ratios: PromisedRatios,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._send = send
        self._ratios = ratios
        self._clock = clock
        self._was_read = False
        self._written = ""
        self.problem = ""
        """Why it is not read or stored; empty if it is."""

    async def run(self) -> None:
        """Read and write repeatedly until cancelled."""
        while True:
            await self.round()
            await asyncio.sleep(_EVERY)

    async def round(self) -> None:
        """Read once, and write if this process knows more."""
        from apiservice.kube.client import ClusterAnswerError  # noqa: PLC0415 - 35 MB

        if self._was_read and not self._ratios.size:
            return
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
        text = (stored.data or {}).get(KEY, "")
        now = self._clock()
        if text != self._written:
            lessons, unread = load_lessons(text)
            if unread:
                log.warning("lines of the ConfigMap of promises cannot be read", lines=unread)
            self._ratios.recall(lessons, now)
        self._was_read = True
        if not self._ratios.size:
            return
        known, left_out = dump_lessons(self._ratios.lessons(now), now)
        if left_out:
            log.warning("the ConfigMap of promises is full", workloads_left_out=left_out)
        if known in (text, self._written):
            return
        await self._send("PATCH", msgspec.to_builtins(_ConfigMap(stored.metadata, {KEY: known})))
        self._written = known

    def _note(self, problem: str) -> None:
        if problem != self.problem:
            if problem:
                log.warning("what was learned about promises is not stored", error=problem)
            else:
                log.info("what was learned about promises is stored")
        self.problem = problem


def promise_memory(
    settings: PromisesSettings, client: Any, ratios: PromisedRatios
) -> PromiseMemory | None:
    """Return the memory; None if no ConfigMap is named or ``client`` is None."""
    if not settings.configmap or client is None:
        return None
    from apiservice.kube.client import call  # noqa: PLC0415 - 35 MB

    namespace, _, name = settings.configmap.partition("/")
    path = f"/api/v1/namespaces/{namespace}/configmaps/{name}"

    async def send(method: str, body: Any) -> bytes:
        return await call(client, method, path, body, content_type=_MERGE)

    return PromiseMemory(send, ratios)
