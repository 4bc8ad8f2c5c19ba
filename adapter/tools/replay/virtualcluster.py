"""A cluster on the recording's time: the store, the attribution and the values of ``serve``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from adapter.answers.promises.ratios import PodQuestion, PromisedRatios
from adapter.answers.promises.workload import PromisedWorkload
from adapter.config.settings import Settings
from adapter.hpa import HpaSpec
from adapter.pipeline.attribution.reading import Reading
from adapter.pipeline.attribution.unnamedpods import NO_EXPORTER
from adapter.pipeline.attribution.values import UNKNOWN_METRIC
from adapter.pipeline.catalog import built_in
from adapter.pipeline.catalog.metric import Metric
from adapter.pipeline.catalog.promise import Promise, PromiseError
from adapter.pipeline.cluster.hpas import Hpas
from adapter.pipeline.cluster.index import PodIndex
from adapter.pipeline.cluster.nodes import Nodes
from adapter.pipeline.cluster.pod import Pod
from adapter.pipeline.cluster.workload import plural
from adapter.pipeline.devices.series import DeviceSeries
from adapter.pipeline.exposition.samples import ScrapeResult
from adapter.pipeline.store.store import Store
from adapter.server.recording.events import Begun, Event, HpaSeen, NodeSeen, PageRead, PodSeen
from adapter.server.recording.settings import restore_settings
from adapter.server.serve.build import sharing_options, telemetry_options
from adapter.server.serve.ownmetrics import rows
from apiservice.kube.reflector import EventType
from apiservice.labels.selector import Selector
from apiservice.provider import GroupResource
from apiservice.runtime.steps import at_once
from apiservice.wire.quantity import to_milli

UNEXPRESSED: Final = "too_large"
"""The API's quantity cannot express the value."""
NO_PAGE: Final = "no_page_recorded"
"""The recording has no page of an exporter on the node. Failed reads are not recorded, so whether
there is an exporter, and why it does not answer, is not known."""


class ReplayedValues(NamedTuple):
    """A metric of several pods at one time."""

    milli: Mapping[str, int]
    """Pod name -> value in thousandths."""
    absent: Mapping[str, str]
    """Pod name -> why it has no value."""


class VirtualCluster:
    """The state of the cluster and of ``serve`` at one time of a recording.

    Args:
        begin: returns what is known of a workload and a promise before its first window.
        more: metrics beside those of the recording's settings.
    """

    def __init__(
        self,
        begin: Callable[[Promise], PromisedWorkload] = PromisedWorkload,
        more: Sequence[Metric] = (),
    ) -> None:
        self._learn, self._more = begin, more
        self.now = 0.0
        """Epoch seconds of the last event."""
        self.pods = PodIndex()
        self.hpas = Hpas()
        self.settings = Settings()
        self.catalog = built_in()
        self._ratios = PromisedRatios(self.pods, begin)
        self._nodes = Nodes()
        self._store: Store | None = None

    @property
    def store(self) -> Store:
        """The values; raises RuntimeError before the recording began."""
        if self._store is None:
            raise RuntimeError("the recording has not begun")
        return self._store

    def take(self, event: Event) -> None:
        """Take the next event of a recording; raises RecordingError."""
        self.now = max(self.now, event.time)
        match event:
            case Begun():
                self._begin(event)
            case PageRead():
                self.store.ingest(event.result)
            case PodSeen():
                self.pods.apply(_kind(event), event.pod)
            case NodeSeen():
                self._nodes.apply(_kind(event), event.node)
            case HpaSeen():
                self.hpas.apply(_kind(event), event.hpa)

    def pods_of(self, spec: HpaSpec) -> Sequence[Pod]:
        """Return the pods of an HPA's target."""
        target = spec.target
        if target is None:
            return ()
        group, _, _ = target.api_version.rpartition("/")
        resource = GroupResource(plural(target.kind), group)
        return self.pods.owned_by(spec.namespace, resource, target.name)

    def may_show(self, page: ScrapeResult, spec: HpaSpec) -> bool:
        """Return whether a page of a server may be of a pod of an HPA's target."""
        return page.pod is None or any(pod.ref == page.pod for pod in self.pods_of(spec))

    def shown_pods(
        self, page: ScrapeResult, spec: HpaSpec
    ) -> list[tuple[Pod, Sequence[DeviceSeries]]]:
        """Return the pods of an HPA's target that a page names, with what it says of each.

        The page was taken.
        """
        state = self.store.snapshot.states.get(page.origin)
        by_pod = state.outline.pods if state is not None else {}
        return [(pod, by_pod[pod.ref]) for pod in self.pods_of(spec) if pod.ref in by_pod]

    def values(
        self, pods: Iterable[Pod], metric: str, selector: Selector, now: float
    ) -> ReplayedValues:
        """Return a metric of pods as ``serve`` would have served it at that time."""
        milli: dict[str, int] = {}
        absent: dict[str, str] = {}
        pods = list(pods)
        catalog_metric = self.catalog.metrics.get(metric)
        if catalog_metric is None:
            return ReplayedValues({}, {pod.ref.name: UNKNOWN_METRIC for pod in pods})
        question = PodQuestion(catalog_metric, selector, self.store.snapshot, now)
        try:
            about = at_once(self._ratios.about(pods, question))
        except PromiseError as error:
            return ReplayedValues({}, {pod.ref.name: str(error) for pod in pods})
        for pod in pods:
            reading = about(pod)
            if not isinstance(reading, Reading):
                absent[pod.ref.name] = NO_PAGE if reading.reason == NO_EXPORTER else reading.reason
                continue
            try:
                milli[pod.ref.name] = to_milli(reading.value)
            except ValueError:
                absent[pod.ref.name] = UNEXPRESSED
        return ReplayedValues(milli, absent)

    def _begin(self, event: Begun) -> None:
        """Forget the objects: the recorder writes all that it finds after this event."""
        self.settings = settings = restore_settings(event.settings)
        self.pods, self.hpas, self._nodes = PodIndex(), Hpas(), Nodes()
        self._ratios = PromisedRatios(self.pods, self._learn)
        shipped = built_in()
        fields, metrics = rows(settings.metrics, shipped)
        self.catalog = shipped.extended(fields, [*metrics, *self._more])
        self._store = Store(
            self.catalog,
            telemetry_options(settings),
            self.pods,
            self._nodes,
            sharing_options(settings),
        )


def _kind(event: PodSeen | NodeSeen | HpaSeen) -> EventType:
    return EventType.DELETED if event.gone else EventType.MODIFIED
