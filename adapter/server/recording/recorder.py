"""``serve --record``: write what ``serve`` reads into a recording, beside its other work.

A failure ends the recording, and nothing else.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import structlog

from adapter.pipeline.cluster.hpas import ShownHpa
from adapter.pipeline.cluster.lookup import ObjectLookup
from adapter.pipeline.cluster.nodes import Node
from adapter.pipeline.cluster.pod import Pod
from adapter.pipeline.exposition.samples import ScrapeResult, Sink
from adapter.server.recording.writer import RecordingFile, RecordingWriter
from apiservice.runtime.steps import Steps

log = structlog.get_logger(__name__)

_EVERY: Final = 5.0
"""Seconds between two blocks, at most: what a killed process loses."""
_BLOCK: Final = 4 << 20
"""Bytes of lines that end a block early."""
_WAITING: Final = 32 << 20
"""Bytes of lines that may wait for the disk."""


class Recorder:
    """Records the sources' samples and the cluster's objects until the file is full."""

    def __init__(
        self,
        file: RecordingFile,
        objects: ObjectLookup,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._file = file
        self._objects = objects
        self._clock = clock
        self._writer = RecordingWriter()
        self._begun = False
        self._enough = asyncio.Event()
        self.pages = 0
        """Pages that were recorded."""
        self.stopped = ""
        """Why nothing is recorded any more; empty while it records."""
        objects.pod_index.listen(self._pod)
        objects.nodes.listen(self._node)
        if objects.hpas is not None:
            objects.hpas.listen(self._hpa)

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self._file.size

    @property
    def left_out(self) -> int:
        """Events that are too long."""
        return self._writer.left_out

    @property
    def _open(self) -> bool:
        return self._begun and not self.stopped

    def begin(self, settings: Mapping[str, Any]) -> None:
        """Record from now on, with these settings and all objects that are known."""
        if self.stopped:
            return
        self._begun = True
        now, writer = self._clock(), self._writer
        writer.begin(settings, now)
        for pod in self._objects.pod_index.each():
            writer.pod(pod, now)
        for node in self._objects.nodes:
            writer.node(node, now)
        for hpa in self._objects.hpas or ():
            writer.hpa(hpa, now)

    def recording_sink(self, sink: Sink) -> Sink:
        """Return a sink that also records."""
        return _RecordingSink(sink, self)

    def page(self, result: ScrapeResult) -> None:
        """Record the samples of one exporter."""
        if self._open:
            self._writer.page(result)
            self.pages += 1
            self._look()

    async def run(self) -> None:
        """Write blocks until cancelled; then write the last lines."""
        try:
            while not self.stopped:
                try:
                    async with asyncio.timeout(_EVERY):
                        await self._enough.wait()
                except TimeoutError:
                    pass
                self._enough.clear()
                await self._write()
        finally:
            if self._open:
                self._append(self._writer.take())

    async def _write(self) -> None:
        lines = self._writer.take()
        if lines:
            # In a thread, because compressing 4 MiB takes a tenth of a second.
            await asyncio.to_thread(self._append, lines)

    def _append(self, lines: list[bytes]) -> None:
        try:
            self._file.append(lines)
        except OSError as error:
            self._stop(f"{self._file.path} cannot be written: {error.strerror}")
            return
        if self._file.full:
            self._stop(f"{self._file.path} has reached its limit of {self._file.most} bytes")

    def _stop(self, why: str) -> None:
        self.stopped = why
        self._writer.take()
        log.error(
            "recording ended", error=why, hint="values are not affected; start it again to record"
        )

    def _look(self) -> None:
        """Write early if there is much, and stop if the disk does not keep up."""
        if self._writer.pending > _WAITING:
            self._stop(f"{self._file.path} is written too slowly: {_WAITING >> 20} MiB wait")
        elif self._writer.pending > _BLOCK:
            self._enough.set()

    def _pod(self, before: Pod | None, after: Pod | None) -> None:
        pod = after or before
        if self._open and pod is not None:
            self._writer.pod(pod, self._clock(), gone=after is None)
            self._look()

    def _node(self, before: Node | None, after: Node | None) -> None:
        node = after or before
        if self._open and node is not None:
            self._writer.node(node, self._clock(), gone=after is None)
            self._look()

    def _hpa(self, before: ShownHpa | None, after: ShownHpa | None) -> None:
        hpa = after or before
        if self._open and hpa is not None:
            self._writer.hpa(hpa, self._clock(), gone=after is None)
            self._look()


class _RecordingSink:
    """Implements :class:`adapter.pipeline.exposition.samples.Sink`."""

    def __init__(self, sink: Sink, recorder: Recorder) -> None:
        self._sink = sink
        self._recorder = recorder

    def steps(self, result: ScrapeResult) -> Steps[None]:
        """See the port."""
        yield from self._sink.steps(result)
        self._recorder.page(result)

    def forget(self, origin: str) -> None:
        """See the port."""
        self._sink.forget(origin)
