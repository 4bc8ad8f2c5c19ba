"""What is known about a cluster. A fact that was not read says why."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final, Generic, NamedTuple, TypeVar

from adapter.answers.causes import Cause
from adapter.answers.keda.manifest import SeenScaledObject
from adapter.answers.keda.trouble import SeenScaler
from adapter.config.settings import Settings
from adapter.hpa.spec import MetricKind, TargetKind, compared_kind, source_key
from adapter.pipeline.cluster.evictions import SeenBudget
from adapter.pipeline.cluster.gpuresources import GpuResources
from adapter.pipeline.cluster.objects import (
    ApiService,
    ClusterPolicy,
    Lease,
    ResourceQuota,
    ResourceSlice,
    SeenCondition,
    SeenEvent,
    SeenNode,
    SeenNodeClaim,
    SeenPriorityClass,
    SeenVolumeClaim,
)
from adapter.pipeline.cluster.podobjects import SeenPod
from adapter.pipeline.cluster.workloadobjects import SeenWorkload
from adapter.tools.doctor.claims import SeenClaim
from adapter.tools.doctor.daemonsets import SeenDaemonSet
from adapter.tools.doctor.page import ExporterPage
from adapter.tools.doctor.release import Release
from adapter.tools.doctor.rulesfile import SeenRules
from adapter.tools.doctor.valuelesspods import WithoutValue

T = TypeVar("T")


class UnreadError(Exception):
    """A check needs a fact that was not read. The text says why, on one line."""

    def __init__(
        self,
        message: str,
        command: str = "",
        *,
        expected: bool = False,
        inside: bool = False,
        status: int = 0,
    ) -> None:
        super().__init__(message)
        self.status = status
        """HTTP status of the failed request; 0 without one."""
        self.command = command
        """The command that grants the right, or another next step."""
        self.expected = expected
        """This kind of run never reads the fact: the check does not apply."""
        self.inside = inside
        """Only a run in the cluster reads the fact; the command starts one."""


@dataclass(frozen=True, slots=True)
class Fact(Generic[T]):
    """A value, or why it was not read."""

    value: T | None = None
    unread: UnreadError | None = None

    def read(self) -> T:
        """Return the value; raises UnreadError."""
        if self.unread is not None:
            raise self.unread
        return self.value  # type: ignore[return-value]  # unread says whether it is there

    @property
    def known(self) -> bool:
        """Whether the value was read."""
        return self.unread is None


_OFF: Final[Fact[Any]] = Fact(unread=UnreadError("only a cluster can answer this", expected=True))
"""A fact that a run on manifests never reads."""


_DEFAULTS: Final = Settings()


class HpaMetric(NamedTuple):
    """One of an HPA's metrics, as its manifest has it."""

    at: str
    """The path of the row: ``spec.metrics[0]``."""
    type: str
    """Pods, Object, External, Resource or ContainerResource."""
    name: str
    target_type: str
    value: Decimal | None
    """``value`` of the target."""
    average: Decimal | None
    """``averageValue`` of the target."""
    selector: Mapping[str, Any] | None = None
    described: tuple[str, str] = ("", "")
    """Kind and name of the object of an Object metric."""
    percent: Decimal | None = None
    """``averageUtilization`` of the target, or the number of ``odd``."""
    odd: str = ""
    """A number of the target that is not a quantity, such as ``80%``; empty without one."""
    has_value: bool = False
    """Whether the HPA's status has a value of it."""

    @property
    def key(self) -> str:
        """The field that holds the metric's source."""
        return source_key(self.type)

    @property
    def selector_path(self) -> str:
        """The path of the metric's selector."""
        return f"{self.at}.{self.key}.metric.selector"

    @property
    def compared(self) -> TargetKind:
        """The kind of target that the controller compares it with; Value if none is valid."""
        try:
            averaged = self.average is not None
            return compared_kind(MetricKind(self.type), self.target_type, averaged=averaged)
        except ValueError:
            return TargetKind.VALUE

    @property
    def target(self) -> Decimal | None:
        """The number of the target: of the field that the controller reads, else of another."""
        of_value = self.compared is TargetKind.VALUE
        first, second = (self.value, self.average) if of_value else (self.average, self.value)
        return first if first is not None else second


class Hpa(NamedTuple):
    """An HPA."""

    namespace: str
    name: str
    kind: str
    """Of the scale target."""
    target: str
    low: int | None
    """``minReplicas``, or its default; None if it is not a number."""
    high: int | None
    """``maxReplicas``; None if a manifest has none, or it is not a number."""
    metrics: tuple[HpaMetric, ...]
    behavior: Mapping[str, Any]
    conditions: tuple[SeenCondition, ...]
    current: int | None
    desired: int | None
    owner: str
    """The ScaledObject that made the HPA; empty without one."""
    manifest: Mapping[str, Any]
    origin: str = ""
    """The file it was read from; empty for a cluster's."""
    version: str = ""
    """``apiVersion`` of the scale target."""

    @property
    def subject(self) -> str:
        """How a finding names it."""
        where = f" in {self.origin}" if self.origin else ""
        return f"hpa {self.namespace}/{self.name}{where}"


class SelfPage(NamedTuple):
    """The adapter's own metrics: (name, sorted labels) -> value."""

    pod: str
    samples: Mapping[tuple[str, tuple[tuple[str, str], ...]], float]

    def sum(self, name: str) -> float | None:
        """Return the sum over all series of a name, or None without any."""
        values = [value for (series, _), value in self.samples.items() if series == name]
        return sum(values) if values else None

    def by_labels(self, name: str, *labels: str) -> dict[tuple[str, ...], float]:
        """Return the values of a name by some labels."""
        return {
            tuple(dict(pairs).get(label, "") for label in labels): value
            for (series, pairs), value in self.samples.items()
            if series == name
        }

    def by_label(self, name: str, label: str) -> dict[str, float]:
        """Return the values of a name by a label."""
        return {
            dict(labels).get(label, ""): value
            for (series, labels), value in self.samples.items()
            if series == name
        }


class StoreAnswer(NamedTuple):
    """What the Prometheus of the settings answers about the exporters' series."""

    url: str
    problem: str
    """Why it cannot be used; empty if it answers."""
    series: Sequence[Mapping[str, str]] = ()
    """The labels of one series per device, of the series that make ``gpu_utilization``."""
    names: frozenset[str] = frozenset()
    """The names of the catalogue that it has."""
    intervals: Mapping[str, float] = {}
    """Instance -> seconds between two samples."""


class Review(NamedTuple):
    """A right that somebody needs, and whether they have it."""

    user: str
    verb: str
    resource: str
    """With its group, as kubectl writes it."""
    allowed: bool
    command: str
    """A command that grants it."""


class Clocks(NamedTuple):
    """Clocks, relative to the API server's."""

    here: float
    """Seconds that this machine is ahead."""
    server: float
    """Epoch seconds by the API server."""


@dataclass(repr=False)  # asyncio.run writes the text of its result, here of the whole cluster
class Facts:
    """Everything that the checks may look at."""

    offline: bool = True
    """Only manifests were read: an object that is missing may exist in the cluster."""
    now: float = 0.0
    version: Fact[tuple[int, int]] = _OFF
    groups: Fact[Mapping[str, frozenset[str]]] = _OFF
    """API group -> the versions that the API server serves."""
    clocks: Fact[Clocks] = _OFF
    apiservices: Fact[Sequence[ApiService]] = _OFF
    authentication: Fact[Mapping[str, str]] = _OFF
    """Data of ConfigMap extension-apiserver-authentication; empty if it does not exist."""
    hpa_rights: Fact[Sequence[Review]] = _OFF
    own_rights: Fact[Sequence[Review]] = _OFF
    delegate_rights: Fact[Sequence[Review]] = _OFF
    """Rights without which delegates cannot be asked."""
    rules: Fact[SeenRules | None] = _OFF
    """The rules file; None if the settings name none."""
    nodes: Fact[Sequence[SeenNode]] = _OFF
    leases: Fact[Sequence[Lease]] = _OFF
    pods: Fact[Sequence[SeenPod]] = _OFF
    workloads: Fact[Sequence[SeenWorkload]] = _OFF
    replicasets: Fact[Sequence[SeenWorkload]] = _OFF
    """Those that should have pods, or have some."""
    events: Fact[Sequence[SeenEvent]] = _OFF
    """Warnings, the HPAs' ``SuccessfulRescale``, and what node autoscalers say of pods."""
    node_events: Fact[Sequence[SeenEvent]] = _OFF
    """Warnings about objects without a namespace, and why Karpenter cannot remove a node."""
    node_claims: Fact[Sequence[SeenNodeClaim]] = _OFF
    """Of Karpenter; none if the cluster has none."""
    budgets: Fact[Sequence[SeenBudget]] = _OFF
    """The PodDisruptionBudgets."""
    slices: Fact[Sequence[ResourceSlice]] = _OFF
    """Of ``resource.k8s.io/v1``; none if the cluster has no such API."""
    controller_seen: Fact[float | None] = _OFF
    """Epoch seconds at which kube-controller-manager renewed its lease; None without a lease."""
    hpas: Fact[Sequence[Hpa]] = _OFF
    scaledobjects: Fact[Sequence[SeenScaledObject]] = _OFF
    scalers: Fact[Mapping[str, SeenScaler]] = _OFF
    """Address of a trigger -> its Service, as far as it could be read."""
    volume_claims: Fact[Sequence[SeenVolumeClaim]] = _OFF
    priorityclasses: Fact[Sequence[SeenPriorityClass]] = _OFF
    daemonsets: Fact[Sequence[SeenDaemonSet]] = _OFF
    policies: Fact[Sequence[ClusterPolicy]] = _OFF
    """Of the NVIDIA GPU Operator; none if the cluster has none."""
    quotas: Fact[Sequence[ResourceQuota]] = _OFF
    autoscaler: Fact[str] = _OFF
    """The node autoscaler that was found; empty without one."""
    release: Fact[Release | None] = _OFF
    nodepool: Fact[Release | None] = _OFF
    pages: Fact[Mapping[str, ExporterPage]] = _OFF
    """Exporter's pod -> its page."""
    server_pages: Fact[Mapping[str, ExporterPage]] = _OFF
    self_pages: Fact[Sequence[SelfPage]] = _OFF
    store: Fact[StoreAnswer] = _OFF
    measured: Fact[Mapping[str, frozenset[str]]] = _OFF
    """Namespace with GPU pods -> the pods that have a value of ``gpu_utilization``."""
    claims: Fact[Sequence[SeenClaim]] = _OFF
    """The ResourceClaims of ``resource.k8s.io/v1``; none if the cluster has no such API."""
    without_value: Fact[Sequence[WithoutValue]] = _OFF
    """Pods that the adapter knows and that have no value, each with the reason."""

    found_causes: list[tuple[Hpa, Cause]] | None = None
    """The causes of HPAs, once a check has computed them
    (:mod:`adapter.tools.doctor.hpacauses`)."""

    computed: dict[object, tuple[tuple[Fact[Any], ...], Any]] = field(default_factory=dict)
    """See :meth:`once`."""

    def once(self, compute: Callable[[Facts], T], *of: Fact[Any]) -> T:
        """Return what a function returns for these facts, computed once for all checks.

        Args:
            of: the facts that it depends on.
        """
        entry = self.computed.get(compute)
        if entry is None or any(old is not new for old, new in zip(entry[0], of, strict=True)):
            entry = self.computed[compute] = (of, compute(self))
        value: T = entry[1]
        return value

    @property
    def settings(self) -> Settings:
        """The adapter's settings; the defaults before it is installed."""
        release = self.release.value if self.release.known else None
        return release.settings if release and release.settings else _DEFAULTS

    @property
    def gpu_resources(self) -> GpuResources:
        """The resources that stand for a GPU by the adapter's settings."""
        return GpuResources(self.settings.cluster.gpu_resources)

    def require_cluster(self) -> None:
        """Raise UnreadError unless a cluster was read."""
        if self.offline:
            _OFF.read()

    @property
    def gpu_pods(self) -> list[SeenPod]:
        """Pods that hold a GPU and have not finished; raises UnreadError.

        Their spec requests one, or a page names them for a device and their spec does not
        contradict it.
        """
        pages = (self.pages.value or {}).values() if self.pages.known else ()
        named_pods = frozenset[str]().union(*(page.named for page in pages))
        return [
            pod
            for pod in self.pods.read()
            if pod.pod.holds_gpu or (pod.pod.may_hold_gpu and pod.key in named_pods)
            if not pod.pod.finished
        ]
