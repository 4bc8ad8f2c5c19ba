"""The node-pool controller."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from adapter.settings.types import BaseUrl, Interval, Port, Seconds, Section
from apiservice.serving import EVERY_ADDRESS

Count = Annotated[int, Field(ge=0)]


class LimitSettings(Section):
    """What the plan may never exceed, and how it behaves."""

    quantile: Annotated[float, Field(gt=0, lt=1)] = 0.8
    """Share of the past growths of demand over a boot time that headroom covers."""
    boot_seconds: Interval = 300
    """Boot time assumed for a pool until its own has been seen: order to GPU allocatable."""
    hold_seconds: Interval = 600
    """Seconds that headroom stays after it was last needed."""
    decay_seconds: Interval = 300
    """After the hold, headroom halves every so many seconds."""
    stale_seconds: Interval = 300
    """Demand unknown for longer no longer holds its headroom: it decays to 0."""
    min_pods: Count = 0
    """Fewest headroom pods of each shape that an HPA scales, whatever was learned; caps and
    budgets still win. The annotation ``gpu-metrics-adapter.io/headroom`` of an HPA raises it."""
    max_pods: Count = 8
    """Most headroom pods of one shape in one namespace."""
    max_gpus_per_pool: Count = 8
    """Most GPUs of headroom in one pool."""
    gpu_hours_per_day: Annotated[float, Field(gt=0)] | None = None
    """GPU-hours of headroom that each pool may cost in a UTC day; None for no budget."""
    cost_per_day: Annotated[float, Field(gt=0)] | None = None
    """The same in the currency of ``gpu_hour_prices``. A pool without a price gets none."""
    gpu_hour_prices: dict[str, Annotated[float, Field(ge=0)]] = Field(default_factory=dict)
    """Pool to the price of one of its GPUs for an hour; ``*`` stands for all other pools."""

    @model_validator(mode="after")
    def _priced(self) -> LimitSettings:
        if self.cost_per_day is not None and not self.gpu_hour_prices:
            raise ValueError(
                "cost_per_day needs gpu_hour_prices: a pool without a price gets no headroom"
            )
        return self


class PlaceholderSettings(Section):
    """Pods that keep a node's place where no CapacityBuffer is served."""

    priority_class: str = "gpu-metrics-adapter-headroom"
    """PriorityClass of the placeholders, from -10 up and below that of the workloads. The
    chart makes it; it is checked, never written."""
    image: str = "registry.k8s.io/pause:3.10"
    """Image of the placeholders and of the pod templates of buffers."""


class LeaseSettings(Section):
    """Leader election: of several replicas one acts."""

    name: str = "gpu-metrics-adapter-nodepool"
    """Name of the Lease, in the controller's own namespace."""
    duration: Annotated[Interval, Field(ge=3)] = 15
    """Seconds after which others may take a lease that is not renewed."""
    renew: Annotated[Interval, Field(ge=2)] = 10
    """Seconds without a renewal after which the holder stops acting; less than ``duration``."""
    retry: Annotated[Interval, Field(ge=1)] = 2
    """Seconds between attempts to get or to renew it."""

    @model_validator(mode="after")
    def _ordered(self) -> LeaseSettings:
        if not self.retry * 1.2 < self.renew < self.duration:
            raise ValueError(
                "must have retry * 1.2 < renew < duration: a holder has to stop before others start"
            )
        return self


class HistorySettings(Section):
    """Where what was learned of each workload is kept across restarts."""

    interval: Interval = 300
    """Seconds between writes of the ConfigMap."""
    prometheus_url: BaseUrl | None = None
    """Prometheus that scrapes this controller: a workload whose history was lost is read back
    from ``gma_nodepool_wanted_pods`` there. Needs the extra ``prometheus``."""


class NodepoolSettings(Section):
    """The companion controller ``nodepool``: see docs/nodepool.md."""

    apply: bool = False
    """Write to the cluster. False is a dry run: the plan is printed and nothing is written."""
    stop: bool = False
    """The kill switch: all headroom is let go at once and none is ordered. Taken up from the
    file without a restart."""
    namespace: str | None = None
    """Its own namespace, for Lease, ConfigMap and all headroom. None is the pod's; outside a
    cluster ``gpu-metrics``."""
    claim_namespaces: tuple[str, ...] = ()
    """Namespaces whose workloads get headroom with ResourceClaims (DRA). It has to be in the
    namespace of its ResourceClaimTemplates: the account needs the right to write it there."""
    namespaces: tuple[str, ...] = ()
    """Namespaces whose workloads get headroom; empty for all."""
    interval: Annotated[Interval, Field(ge=1, le=300)] = 15
    """Seconds between looks at the metrics; the HPA controller's own is 15. Changes of GPU pods
    are planned for within a second."""
    host: str = EVERY_ADDRESS
    """Address of the listener for ``/metrics``, ``/healthz`` and ``/readyz``; see
    ``server.host``."""
    port: Port = 8081
    """Its TCP port; 0 takes a free one."""
    pool_labels: tuple[str, ...] = ()
    """Node labels that name a node's pool, looked at before the clouds' own."""
    way: Literal["auto", "buffer", "placeholder"] = "auto"
    """How headroom is ordered. ``auto``: CapacityBuffers where a probe shows that a controller
    serves them, placeholder pods elsewhere."""
    probe_wait: Seconds = 30
    """Seconds that the probe buffer may take to be ReadyForProvisioning. Later it still counts:
    the way is then changed."""
    lifeline: Annotated[Interval, Field(ge=10)] = 900
    """Seconds that headroom outlives a controller that does not come back; three intervals at
    least."""
    jobs: bool = True
    """Order headroom for Jobs of GPU pods too."""
    deletion_cost: bool = False
    """Write ``controller.kubernetes.io/pod-deletion-cost`` on GPU pods when a scale-in is near.
    Needs the right to patch pods."""
    provisioning_request_pods: Annotated[int, Field(ge=2)] | None = None
    """Order a step of at least so many pods that a forecast adds for Jobs at once, by a
    ProvisioningRequest, where the cluster-autoscaler serves them. None: never."""
    limits: LimitSettings = LimitSettings()
    placeholder: PlaceholderSettings = PlaceholderSettings()
    lease: LeaseSettings = LeaseSettings()
    history: HistorySettings = HistorySettings()

    @model_validator(mode="after")
    def _prolonged(self) -> NodepoolSettings:
        if self.lifeline < 3 * self.interval:
            raise ValueError(
                "lifeline must be at least three intervals: headroom would end between two looks"
            )
        return self
