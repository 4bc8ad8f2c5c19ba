"""The pods and the HPA of a cluster from the series of kube-state-metrics.

Each scrape of kube-state-metrics shows the state of all objects at its time. Between two scrapes an
object is as at the first of them, except that the creation time of a new pod is known exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from adapter.hpa import HpaSpec
from adapter.pipeline.cluster.hpas import ShownHpa, ShownMetric
from adapter.pipeline.cluster.pod import Owner, Pod, PodFields, PodRef
from adapter.pipeline.cluster.workload import Workload, plural
from adapter.server.recording.events import HpaSeen, PodSeen
from adapter.tools.replay import neededseries as series
from adapter.tools.replay.neededseries import ResourceNames
from adapter.tools.replay.storequeries import StoredSeries
from apiservice.provider import GroupResource
from apiservice.wire.quantity import format_milli

_VERSIONS: Final = {"Job": "batch/v1", "ReplicationController": "v1"}
_APPS: Final = "apps/v1"
_HASHES: Final = {"Deployment": "pod-template-hash", "Rollout": "rollouts-pod-template-hash"}
_SILENT: Final = 300.0
"""Seconds after which a kube-state-metrics that is not scraped any more has been replaced."""


@dataclass(slots=True)
class _PodState:
    """One pod at one scrape."""

    info: Mapping[str, str] = field(default_factory=dict)
    phase: str = ""
    ready: bool = False
    created: float = 0.0
    deleting: bool = False
    gpus: dict[str, int] = field(default_factory=dict)
    containers: set[str] = field(default_factory=set)


_Scrape = tuple[float, str]
"""Time, and the kube-state-metrics that was scraped."""
_Uid = tuple[str, str, str]
"""Namespace, name and UID of a pod."""


class StoredPods:
    """Turns scrapes into events, span after span.

    Args:
        names: of the resources that mean a GPU.
    """

    def __init__(self, names: ResourceNames) -> None:
        self._names = names
        self._known: dict[_Uid, tuple[Pod, str]] = {}
        self._last: dict[str, float] = {}
        self._owners: dict[tuple[str, str], tuple[str, str]] = {}

    def owners(self, all_series: Iterable[StoredSeries]) -> None:
        """Take ``kube_replicaset_owner``."""
        for row in all_series:
            labels = row.labels
            owner = labels.get("owner_kind", ""), labels.get("owner_name", "")
            self._owners[labels.get("namespace", ""), labels.get("replicaset", "")] = owner

    def events(
        self,
        pod_series: Iterable[StoredSeries],
        status: Iterable[StoredSeries],
        since: float,
        breaks: Sequence[float],
    ) -> Iterator[PodSeen]:
        """Yield what the scrapes of a span show, by time.

        Args:
            pod_series: the series of the pods.
            status: those of the HPA, which show a scrape even if there is no pod.
            since: the time of the scrape before; a pod may be older than the span.
            breaks: times before which nothing is known.
        """
        scrapes = self._scrapes(pod_series)
        for row in status:
            for time, _ in row.points:
                scrapes.setdefault((time, row.origin), {})
        before = since
        for time, instance in sorted(scrapes):
            if any(before < moment <= time for moment in breaks):
                self._known, self._last, before = {}, {}, time
            states = scrapes[time, instance]
            for uid, state in states.items():
                if not state.info:
                    continue  # its other series may be scraped by a rule of their own
                yield from self._put(uid, self._pod(uid, state), instance, before, time)
            self._last[instance] = time
            yield from self._forget_gone_pods(states, instance, time)
            before = time

    def _put(
        self, uid: _Uid, pod: Pod, instance: str, before: float, time: float
    ) -> Iterator[PodSeen]:
        earlier = self._known.get(uid)
        self._known[uid] = pod, instance
        if earlier is not None and earlier[0] == pod:
            return
        if earlier is None and before < pod.born <= time:
            # Each pod begins as Pending, so its state at its creation is known.
            yield PodSeen(pod.born, pod.replace(phase="Pending", ready=False, node="", ip=""))
        yield PodSeen(time, pod)

    def _forget_gone_pods(
        self, states: Mapping[_Uid, _PodState], instance: str, time: float
    ) -> Iterator[PodSeen]:
        for uid, (pod, of) in tuple(self._known.items()):
            if uid in states:
                continue
            if of == instance or self._last.get(of, time) < time - _SILENT:
                del self._known[uid]
                yield PodSeen(time, pod, gone=True)

    def _scrapes(self, pod_series: Iterable[StoredSeries]) -> dict[_Scrape, dict[_Uid, _PodState]]:
        scrapes: dict[_Scrape, dict[_Uid, _PodState]] = {}
        for row in pod_series:
            labels = row.labels
            uid = labels.get("namespace", ""), labels.get("pod", ""), labels.get("uid", "")
            for time, value in row.points:
                states = scrapes.setdefault((time, row.origin), {})
                self._note(states.setdefault(uid, _PodState()), row, value)
        return scrapes

    def _note(self, state: _PodState, row: StoredSeries, value: float) -> None:
        match row.name:
            case series.INFO:
                state.info = row.labels
            case series.PHASE:
                if value:
                    state.phase = row.labels.get("phase", "")
            case series.READY:
                if value:
                    state.ready = row.labels.get("condition") == "true"
            case series.CREATED:
                state.created = value
            case series.DELETED:
                state.deleting = True
            case series.REQUESTS:
                resource = self._names.find(row.labels.get("resource", ""))
                if resource is not None and value > 0:
                    state.gpus[resource] = state.gpus.get(resource, 0) + round(value)
                    state.containers.add(row.labels.get("container", ""))

    def _pod(self, uid: _Uid, state: _PodState) -> Pod:
        namespace, name, pod_uid = uid
        kind, owner = _created_by(state.info)
        hashed = {}
        if kind == "ReplicaSet":
            above, workload = self._owners.get((namespace, owner), ("", ""))
            suffix = owner.removeprefix(f"{workload}-")
            if above in _HASHES and suffix != owner:
                hashed = {_HASHES[above]: suffix}
        fields = PodFields(
            ref=PodRef(namespace, name),
            uid=pod_uid,
            node=state.info.get("node", ""),
            ip=state.info.get("pod_ip", ""),
            phase=state.phase,
            ready=state.ready,
            deleting=state.deleting,
            labels=hashed,
            annotations={},
            owner=Owner(_VERSIONS.get(kind, _APPS), kind, owner) if kind else None,
            containers=tuple(sorted(state.containers)),
            gpus=state.gpus,
            claims=False,
            ports=(),
            born=state.created,
        )
        return Pod.of(fields)


def _created_by(info: Mapping[str, str]) -> tuple[str, str]:
    kind = info.get("created_by_kind", "")
    return ("", "") if kind == "<none>" else (kind, info.get("created_by_name", ""))


class StoredStatus:
    """Turns the series of one HPA into events, span after span."""

    def __init__(self, spec: HpaSpec) -> None:
        self._spec = spec
        self._last: float | None = None
        self._shown: ShownHpa | None = None

    @property
    def last(self) -> float | None:
        """The time of the last scrape that shows the HPA."""
        return self._last

    def events(
        self, hpa_series: Iterable[StoredSeries], breaks: Sequence[float]
    ) -> Iterator[HpaSeen]:
        """Yield the changes of the status, by the time since which they may have been written.

        Args:
            hpa_series: the series of the HPA.
            breaks: times before which nothing is known.
        """
        scrapes: dict[float, dict[str, float]] = {}
        for row in hpa_series:
            name = row.labels.get("metric_name", "") if row.name == series.VALUES else row.name
            if row.labels.get("metric_target_type", "average") == "average":
                for time, value in row.points:
                    scrapes.setdefault(time, {})[name] = value
        for time, values in sorted(scrapes.items()):
            if series.DESIRED not in values or series.CURRENT not in values:
                continue
            shown = self._hpa(values)
            if any((self._last or 0.0) < moment <= time for moment in breaks):
                self._last = self._shown = None
            if self._shown is None or self._last is None:
                yield HpaSeen(time, shown)
            elif shown != self._shown:
                yield HpaSeen(self._last, shown, until=time)
            self._last, self._shown = time, shown

    def _hpa(self, values: Mapping[str, float]) -> ShownHpa:
        spec, target = self._spec, self._spec.target
        kind, name, version = (
            (target.kind, target.name, target.api_version) if target else ("",) * 3
        )
        group, _, _ = version.rpartition("/")
        return ShownHpa(
            spec.namespace,
            spec.name,
            Workload(GroupResource(plural(kind), group), name),
            int(values.get(series.LOW, spec.min_replicas)),
            int(values.get(series.HIGH, spec.max_replicas)),
            int(values[series.CURRENT]),
            int(values[series.DESIRED]),
            tuple(
                ShownMetric(metric.kind, metric.name, "", _quantity(values.get(metric.name)))
                for metric in spec.metrics
            ),
            (),
        )


def _quantity(value: float | None) -> str:
    return "" if value is None else format_milli(round(value * 1000))
