"""The pipeline in use, and its replacement when settings change.

A new pipeline first fills its store beside the old one. So a change of settings does not interrupt
the values, and no metric name is served before it has a value.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import structlog

from adapter.config.process.config import ConfigError
from adapter.config.settings import Settings
from adapter.pipeline.catalog import Catalog
from adapter.pipeline.catalog.metric import Metric
from adapter.pipeline.catalog.servermeasures import OF_PROMISES
from adapter.pipeline.cluster.lookup import ObjectLookup
from adapter.pipeline.devices.readpages import STORED_PAGES
from adapter.pipeline.exposition.samples import Sink
from adapter.pipeline.sources.errors import CredentialError
from adapter.pipeline.sources.scrape.source import ScrapeSource
from adapter.pipeline.store.outlook import NO_OUTLOOK, Outlook
from adapter.pipeline.store.snapshot import Snapshot
from adapter.pipeline.store.store import Store
from adapter.server.recording.recorder import Recorder
from adapter.server.recording.settings import dump_settings
from adapter.server.serve.build import Source, build_source, sharing_options, telemetry_options
from adapter.server.serve.ownmetrics import problems, rows
from apiservice.runtime.background import Background

log = structlog.get_logger(__name__)

_HOLD = 0.1
"""Seconds for which a snapshot is reused, at least."""
RELEASE = 1.0
"""Seconds between checks whether the snapshot is in use."""
_LOOK = 0.1
"""Seconds between checks whether a new source has filled its store."""


@dataclass(frozen=True, slots=True, eq=False)
class Pipeline:
    """A source, the store that it fills, and the catalogue that both use."""

    settings: Settings
    catalog: Catalog
    store: Store
    source: Source

    @property
    def patience(self) -> float:
        """Seconds after which a new pipeline no longer waits for data: the age limit has passed."""
        return telemetry_options(self.settings).oldest


class PipelineSwitcher:
    """The current values and metric names, from the pipeline in use.

    Args:
        catalog: the built-in catalogue; the settings' own metrics are added to it.
        objects: the pods and nodes.
        background: runs the sources.
        recorder: records what the sources deliver, or None.
    """

    def __init__(
        self,
        catalog: Catalog,
        objects: ObjectLookup,
        background: Background | None = None,
        recorder: Recorder | None = None,
    ) -> None:
        self._built_in = catalog
        self._objects = objects
        self._current: Pipeline | None = None
        self._next: Pipeline | None = None
        self._latest: Settings | None = None
        """The last accepted settings, whether or not their pipeline is in use yet."""
        self._background = background or Background()
        self._recorder = recorder
        self._given = asyncio.Event()
        self._versions_before = 0
        self._outlook: Outlook = NO_OUTLOOK
        self._shown: Snapshot | None = None
        self._shown_at = 0.0
        self._filled = False

    @property
    def current(self) -> Pipeline:
        """The pipeline in use."""
        if self._current is None:
            raise RuntimeError("no settings are in use yet")
        return self._current

    @property
    def catalog(self) -> Catalog:
        """The catalogue in use."""
        return self._current.catalog if self._current else self._built_in

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """See :class:`adapter.pipeline.catalog.names.Names`."""
        return self.catalog.metrics

    @property
    def principal(self) -> Sequence[str]:
        """See :class:`adapter.pipeline.catalog.names.Names`."""
        return self.catalog.principal

    @property
    def snapshot(self) -> Snapshot:
        """Return the served values, at most a tenth of a second behind the store.

        A large cluster delivers a page every few milliseconds, and each would invalidate all
        answers.
        """
        now = time.monotonic()
        if self._shown is None or now - self._shown_at >= _HOLD:
            self._shown, self._shown_at = self.current.store.snapshot, now
        return self._shown

    def release(self) -> None:
        """Release a snapshot that nobody has asked for lately: it holds all former values."""
        if time.monotonic() - self._shown_at >= _HOLD:
            self._shown = None

    @property
    def version(self) -> int:
        """A number that grows with every change of a value, also when the store is replaced."""
        return self._versions_before + self.snapshot.version

    def look_ahead(self, outlook: Outlook) -> None:
        """Take expectations from here, for the stores in use and to come."""
        self._outlook = outlook
        for pipeline in (self._current, self._next):
            if pipeline is not None:
                pipeline.store.outlook = outlook

    def use(self, settings: Settings) -> None:
        """Use these settings as soon as their pipeline has data.

        If earlier settings are still filling their store, these settings replace them.

        Raises:
            ConfigError: a file that the source needs cannot be used; nothing changes.
        """
        if self._latest is not None and _is_same_pipeline(self._latest, settings):
            return
        pods, nodes = self._objects.pod_index, self._objects.nodes
        prometheus = settings.source.kind == "prometheus"
        wrong = list(problems(settings.metrics, self._built_in, prometheus=prometheus))
        if wrong:
            raise ConfigError(wrong)
        built_in = self._built_in if settings.ahead.enabled else self._built_in.without_expected()
        catalog = built_in.extended(*rows(settings.metrics, self._built_in))
        store = Store(catalog, telemetry_options(settings), pods, nodes, sharing_options(settings))
        sink: Sink = store
        if self._recorder is not None:
            store.demand.always(OF_PROMISES)
            sink = self._recorder.recording_sink(store)
        try:
            source = build_source(settings, catalog, sink, self._objects, store.demand)
        except CredentialError as error:
            raise ConfigError([f"source.{settings.source.kind}: {error}"]) from None
        store.outlook = self._outlook
        store.pages = source if isinstance(source, ScrapeSource) else STORED_PAGES
        if self._recorder is not None:
            self._recorder.begin(dump_settings(settings))
        self._latest = settings
        self._next = Pipeline(settings, catalog, store, source)
        if self._current is None:
            self._current = self._next
        self._given.set()

    async def run(self) -> None:
        """Run the source, and the sources that replace it, until cancelled."""
        if self._next is None and self._current is not None:
            # After a failure the loop starts again with the pipeline in use.
            self._next = self._current
            self._given.set()
        async with asyncio.TaskGroup() as group:
            running: asyncio.Task[None] | None = None
            while True:
                await self._given.wait()
                self._given.clear()
                pipeline, self._next = self._next, None
                if pipeline is None:
                    continue
                source = self._background.keep("source", pipeline.source.run, essential=True)
                started = group.create_task(source())
                if running is None:
                    # The newest settings that were accepted before the loop ran.
                    self._current, self._shown = pipeline, None
                else:
                    if not await self._fill(pipeline):
                        started.cancel()
                        log.info("source discarded for newer settings")
                        continue
                    self._exchange(pipeline)
                    running.cancel()
                running = started

    def problem(self, now: float, started: float) -> str | None:
        """Return why there is no data yet; None for good once there was data: see :mod:`.run`."""
        if self._filled:
            return None
        if not self._objects.pod_index.synced:
            return "the pods have not been listed yet"
        source = self.current.source
        problem = None if source.only_servers else source.problem(now)
        if problem is None and not source.found:
            problem = "no exporter has been found yet"
        elif problem is None and not source.settled:
            problem = "not every exporter has been scraped or queried once yet"
        if problem is None or now - started > self.current.patience:
            self._filled = True
            self._shown = None  # do not serve a snapshot from before the first values
            return None
        return problem

    async def _fill(self, pipeline: Pipeline) -> bool:
        """Wait for the new store's data; return False if newer settings arrived."""
        started = time.time()
        while (now := time.time()) - started < pipeline.patience:
            if self._next is not None:
                return False
            source = pipeline.source
            filled = pipeline.store.version or not self.current.store.version
            if filled and source.settled and source.problem(now) is None:
                return True
            await asyncio.sleep(_LOOK)
        log.warning("new source has no data, but is now in use", after=pipeline.patience)
        return True

    def _exchange(self, pipeline: Pipeline) -> None:
        self._versions_before = self.version + 1
        self._current = pipeline
        self._shown = None
        log.info("source replaced", kind=pipeline.settings.source.kind)


def _is_same_pipeline(old: Settings, new: Settings) -> bool:
    return _pipeline(old) == _pipeline(new)


def _pipeline(settings: Settings) -> tuple[object, ...]:
    """Return the settings from which a pipeline is built."""
    return (settings.source, settings.values, settings.sharing, settings.metrics)
