"""A snapshot: all exporter states at one time, and the answers computed from them.

It is immutable except for its cache of answers. A reading remains the same object until a scrape
result of its exporter, a change of its pod or its age ends it, so that it is rendered only once.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Final, NamedTuple

from adapter.pipeline.attribution.census import attributions
from adapter.pipeline.attribution.holdings import Holding
from adapter.pipeline.attribution.latencies import counted_servers
from adapter.pipeline.attribution.nodecontext import NodeContexts, Stamp
from adapter.pipeline.attribution.reading import Absence, Attribution, Reading
from adapter.pipeline.attribution.samplerejects import SampleRejects, rejected_samples
from adapter.pipeline.attribution.sharing import NodeSharing
from adapter.pipeline.attribution.unnamedpods import (
    CLAIM_NOT_NAMED,
    NO_EXPORTER,
    NOT_NAMED,
    failing_exporter,
    failing_page,
    failing_server,
    unnameable_pod,
    unnamed_on_node,
    unnamed_server,
    unreported_node,
)
from adapter.pipeline.attribution.unreadseries import NO_VALUE, NOT_EXPORTED
from adapter.pipeline.attribution.values import (
    READING_BEGINS,
    STALE,
    TOO_FEW,
    UNKNOWN_METRIC,
    Question,
    current_value,
    device_value,
    node_value,
    pod_value,
)
from adapter.pipeline.catalog import Catalog
from adapter.pipeline.catalog.increases import Increase, sum_increases
from adapter.pipeline.catalog.metric import DeviceValue, Metric, Scope
from adapter.pipeline.catalog.requestwindow import Latency, RequestWindow
from adapter.pipeline.catalog.seriesdemand import SeriesDemand
from adapter.pipeline.catalog.serverkind import CACHE, RUNNING, WAITING
from adapter.pipeline.catalog.servermeasures import FINISHED, OUTPUT_TOKENS
from adapter.pipeline.cluster.pod import Pod, PodRef
from adapter.pipeline.devices.assignment import Mismatch, unfit_reason
from adapter.pipeline.devices.crosschecks import add_doubts
from adapter.pipeline.devices.identity import OF_OTHERS
from adapter.pipeline.devices.options import TelemetryOptions
from adapter.pipeline.devices.readpages import NO_PAGES, ReadPages
from adapter.pipeline.devices.rejects import Reject, RejectCount
from adapter.pipeline.devices.remainder import Doubts
from adapter.pipeline.devices.series import DeviceSeries, SeriesKey
from adapter.pipeline.devices.state import ExporterState
from adapter.pipeline.store.alldevices import false_beside_others, idle_devices, rival_assignments
from adapter.pipeline.store.answercache import (
    CachedAnswer,
    cached_answer,
    exporter_limit,
    is_cacheable,
    snapshot_limit,
)
from adapter.pipeline.store.outlook import NO_OUTLOOK, UNKNOWN, Outlook, expected_reading
from apiservice.labels.selector import EVERYTHING, Selector
from apiservice.runtime.steps import Steps, at_once

_OF_WINDOW: Final = (OUTPUT_TOKENS, FINISHED, RUNNING, WAITING, CACHE)
"""The numbers of a :class:`RequestWindow`, in their order there."""
_MAY_BE_UNREAD: Final = frozenset((NO_VALUE, NOT_EXPORTED))
_UTILIZATION: Final = "gpu_utilization"
_ON_PAGES: Final = "on_pages"
"""Key of an exporter's pods that only its page shows, among its cached answers."""
_EXPLAINED: Final = frozenset((NO_VALUE, NOT_EXPORTED, STALE, TOO_FEW))
"""Reasons that rejected samples of a pod's devices may explain."""
_SERVES: Final = attrgetter("serves")
_SERIES: Final = 64
"""Device series that one step processes."""


class _Placed(NamedTuple):
    """A device series on a node, whose numbers are taken in when they are read."""

    exporter: ExporterState
    key: SeriesKey

    @property
    def outline(self) -> DeviceSeries:
        """The device series with older numbers."""
        return self.exporter.outline.all_series[self.key]

    @property
    def series(self) -> DeviceSeries:
        """The device series."""
        return self.exporter.all_series[self.key]


class Snapshot:
    """All exporter states at one time."""

    def __init__(
        self,
        *,
        version: int,
        catalog: Catalog,
        options: TelemetryOptions,
        exporters: Mapping[str, ExporterState],
        holders: Mapping[PodRef, tuple[str, ...]],
        contested: Mapping[str, tuple[str, ...]],
        contexts: NodeContexts,
        servers: Collection[PodRef] = (),
        pages: ReadPages = NO_PAGES,
        demand: SeriesDemand | None = None,
        rejects: Mapping[Reject, RejectCount] | None = None,
        outlook: Outlook = NO_OUTLOOK,
    ) -> None:
        self.version = version
        self.catalog = self._catalog = catalog
        self.options = self._options = options
        self.cluster = self._cluster = contexts.cluster
        self.states = self._exporters = exporters
        """Origin -> what it reported."""
        self._holders = holders
        self._contested = contested
        """Devices that several exporters report -> those exporters."""
        self._contexts = contexts
        self._servers = servers
        """Pods whose server page was seen earlier and is no longer in the store."""
        self._pages = pages
        self._demand = demand or SeriesDemand(catalog)
        self._outlook = outlook
        self._rejects = SampleRejects(catalog, rejects or {}, options.oldest)
        self._own: dict[object, object] = {}
        """Answers that depend on several exporters; dropped with the snapshot."""
        self._false: dict[tuple[str, str], Mapping[int, Doubts]] = {}
        """Exporter and device -> zeros that other exporters contradict, by address."""
        self._nodes: Mapping[str, Sequence[_Placed]] | None = None
        self._none_of: Mapping[PodRef, Mismatch] | None = None

    def pod(
        self,
        pod: Pod,
        metric: str,
        selector: Selector,
        now: float,
        *,
        keep: bool = True,
        ask: bool = True,
    ) -> Reading | Absence:
        """Return a metric's value for a pod, or an absence; both with the devices left out.

        Args:
            keep: cache the answer. Otherwise a cached one is used, and none is added.
            ask: the question starts the reading of series that are read on demand, or keeps it up.
        """
        if metric in self._catalog.expected:
            return self._expected_value(pod, metric, selector, now)
        if ask and metric in self._catalog.on_demand:
            self._demand.ask(metric, pod.namespace, now)
        value = self._answer(pod, metric, selector, now, keep=keep)
        if isinstance(value, Reading):
            return self._unread_server(pod, metric, now) or value
        if value.reason == NOT_NAMED and not value.left_out:
            return self._unnamed_pod(pod, metric, now)
        value = replace(value, exporter=self._exporter_of(pod))
        server = pod if self._about_servers(metric) else None
        value = self._failing_page(value, pod.node, now, server) or value
        if value.reason in _MAY_BE_UNREAD and self._begins(metric, pod.namespace, now):
            return replace(value, reason=READING_BEGINS)
        if value.reason not in _EXPLAINED:
            return value
        definition = self._catalog.metrics[metric]
        return self._rejects.explain(value, definition, self.series_naming(pod.ref), now)

    def _expected_value(
        self, pod: Pod, metric: str, selector: Selector, now: float
    ) -> Reading | Absence:
        """Return what a pod's value will not exceed. Not cached: the measured value is."""
        measured = self.pod(pod, self._catalog.expected[metric], selector, now)
        if isinstance(measured, Absence):
            return measured
        if not selector.empty:
            return Absence(UNKNOWN, "what is learned is about all devices: remove metric.selector")
        rise = self._outlook.rise(self, pod, self._catalog.expected[metric], now)
        if isinstance(rise, Absence):
            return rise
        return expected_reading(measured, self._catalog.metrics[metric], rise)

    def _answer(
        self, pod: Pod, metric: str, selector: Selector, now: float, *, keep: bool
    ) -> Reading | Absence:
        ref = pod.ref
        origins = self._holders.get(ref)
        if origins is not None and len(origins) > 1:
            origins = self._speaking_origins(ref, origins, metric)
        if not origins:
            absence = self._unheard_pod(pod, metric)
            if absence.reason != NOT_NAMED or not self._contexts.may_share(pod):
                return absence
            origins = ()
        # Clients choose selectors, so answers with a selector are dropped with the snapshot.
        everything = selector.empty
        memory = self._memory(pod, ref, origins, metric) if everything else self._own
        key = (ref, metric) if everything else (ref, metric, selector)
        cached = memory.get(key)
        if isinstance(cached, CachedAnswer) and cached.holds(pod, now, self._cluster):
            return cached.value
        value, stamp = self._pod_value(pod, ref, origins, metric, selector, now)
        if keep and len(memory) < self._cache_limit(memory, origins) and is_cacheable(selector):
            memory[key] = cached_answer(value, pod, now, stamp)
        return value

    def _failing_page(
        self, value: Reading | Absence, node: str, now: float, server: Pod | None = None
    ) -> Absence | None:
        """Return why a page fails now whose last value is too old; None for any other answer.

        Not cached: a failed scrape is known at once.
        """
        if not isinstance(value, Absence) or value.reason != STALE:
            return None
        if server is not None:
            return failing_server(value, self._pages.of_pod(server.ref), now)
        return failing_exporter(value, self._exporters, self._pages.on_node(node), now)

    def node(self, node: str, metric: str, selector: Selector, now: float) -> Reading | Absence:
        """Return a metric's value over all devices of a node, or an absence."""
        value = self._node(node, metric, selector, now)
        return self._failing_page(value, node, now) or value

    def _node(self, node: str, metric: str, selector: Selector, now: float) -> Reading | Absence:
        definition = self._catalog.metrics.get(metric)
        if definition is None or definition.expects:
            return Absence(UNKNOWN_METRIC)
        key = ("node", node, metric, selector)
        cached = self._own.get(key)
        if isinstance(cached, CachedAnswer) and cached.holds(None, now, self._cluster):
            return cached.value
        all_series = [placed.series for placed in self._by_node().get(node, ())]
        question = Question(definition, selector, self._options, now)
        value = node_value(all_series, question, self._contexts.node(node))
        if isinstance(value, Absence) and value.reason == NO_EXPORTER:
            value = unreported_node(node, self._pages.on_node(node), now)
        usual = node in self._by_node() and is_cacheable(selector)
        if usual and len(self._own) < snapshot_limit():
            self._own[key] = cached_answer(value, None, now, None)
        return value

    def device(
        self, all_series: Sequence[DeviceSeries], node: str, metric: Metric, now: float
    ) -> Reading | Absence:
        """Return a metric's value of a device itself, or an absence; not remembered.

        Args:
            all_series: the device's, from every exporter.
            node: the device's; empty if it is not known.
            metric: what is requested.
            now: epoch seconds.
        """
        question = Question(metric, EVERYTHING, self._options, now)
        value = device_value(all_series, question, self._contexts.node(node))
        return self._failing_page(value, node, now) or value

    def current_value(self, series: DeviceSeries, metric: Metric, now: float) -> DeviceValue | None:
        """Return a metric's value in one device series; None if it is too old or missing."""
        normalize = self._cluster.options.normalized
        return current_value(series, metric, self._options, now, normalize=normalize)

    def requests(self, pod: Pod, now: float, latencies: Sequence[Latency]) -> RequestWindow | None:
        """Return what a pod's server did in the last window; None if no page of it is current.

        It is a question for each metric of the window, so that their series are read.

        Args:
            latencies: those that the window should have.
        """
        answers = {name: self._plain_value(pod, name, now) for name in _OF_WINDOW}
        increases: dict[Latency, Increase] = {}
        times = [value.time for value in answers.values() if isinstance(value, Reading)]
        for latency in latencies:
            parts = counted_servers(self._plain_value(pod, f"{latency}_mean", now))
            whole = sum_increases(part.increase for part in parts if part.increase is not None)
            if whole is not None and whole.end > now - self._options.oldest:
                increases[latency] = whole
                times.append(whole.end)
        if not times:
            return None
        numbers = [v.value if isinstance(v, Reading) else None for v in answers.values()]
        return RequestWindow(min(times), increases, *numbers)

    def _plain_value(self, pod: Pod, metric: str, now: float) -> Reading | Absence:
        return self.pod(pod, metric, EVERYTHING, now)

    def series_naming(self, ref: PodRef) -> Sequence[DeviceSeries]:
        """Return the device series whose samples name a pod."""
        return [t for o in self._holders.get(ref, ()) for t in self._exporters[o].pods[ref]]

    def sharing(self, node: str) -> NodeSharing:
        """Return who shares which devices of a node; empty without evidence of sharing."""
        return self._contexts.sharing(node)

    def holdings_of(self, device: str) -> Sequence[Holding]:
        """Return the living pods that samples named for a device, now or earlier."""
        return self._contexts.holdings_of(device)

    def is_asked_for(self, metric: str, namespace: str) -> bool:
        """Return whether somebody asks for a metric of a namespace that is read on demand."""
        return self._demand.since(metric, namespace) is not None

    def serves(self, ref: PodRef) -> bool:
        """Return whether a server page of the pod has been seen in the pod's lifetime."""
        return ref in self._servers or any(map(_SERVES, self.series_naming(ref)))

    def holds(self, pod: Pod) -> bool:
        """Return whether a pod holds a GPU: by its spec, or because a sample names it for a device.

        A sample shows it of a pod with a resource claim, or with a resource of an unknown name.
        """
        if pod.holds_gpu or not pod.may_hold_gpu:
            return pod.holds_gpu
        return any(not series.serves for series in self.series_naming(pod.ref))

    def reads_server(self, pod: Pod) -> bool:
        """Return whether the source reads a server page of the pod, with or without success."""
        return bool(self._pages.of_pod(pod.ref))

    def on_pages(self) -> Steps[frozenset[PodRef]]:
        """Return the pods of which only pages show that they have values, though some may be gone.

        They have a server page, or :meth:`holds` follows from samples.
        """
        pods = set(self._servers)
        for number, exporter in enumerate(self._exporters.values()):
            shown = exporter.answers.get(_ON_PAGES)
            if not isinstance(shown, tuple):
                shown = tuple(self._shown_pods(exporter))
                exporter.answers[_ON_PAGES] = shown
            pods.update(shown)
            if number % _SERIES == 0:
                yield
        return frozenset(pods)

    def _shown_pods(self, exporter: ExporterState) -> Iterator[PodRef]:
        for ref, its in exporter.outline.pods.items():
            pod = self._cluster.pod(ref)
            if any(map(_SERVES, its)) or (pod is not None and self.holds(pod) > pod.holds_gpu):
                yield ref

    def survey(self) -> Steps[None]:
        """Compute in steps which devices are on which node, so that queries about nodes are
        fast."""
        if self._nodes is not None:
            return
        nodes: dict[str, list[_Placed]] = {}
        for exporter in self._exporters.values():
            for number, (key, series) in enumerate(exporter.outline.all_series.items()):
                if not series.serves:
                    node = self._cluster.node_of(series)
                    nodes.setdefault(node, []).append(_Placed(exporter, key))
                if number % _SERIES == 0:
                    yield
        nodes.pop("", None)
        self._nodes = nodes

    @property
    def exporters(self) -> int:
        """The number of origins that report devices."""
        return sum(
            any(not series.serves for series in exporter.outline.all_series.values())
            for exporter in self._exporters.values()
        )

    def nodes(self) -> Sequence[str]:
        """The nodes with known devices, sorted."""
        return sorted(self._by_node())

    def namespaces_on(self, node: str) -> Collection[str]:
        """Return the namespaces of the pods that samples of the node's devices name."""
        assignments = (placed.outline.assignment for placed in self._by_node().get(node, ()))
        return {assignment.pod.namespace for assignment in assignments if assignment is not None}

    def attributions(
        self, exclusive: Mapping[str, int]
    ) -> Generator[None, None, Mapping[str, int]]:
        """Count in steps: attribution of utilisation -> devices, once per pod.

        Args:
            exclusive: exporter -> its pods' devices, if it is known that no pod shares any.
        """
        plain, others = 0, []
        for origin, exporter in self._exporters.items():
            if origin in exclusive and self._contested.keys().isdisjoint(exporter.outline.devices):
                plain += exclusive[origin]
            else:
                others.append(exporter)
        yield
        counts = yield from attributions(
            others, self._contexts, self._catalog.metrics[_UTILIZATION]
        )
        counts[Attribution.EXACT.value] += plain
        return counts

    def idle_devices(self, now: float) -> Steps[Mapping[str, tuple[float, bool]]]:
        """As ``idle_devices``, of this snapshot."""
        oldest = now - self._options.oldest
        return idle_devices(self._exporters.values(), oldest, self._works)

    def _works(self, series: DeviceSeries) -> bool:
        """Return whether the pod of a device series is more than a placeholder."""
        pod = self.cluster.believed_pod(series)
        return pod is None or not pod.placeholder

    def _memory(
        self, pod: Pod, ref: PodRef, origins: tuple[str, ...], metric: str
    ) -> dict[object, object]:
        """Return the cache for answers about a pod: that of its only exporter, if there is one."""
        if len(origins) != 1:
            return self._own
        if not self._contexts.rests_on(pod, origins[0]) and not self._about_servers(metric):
            return self._own
        exporter = self._exporters[origins[0]]
        mine = exporter.outline.pods[ref]
        if self._contested and any(series.device.id in self._contested for series in mine):
            return self._own
        return exporter.answers

    def _cache_limit(self, memory: dict[object, object], origins: tuple[str, ...]) -> int:
        """Return the maximum size of a cache."""
        if memory is self._own:
            return snapshot_limit(len(self._holders))
        return exporter_limit(len(self._exporters[origins[0]].outline.pods))

    def _speaking_origins(
        self, ref: PodRef, origins: tuple[str, ...], metric: str
    ) -> tuple[str, ...]:
        """Return the origins that report what the metric is about: the pod's devices or its server.

        A new server page then does not drop the cached answers about the pod's devices.
        """
        server = self._about_servers(metric)
        exporters = self._exporters
        speaking = tuple(
            origin
            for origin in origins
            if any(series.serves is server for series in exporters[origin].outline.pods[ref])
        )
        # If no exporter reports its devices, its server may.
        return speaking if speaking or server else origins

    def _about_servers(self, metric: str) -> bool:
        definition = self._catalog.metrics.get(metric)
        return definition is not None and definition.scope is Scope.SERVER

    def _unheard_pod(self, pod: Pod, metric: str) -> Absence:
        """Return the absence of a pod that no sample names."""
        if metric not in self._catalog.metrics:
            return Absence(UNKNOWN_METRIC)
        # A pod that does not run yet is not expected to have samples.
        wrong = unfit_reason(pod, self._options) or self._disowned_pods().get(pod.ref)
        return Absence(wrong or NOT_NAMED)

    def _unnamed_pod(self, pod: Pod, metric: str, now: float) -> Absence:
        """Return why no sample names the pod. Not cached: it changes with failed scrapes."""
        if self._about_servers(metric):
            return unnamed_server(pod, self._pages, now, self._repeats_others)
        if not pod.holds_gpu and not pod.claims:
            return Absence(Mismatch.NO_GPU)
        unseen = unnameable_pod(pod)
        if unseen is not None:
            return unseen
        left_out = rejected_samples(pod.ref, self._exporters.values())
        if left_out is not None:
            return left_out
        exporters = [
            self._exporters[origin] for origin in self._contexts.reporting_origins(pod.node)
        ]
        why = unnamed_on_node(pod, exporters, self._pages, now=now, oldest=self._options.oldest)
        return why if pod.holds_gpu else Absence(CLAIM_NOT_NAMED, f"of its node, {why.reason}")

    def _unread_server(self, pod: Pod, metric: str, now: float) -> Absence | None:
        """Return why a sum over the pod's servers lacks one; None if each one's page was read.

        Not cached: it changes with failed scrapes.
        """
        if not self._about_servers(metric):
            return None
        pages = self._pages.of_pod(pod.ref)
        return failing_page(pages, now, self._options.oldest) if len(pages) > 1 else None

    def _repeats_others(self, origin: str) -> bool:
        """Return whether samples of a page are about other pods or servers, as on a router's."""
        exporter = self._exporters.get(origin)
        beliefs = exporter.beliefs.values() if exporter is not None else ()
        return any(belief.identity.flaw in OF_OTHERS for belief in beliefs)

    def _exporter_of(self, pod: Pod) -> PodRef | None:
        """Return the pod of the exporter on the pod's node, if it is the only one."""
        origins = self._contexts.reporting_origins(pod.node)
        return self._exporters[origins[0]].pod if len(origins) == 1 else None

    def _begins(self, metric: str, namespace: str, now: float) -> bool:
        """Return whether a metric is asked for so recently that two pages may not have it yet."""
        since = self._demand.since(metric, namespace)
        return since is not None and now - since < self._options.oldest

    def _disowned_pods(self) -> Mapping[PodRef, Mismatch]:
        """Pods that only a scrape's target labels named for devices -> the mismatch."""
        if self._none_of is None:
            mismatches: dict[PodRef, Mismatch] = {}
            for exporter in self._exporters.values():
                mismatches.update(exporter.disowned)
            self._none_of = mismatches
        return self._none_of

    def _pod_value(
        self,
        pod: Pod,
        ref: PodRef,
        origins: tuple[str, ...],
        metric: str,
        selector: Selector,
        now: float,
    ) -> tuple[Reading | Absence, Stamp | None]:
        definition = self._catalog.metrics.get(metric)
        if definition is None:
            return Absence(UNKNOWN_METRIC), None
        all_series = [t for origin in origins for t in self._exporters[origin].pods[ref]]
        rivals = None
        if self._contested:
            rivals = rival_assignments(
                pod, all_series, self._contested, self._exporters, self._cluster
            )
            if self._options.cross_checks:
                all_series = [add_doubts(series, self._doubts(series)) for series in all_series]
        question = Question(definition, selector, self._options, now)
        context, stamp = self._contexts.pod(pod, all_series)
        return pod_value(all_series, pod, question, rivals, context), stamp

    def _doubts(self, series: DeviceSeries) -> Doubts:
        """Return why fields of a pod's device are not trusted, by other exporters of the device."""
        device = series.device.id
        if device not in self._contested:
            return {}
        key = (series.origin, device)
        if key not in self._false:
            lag = self._options.scrape_interval
            self._false[key] = false_beside_others(*key, self._contested, self._exporters, lag)
        return self._false[key].get(id(series), {})

    def _by_node(self) -> Mapping[str, Sequence[_Placed]]:
        at_once(self.survey())
        return self._nodes or {}
