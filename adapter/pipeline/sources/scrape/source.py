"""Scrape every exporter once per interval.

Each target has its own task, so a slow, broken or hostile exporter affects only its own samples.
Every scrape has a deadline, and :mod:`adapter.pipeline.sources.scrape.scrapelimits` bounds the
resources of all scrapes together.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import structlog

from adapter.pipeline.catalog.serverkinds import looks_like
from adapter.pipeline.cluster.index import PodIndex
from adapter.pipeline.cluster.pod import PodRef
from adapter.pipeline.devices.readpages import PageState
from adapter.pipeline.exposition.limits import EXPORTER, SERVER
from adapter.pipeline.exposition.page import LabelMemo, Page, parse_in_steps
from adapter.pipeline.exposition.samples import Sample, ScrapeResult, Sink
from adapter.pipeline.exposition.seriesnames import series_names
from adapter.pipeline.sources.byteroom import HeldBytes
from adapter.pipeline.sources.errors import SourceError, describe
from adapter.pipeline.sources.scrape.client import PageClient
from adapter.pipeline.sources.scrape.contest import ExporterContest
from adapter.pipeline.sources.scrape.discovery import ScrapeTargets
from adapter.pipeline.sources.scrape.largepages import LargePages, WantedSeries
from adapter.pipeline.sources.scrape.options import ScrapeOptions
from adapter.pipeline.sources.scrape.pageaccess import PageAccess, PageKeys
from adapter.pipeline.sources.scrape.refusal import REFUSED
from adapter.pipeline.sources.scrape.scrapelimits import ScrapeLimits
from adapter.pipeline.sources.scrape.target import ScrapeTarget, TargetState, due, phase_of
from apiservice.runtime.steps import Steps
from apiservice.runtime.turns import Turns
from apiservice.selfmetrics.durations import SLOW, Durations

log = structlog.get_logger(__name__)

_DEFAULTS = ScrapeOptions()
EMPTY = "empty"
"""The reason of a page without a sample that is read."""
_PAGE_BYTES = 64 << 20
_SERVER_PAGE_BYTES = 16 << 20
"""Bytes of server pages in progress; above it, pages are read one after another."""
_NAMESPACE_SHARE = 8
"""Pods of one namespace get this fraction (1/8) of the places."""
_BEGUN = 16
"""Targets that are begun, or pods that are compared with the rules, without a pause."""
_LATE = 10.0
"""Seconds (or two intervals, if longer) after which a due scrape counts as overdue."""


class ScrapeSource:
    """Passes one scrape result per exporter and interval to the sink.

    Raises:
        CredentialError: at construction, if the file of a CA or of a credential cannot be used.
    """

    def __init__(
        self,
        options: ScrapeOptions,
        sink: Sink,
        pods: PodIndex | None = None,
        *,
        wanted: WantedSeries | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._options = options
        self._sink = sink
        self._pods = pods
        self._wanted = wanted
        self._clock = clock
        self._pages = PageClient(
            idle=3 * options.interval,
            keys=PageKeys(options.ca_file, options.bearer_token_file, _accesses(options)),
            large=LargePages(wanted),
        )
        self._exporters = ScrapeLimits(
            options.concurrency,
            None,
            page_bytes=_PAGE_BYTES,
            label_bytes=options.label_bytes,
            limits=EXPORTER.times(options.max_bytes / _DEFAULTS.max_bytes),
            max_bytes=options.max_bytes,
            setting="source.scrape.max_bytes",
        )
        self._servers = ScrapeLimits(
            options.concurrency,
            max(1, options.concurrency // _NAMESPACE_SHARE),
            page_bytes=_SERVER_PAGE_BYTES,
            label_bytes=options.server_label_bytes,
            limits=SERVER.times(options.server_max_bytes / _DEFAULTS.server_max_bytes),
            max_bytes=options.server_max_bytes,
            setting="source.scrape.inference.max_bytes",
        )
        self._turns = Turns()
        self._targets = ScrapeTargets(options.rules, self._start, self._stop, options.servers)
        self._contest = ExporterContest(self._targets, pods, clock)
        self.unscrapable: Mapping[str, int] = self._targets.unscrapable
        """Pods that should be scraped and cannot be, by reason, since the start."""
        self._tasks: dict[ScrapeTarget, asyncio.Task[None]] = {}
        self.states: dict[ScrapeTarget, TargetState] = {}
        """Current target -> its state."""
        self._on_node: dict[str, set[ScrapeTarget]] = {}
        self._of_pod: dict[PodRef, set[ScrapeTarget]] = {}
        self._begun = False
        self._began = 0.0
        self.scrapes = 0
        """Scrapes, with or without success."""
        self.failures: Counter[str] = Counter()
        """Failed scrapes by reason."""
        self.last_success = 0.0
        """Epoch seconds of the last good page of any exporter; 0 before the first."""
        self.durations = Durations(SLOW)
        """Durations of scrapes, with or without success."""

    of_store: Final = False
    """See :class:`adapter.pipeline.devices.readpages.ReadPages`."""

    def on_node(self, node: str) -> Sequence[PageState]:
        """See :class:`adapter.pipeline.devices.readpages.ReadPages`."""
        return self._pages_of(self._on_node.get(node, ()))

    def of_pod(self, pod: PodRef) -> Sequence[PageState]:
        """See :class:`adapter.pipeline.devices.readpages.ReadPages`."""
        return self._pages_of(self._of_pod.get(pod, ()))

    def _pages_of(self, targets: Collection[ScrapeTarget]) -> Sequence[PageState]:
        states = (self.states[target] for target in sorted(targets))
        return [
            PageState(
                s.target.url,
                s.target.pod,
                s.last_success,
                s.last_error,
                refused=s.reason in REFUSED,
                unknown=s.reason == EMPTY,
            )
            for s in states
        ]

    @property
    def settled(self) -> bool:
        """Whether every known exporter has been scraped once, with or without success.

        Pods with a server page are included for a short time only, because one may never answer.
        """
        waited = self._clock() - self._began
        patient = waited < self._options.interval + 2 * self._options.timeout
        return self._begun and all(
            state.last_success or state.failures
            for state in self.states.values()
            if patient or not state.target.serves
        )

    @property
    def found(self) -> bool:
        """Whether a page is known, or the settings neither name nor discover an exporter.

        A cluster may have inference servers only: then their pages are all that there is to read.
        """
        if not self._options.rules and not self._options.targets:
            return True
        return bool(self.states)

    @property
    def only_servers(self) -> bool:
        """Whether all known pages are server pages."""
        return all(target.serves for target in self.states)

    def problem(self, now: float) -> str | None:
        """Return why there is no fresh data although there should be, or None.

        A cluster without exporters is not a problem: its GPU nodes may be scaled to zero.
        """
        patience = max(3 * self._options.interval + self._options.timeout, 30.0)
        # A server page that answers does not replace exporters that fail.
        states = [s for s in self.states.values() if not s.target.serves]
        states = states or list(self.states.values())
        if not states or now - max(s.last_success for s in states) <= patience:
            return None
        failing = [state for state in states if state.last_error]
        if not failing:
            return f"none of {len(states)} exporters has answered yet"
        worst = failing[0]
        return (
            f"{len(failing)} of {len(states)} exporters fail, "
            f"e.g. {worst.target.url}: {worst.last_error}"
        )

    def count_overdue(self, now: float) -> int:
        """Return the number of targets whose due scrape has not begun: no place was free."""
        late = now - max(_LATE, 2 * self._options.interval) - self._options.timeout
        return sum(1 for state in self.states.values() if state.due < late)

    @property
    def label_bytes(self) -> Mapping[str, int]:
        """Return kind of target -> estimated memory of its pages' label sets."""
        return {"exporter": self._exporters.labels.used, "pod": self._servers.labels.used}

    async def run(self) -> None:
        """Scrape until cancelled, then close every connection."""
        async with self._pages.connected():
            pods = self._pods
            unlisten = None if pods is None else pods.listen(self._targets.pod_changed)
            try:
                await self._begin()
                await asyncio.Event().wait()
            finally:
                if unlisten:
                    unlisten()
                tasks = list(self._tasks.values())
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    async def _begin(self) -> None:
        for target, state in self.states.items():  # if it runs again after a failure
            self._tasks[target] = asyncio.create_task(self._follow(target, state))
        for number, target in enumerate(self._options.targets, 1):
            self._targets.add(target)
            if not number % _BEGUN:
                await asyncio.sleep(0)
        if self._pods is not None:
            for number, pod in enumerate(tuple(self._pods.each()), 1):
                # A change during a pause has been heard.
                if self._pods.get(*pod.ref) is pod:
                    self._targets.pod_changed(None, pod)
                if not number % _BEGUN:
                    await asyncio.sleep(0)
            await self._pods.listed.wait()  # labels alone do not show which pods are exporters
        self._targets.decide()
        self._begun, self._began = True, self._clock()

    def _start(self, target: ScrapeTarget) -> None:
        state = self.states[target] = TargetState(target, due=self._clock())
        by_subject, subject = self._subjects(target)
        by_subject.setdefault(subject, set()).add(target)
        self._tasks[target] = asyncio.create_task(self._follow(target, state))
        log.info("exporter found", url=target.url, node=target.node, rule=target.rule)

    def _stop(self, target: ScrapeTarget) -> None:
        del self.states[target]
        by_subject, subject = self._subjects(target)
        by_subject[subject].discard(target)
        if not by_subject[subject]:
            del by_subject[subject]
        self._tasks.pop(target).cancel()
        self._pages.drop(target.url)
        self._sink.forget(target.url)
        log.info("exporter gone", url=target.url, node=target.node)

    def _subjects(
        self, target: ScrapeTarget
    ) -> tuple[dict[Any, set[ScrapeTarget]], PodRef | str | None]:
        """Return the index that has the target, and its key there: a node, or a server's pod."""
        return (self._of_pod, target.pod) if target.serves else (self._on_node, target.node)

    async def _follow(self, target: ScrapeTarget, state: TargetState) -> None:
        options = self._options
        phase = phase_of(target.url, options.interval)
        memo = LabelMemo()
        room = self._servers if target.serves else self._exporters
        namespace = target.namespace
        try:
            while True:
                async with room.place(namespace) as hold:
                    await self._scrape(state, memo, room, hold)
                now = self._clock()
                state.due = due(now, phase, options.interval, state.failures, options.max_backoff)
                await asyncio.sleep(state.due - now)
        finally:
            room.labels.release(namespace, state.held)

    async def _scrape(
        self, state: TargetState, memo: LabelMemo, room: ScrapeLimits, hold: HeldBytes
    ) -> None:
        started = self._clock()
        self.scrapes += 1
        sought = self._series_of(state.target)
        try:
            async with asyncio.timeout(self._options.timeout):
                body = await self._pages.fetch(
                    state.target, room.max_bytes, hold.take, room.limits.lines
                )
            async with room.reading_lock(len(body)):
                samples = await self._turns.run(
                    self._intake(body, started, memo, state, room, sought)
                )
            self._contest.note(state.target, samples)
        except Exception as error:  # one exporter must not end the others
            self._note_failure(state, describe(error), room)
        self.durations.observe(max(0.0, self._clock() - started))

    def _intake(
        self,
        body: bytes,
        started: float,
        memo: LabelMemo,
        state: TargetState,
        room: ScrapeLimits,
        sought: Container[str] | None,
    ) -> Steps[Sequence[Sample]]:
        """Parse a page and pass it to the sink, in steps. Return its samples.

        Args:
            sought: the series that were read when the scrape began: lines of a large page are
                dropped before they are parsed.
        """
        same = sought is self._series_of(state.target)
        page = yield from self._parse(body, started, memo, state, room)
        state.rejects = page.rejects
        _check(page, body)
        target, now = state.target, self._clock()
        yield from self._sink.steps(
            ScrapeResult(
                origin=target.url,
                node=target.node,
                samples=page.samples,
                received=now,
                rejects=page.rejects,
                unread=page.unread,
                incomplete=page.incomplete,
                pod=target.pod,
                serves=target.serves,
                sought=sought if page.whole and same else None,
            )
        )
        if state.last_error:
            log.info("exporter answers again", url=target.url, after=state.failures)
        state.failures, state.last_error, state.reason = 0, "", ""
        state.last_success = self.last_success = now
        state.samples = len(page.samples)
        return page.samples

    def _parse(
        self, body: bytes, started: float, memo: LabelMemo, state: TargetState, room: ScrapeLimits
    ) -> Steps[Page]:
        namespace, limits = state.target.namespace, room.limits
        wanted = self._series_of(state.target)
        reserved = room.labels.reserve(namespace, state.held)
        if reserved != limits.held:
            limits = replace(limits, held=reserved)
        try:
            page = yield from parse_in_steps(
                body, time=started, memo=memo, wanted=wanted, limits=limits
            )
            state.held = state.held if page.abandoned else page.held
        finally:
            room.labels.release(namespace, reserved, state.held)
        return page

    def _series_of(self, target: ScrapeTarget) -> Container[str] | None:
        """Return the series that are read of a target's page; None for every one."""
        return None if self._wanted is None else self._wanted(target.namespace)

    def _note_failure(self, state: TargetState, error: SourceError, room: ScrapeLimits) -> None:
        if error.reason in ("too_large", "too_costly"):
            error = SourceError(error.reason, f"{error}; raise {room.setting}")
        self.failures[error.reason] += 1
        if state.reason != error.reason:
            log.warning("scrape failed", url=state.target.url, error=str(error))
        state.failures += 1
        state.reason, state.last_error = error.reason, str(error)


def _accesses(options: ScrapeOptions) -> Iterator[PageAccess]:
    """Yield how pages are reached according to the settings."""
    yield from (rule.access for rule in options.rules)
    yield from (target.access for target in options.targets)
    if options.servers is not None:
        yield options.servers.access


def _check(page: Page, body: bytes) -> None:
    """Raise SourceError for a page without samples."""
    if page.abandoned:
        raise SourceError(
            "too_costly", "the page has more lines, or more unusual lines, than one page may have"
        )
    if not page.samples:
        left_out = ", ".join(f"{count} {reason}" for reason, count in page.rejects.items())
        detail = f"; lines left out: {left_out}" if left_out else ""
        program = looks_like(series_names(body))
        detail += f"; it looks like {program}" if program else ""
        raise SourceError(EMPTY, f"the page has no series that the catalogue contains{detail}")
