"""The resource ``gpuworkloads``: what owns the pods with GPUs, and what scales it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from adapter.answers.view import workloadobject
from adapter.answers.view.fragments import Json
from adapter.answers.view.groups import WorkloadGroup, WorkloadGroups
from adapter.answers.view.hpaparts import judge_hpa, leading_hpa, target
from adapter.answers.view.owner import scalable_workloads
from adapter.answers.view.snapshots import CurrentValues, check
from adapter.answers.view.workloadobject import Summary, summary
from adapter.figures import age, percent
from adapter.pipeline.cluster.hpas import Hpas, ScalingHpas, ShownHpa
from adapter.pipeline.cluster.index import PodIndex
from apiservice.runtime.bytecache import ByteCache
from apiservice.runtime.steps import Steps, at_once, parts
from apiservice.view.resource import Column, Key, RawCell, ViewResource

_STEP: Final = 256
"""Names that one step of a list processes."""
_KEPT_BYTES: Final = 16 << 20
"""Bytes of the summaries that are kept between ``prepare`` and the objects: several pages of
several requests."""
_SUMMARY, _POD = 2048, 192
"""Bytes of a summary, and of each pod in it, about."""

GPUWORKLOADS: Final = ViewResource(
    plural="gpuworkloads",
    singular="gpuworkload",
    kind="GpuWorkload",
    short_names=("gwl",),
    namespaced=True,
    columns=(
        Column("Pods", "Pods that hold a GPU or are inference servers.", "integer"),
        Column("Measured", "Pods that have a value.", "integer"),
        Column(
            "Util",
            "Mean utilization of the pods: gpu_utilization, in percent.",
            numbers=("Util-Percent",),
            write=percent,
        ),
        Column("Max", "Highest utilization of a pod.", numbers=("Max-Percent",), write=percent),
        Column("HPA", "HorizontalPodAutoscaler that scales the workload."),
        Column("Target", "A metric of the HPA, with its value and target in the HPA's status."),
        Column(
            "Wants", "Replicas that the HPA last wanted.", numbers=("Wants-Replicas",), write=str
        ),
        Column("State", "State of the HPA, such as healthy, overloaded or stuck."),
        Column(
            "Idle",
            "Time for which all of the pods have been idle.",
            numbers=("Idle-Seconds",),
            write=age,
        ),
        Column("GPUs", "Devices with a value.", "integer", wide=True),
        Column("Replicas", "Current replicas, and the HPA's range.", wide=True),
        Column("Why-Not", "Codes of the reasons why pods have no value.", wide=True),
        Column("Ready", "Pods that are ready.", "integer", wide=True),
        Column("Unready", "Pods that are not ready.", "integer", wide=True),
        Column("Exist", "Pods, if all of them are known and none ends.", "integer", wide=True),
        Column("Unscheduled", "Pods without a node.", "integer", wide=True),
        Column("Unready-Seconds", "Time for which a pod has not been ready.", "integer", wide=True),
        Column("Trouble", "Why a container of a pod does not run: CrashLoopBackOff.", wide=True),
        Column("Foreign", "Another workload whose pods have the same labels.", wide=True),
        Column("Unmeasured", "Ready pods without a value that an HPA reads.", "integer", wide=True),
    ),
    schema=workloadobject.SCHEMA,
    fields=("kind",),
    categories=("gpu-metrics",),
)


class GpuWorkloads:
    """Implements :class:`apiservice.view.resource.ViewProvider`.

    Args:
        values: the current values.
        pods: the known pods.
        hpas: the known HPAs.
    """

    def __init__(self, values: CurrentValues, pods: PodIndex, hpas: Hpas) -> None:
        self._values = values
        self._pods = pods
        self._hpas = hpas
        self._groups = WorkloadGroups(pods)
        self._summaries: ByteCache[tuple[Key, float], Summary] = ByteCache(
            _KEPT_BYTES, first_in=True
        )

    def keys(self, namespace: str | None) -> Steps[Sequence[Key]]:
        """See the port."""
        check(self._pods)
        namespaces = self._pods.namespaces() if namespace is None else (namespace,)
        yield from self.refresh(namespaces)
        keys: list[Key] = []
        for name in namespaces:
            for some in parts(tuple(self._groups.of(name)), _STEP):
                keys += [Key(name, workload) for workload in some]
                yield
        return keys

    def prepare(self, keys: Sequence[Key], now: float) -> Steps[None]:
        """See the port."""
        check(self._pods)
        yield from self.refresh(sorted({key.namespace for key in keys}))
        for key in keys:
            group = self._group(key)
            if group is not None:
                summed = yield from self._compute_summary(key, group, now)
                self._summaries.put((key, now), summed, _SUMMARY + _POD * len(group.pods))

    def visit_workloads(self, now: float, take: Callable[[Key, Summary], None]) -> Steps[None]:
        """Call ``take`` with each workload and the values of its pods, in steps."""
        for key in (yield from self.keys(None)):
            group = self._group(key)
            if group is not None:
                take(key, (yield from self._compute_summary(key, group, now)))

    def labels(self, key: Key) -> Mapping[str, str]:
        """See the port."""
        group = self._group(key)
        return group.labels if group is not None else {}

    def fields(self, key: Key) -> Mapping[str, str]:
        """See the port."""
        group = self._group(key)
        return {"kind": group.above.kind} if group is not None else {}

    def cells(self, key: Key, now: float) -> Sequence[RawCell] | None:
        """See the port."""
        group = self._group(key)
        if group is None:
            return None
        summed = self._summary(key, group, now)
        hpas, metrics = summed.hpas, self._values.snapshot.catalog.metrics
        more = f" +{hpas.total - 1}" if hpas.total > 1 else ""
        hpa, pods = leading_hpa(hpas, metrics), summed.target
        return (
            summed.pods,
            summed.measured,
            summed.mean,
            summed.most,
            None if hpa is None else f"{hpa.name}{more}",
            None if hpa is None else target(hpa, metrics) or None,
            None if hpa is None else hpa.wants,
            None if hpa is None else judge_hpa(hpa, pods, metrics, now).state.value,
            None if summed.idle_since is None else int(now - summed.idle_since),
            len(summed.devices),
            None if hpa is None else _replicas(hpa),
            pods.reasons or None,
            pods.ready,
            pods.unready,
            pods.exist,
            pods.unscheduled,
            None if pods.waiting_since is None else round(now - pods.waiting_since),
            pods.trouble or None,
            pods.foreign or None,
            pods.without_value,
        )

    def object(self, key: Key, now: float) -> Json | None:
        """See the port."""
        group = self._group(key)
        if group is None:
            return None
        summed = self._summary(key, group, now)
        metadata = {"namespace": key.namespace, "name": key.name, "labels": dict(group.labels)}
        body = workloadobject.fields(group, summed, self._values.snapshot, now)
        return {"metadata": metadata, **body}

    def refresh(self, namespaces: Sequence[str]) -> Steps[None]:
        """Group the pods of namespaces, in steps, without reading their values."""
        serving = yield from self._values.snapshot.on_pages()
        yield from self._groups.refresh(namespaces, serving)

    def _group(self, key: Key) -> WorkloadGroup | None:
        return self._groups.of(key.namespace).get(key.name)

    def _summary(self, key: Key, group: WorkloadGroup, now: float) -> Summary:
        summed = self._summaries.get((key, now))
        return at_once(self._compute_summary(key, group, now)) if summed is None else summed

    def _compute_summary(self, key: Key, group: WorkloadGroup, now: float) -> Steps[Summary]:
        hpas = self._scaling_hpas(group)
        summed = yield from summary(group, self._values.snapshot, hpas, now)
        if hpas.total:
            above = "" if group.above.kind == "ReplicaSet" else key.name
            foreign = self._groups.twin(key.namespace, key.name)
            summed.target = summed.target._replace(foreign=foreign, above=above)
        return summed

    def _scaling_hpas(self, group: WorkloadGroup) -> ScalingHpas:
        """Return the HPAs that scale the workload, or one between it and its pods."""
        first = group.pods[0]
        return self._hpas.of(first.ref.namespace, scalable_workloads(first))


def _replicas(hpa: ShownHpa) -> str:
    current = "?" if hpa.current is None else str(hpa.current)
    return f"{current} ({hpa.low}..{hpa.high})"
