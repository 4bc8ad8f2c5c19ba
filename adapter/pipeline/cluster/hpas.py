"""The cluster's HorizontalPodAutoscalers, reduced to what is shown, by the workload they scale."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from heapq import nsmallest
from typing import Any, Final, NamedTuple

from adapter.pipeline.cluster.table import Table
from adapter.pipeline.cluster.workload import Workload
from apiservice.kube.reflector import EventType

SHOWN: Final = 16
"""HPAs of one workload that are returned. More than one is a mistake, and a namespace may have
thousands."""
_RESOURCES: Final = ("Resource", "ContainerResource")
"""Types of metrics that metrics.k8s.io serves."""
TOLERANCES: Final = (0.1, 0.1)
"""Of a controller with its default ``--horizontal-pod-autoscaler-tolerance``."""


class ShownMetric(NamedTuple):
    """One metric that an HPA reads."""

    type: str
    """``Pods``, ``Object``, ``External``, ``Resource`` or ``ContainerResource``."""
    name: str
    target: str
    """A quantity, or a percentage such as ``60%``; empty if the manifest has none."""
    current: str
    """As in the HPA's status; empty if the controller has no value."""
    target_type: str = ""
    """``Value``, ``AverageValue`` or ``Utilization``; empty if the manifest has none, or its
    selector is too long to be kept."""
    selector: Mapping[str, Any] | None = None
    """Of the series, as the manifest has it; None without one."""
    described: tuple[str, str] = ("", "")
    """Kind and name of the object that an Object metric describes."""

    @property
    def custom(self) -> bool:
        """Whether the custom or external metrics API serves it."""
        return self.type not in _RESOURCES


class ShownCondition(NamedTuple):
    """A condition of an HPA's status."""

    type: str
    status: str
    reason: str
    message: str
    since: float | None = None
    """Epoch seconds of its last transition; None if not known."""


class ShownHpa(NamedTuple):
    """A HorizontalPodAutoscaler."""

    namespace: str
    name: str
    scales: Workload
    low: int
    high: int
    current: int | None
    """Replicas as of its status; None if it has no status yet."""
    desired: int | None
    metrics: tuple[ShownMetric, ...]
    conditions: tuple[ShownCondition, ...]
    kind: str = ""
    """Kind of the scale target, as its manifest writes it: ``Deployment``."""
    created: float | None = None
    """Epoch seconds; None if not known."""
    last_scale: float | None = None
    """Epoch seconds at which the controller last changed the size; None if it never has."""
    unseen_since: float | None = None
    """Epoch seconds since when the controller has not looked at a change of the spec; None if it
    has, or if the API server does not count generations of HPAs (before Kubernetes 1.37)."""
    scaled_object: str = ""
    """The ScaledObject of KEDA that owns the HPA; empty without one."""
    tolerances: tuple[float, float] = TOLERANCES
    """How far value / target may be below 1, and above 1, without a change."""
    never_out: bool = False
    """``behavior.scaleUp.selectPolicy`` is Disabled."""
    never_in: bool = False
    """``behavior.scaleDown.selectPolicy`` is Disabled."""

    @property
    def key(self) -> tuple[str, str]:
        """(namespace, name)."""
        return (self.namespace, self.name)

    @property
    def wants(self) -> int | None:
        """The replicas that the controller last computed; None while it can compute none.

        The status has ``desiredReplicas: 0`` before the controller has computed any. It corrects a
        size out of bounds without ScalingActive.
        """
        states = {row.type: row.status for row in self.conditions}
        active = states.get("ScalingActive", states.get("AbleToScale", ""))
        return self.desired if active == "True" else None


class ScalingHpas(NamedTuple):
    """The HPAs that scale a workload."""

    first: Sequence[ShownHpa]
    """By name, at most 16."""
    total: int
    """All of them."""

    @property
    def more(self) -> int:
        """Those that are not in ``first``."""
        return self.total - len(self.first)


class _OfWorkload:
    """The HPAs that name one workload. The first by name are found once per change."""

    __slots__ = ("_first", "by_name")

    def __init__(self) -> None:
        self.by_name: dict[str, ShownHpa] = {}
        self._first: tuple[ShownHpa, ...] | None = None

    def put(self, item: ShownHpa) -> None:
        self.by_name[item.name] = item
        self._first = None

    def drop(self, name: str) -> None:
        self.by_name.pop(name, None)
        self._first = None

    def first(self) -> tuple[ShownHpa, ...]:
        if self._first is None:
            self._first = tuple(self.by_name[name] for name in nsmallest(SHOWN, self.by_name))
        return self._first


class Hpas(Table[tuple[str, str], ShownHpa]):
    """The cluster's HPAs, indexed by what they scale."""

    def __init__(self) -> None:
        super().__init__()
        self._scaling: dict[tuple[str, Workload], _OfWorkload] = {}

    def of(self, namespace: str, workloads: Iterable[Workload]) -> ScalingHpas:
        """Return the HPAs that scale one of these workloads."""
        wanted = ((namespace, workload) for workload in dict.fromkeys(workloads))
        scaling = [hpas for key in wanted if (hpas := self._scaling.get(key)) is not None]
        first = sorted((hpa for hpas in scaling for hpa in hpas.first()), key=lambda hpa: hpa.name)
        return ScalingHpas(first[:SHOWN], sum(len(hpas.by_name) for hpas in scaling))

    def apply(self, event: EventType, item: ShownHpa) -> None:
        """Take one added, modified or deleted HPA."""
        old = self.find(item.key)
        super().apply(event, item)
        if old is not None:
            self._drop(old)
        if event is not EventType.DELETED:
            self._add(item)

    def _add(self, item: ShownHpa) -> None:
        key = item.namespace, item.scales
        if key not in self._scaling:
            self._scaling[key] = _OfWorkload()
        self._scaling[key].put(item)

    def _drop(self, item: ShownHpa) -> None:
        key = item.namespace, item.scales
        if (hpas := self._scaling.get(key)) is None:
            return
        hpas.drop(item.name)
        if not hpas.by_name:
            del self._scaling[key]
