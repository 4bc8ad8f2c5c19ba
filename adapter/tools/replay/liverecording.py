"""One run of ``replay record``: the inputs of ``serve``, and nothing that answers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

import structlog

from adapter.config.process.config import ConfigError, load
from adapter.config.process.logs import configure
from adapter.config.process.output import say
from adapter.config.settings import Settings
from adapter.figures import count
from adapter.pipeline.catalog import built_in
from adapter.pipeline.cluster.hpas import Hpas
from adapter.pipeline.cluster.index import PodIndex
from adapter.pipeline.cluster.lookup import ObjectLookup
from adapter.pipeline.cluster.nodes import Nodes
from adapter.pipeline.cluster.podsfile import PodsFileError
from adapter.pipeline.cluster.services import Services
from adapter.server.recording.events import RecordingError
from adapter.server.recording.recorder import Recorder
from adapter.server.recording.writer import RecordingFile
from adapter.server.serve.build import cluster_loops
from adapter.server.serve.pipeline import RELEASE, PipelineSwitcher
from adapter.server.serve.start import StartError, connect_cluster, stop_signal
from adapter.tools.client.command import BLOCKED, FINE, UNSEEN, complain
from adapter.tools.client.errors import ClientError
from apiservice.runtime import eventloop
from apiservice.runtime.background import Background

log = structlog.get_logger(__name__)

_LOOK: Final = 10.0
"""Seconds between checks whether something is recorded."""


def run(given: Mapping[str, Any]) -> int:
    """Record until the time is over or a signal comes; return the exit status."""
    flags = {
        "cluster.kubeconfig": given["kubeconfig"],
        "cluster.context": given["context"],
        "cluster.pods_file": given["pods_file"],
    }
    try:
        settings = load(given["config"], flags)
        configure(settings.log)
        recording = _LiveRecording(settings, given["file"])
        eventloop.run(recording.run(given["seconds"]))
    except (ConfigError, RecordingError, StartError) as error:
        complain(ClientError("; ".join(str(error).splitlines())))
        return UNSEEN
    problem = recording.problem(time.time())
    say(f"gpu-metrics-adapter: {recording.summary}", err=True)
    if recording.ended or not recording.pages:
        complain(ClientError(recording.ended or f"nothing to replay: {problem}"))
        return BLOCKED
    return FINE


class _LiveRecording:
    """The parts of the process.

    Raises:
        RecordingError: the file cannot be written.
    """

    def __init__(self, settings: Settings, path: Path) -> None:
        self._settings = settings
        self._hpas = Hpas()
        self._objects = ObjectLookup(PodIndex(), Services(), Nodes(), self._hpas)
        self._file = RecordingFile(path, settings.recording.max_bytes)
        self._recorder = Recorder(self._file, self._objects)
        self._background = Background()
        self._pipelines = PipelineSwitcher(
            built_in(), self._objects, self._background, self._recorder
        )
        self._said: str | None = None

    @property
    def pages(self) -> int:
        """Pages of exporters that were recorded."""
        return self._recorder.pages

    @property
    def ended(self) -> str:
        """Why the recording ended early; empty if it did not."""
        return self._recorder.stopped

    @property
    def summary(self) -> str:
        """What was recorded, in words."""
        hpas = count(sum(1 for _ in self._hpas), "HPA")
        pages = count(self.pages, "page")
        return f"recorded {pages}, and {hpas}: {self._file.path} has {self._file.size} bytes"

    def problem(self, now: float) -> str | None:
        """Return why nothing is recorded; None if something is."""
        index, source = self._objects.pod_index, self._pipelines.current.source
        if not index.synced:
            failed = index.last_error or "the pods have not been listed yet"
            return f"{failed}; `gpu-metrics-adapter doctor` names the fix"
        if not source.found:
            return "no exporter has been found: name them in source.scrape of --config"
        return source.problem(now) or (None if self.pages else "no exporter has answered yet")

    async def run(self, seconds: float | None) -> None:
        """Record for so many seconds, or until a stop signal; raises StartError, ConfigError."""
        stopping = stop_signal()
        async with AsyncExitStack() as stack:
            client = await connect_cluster(self._settings, stack)
            try:
                feeds = await cluster_loops(self._settings.cluster, client, self._objects)
            except PodsFileError as error:
                raise StartError(str(error)) from None
            self._pipelines.use(self._settings)
            keep, every = self._background.keep, self._background.every
            loops = [
                *(keep("cluster", loop) for loop in feeds),
                keep("telemetry", self._pipelines.run),
                every("snapshot", RELEASE, self._pipelines.release),
                every("problem", _LOOK, self._look),
            ]
            log.info("recording", file=str(self._file.path))
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(loop()) for loop in loops]
                ends = [
                    group.create_task(self._recorder.run()),
                    group.create_task(_wait(stopping)),
                ]
                await asyncio.wait(ends, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
                for task in (*tasks, *ends):
                    task.cancel()

    def _look(self) -> None:
        problem = self.problem(time.time())
        if problem != self._said and problem is not None:
            log.warning("no page is recorded", error=problem)
        self._said = problem


async def _wait(stopping: asyncio.Event) -> None:
    await stopping.wait()
