"""Settings: the companion controller ``nodepool``."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from adapter.config.settings.types import ADVANCED, BaseUrl, Interval, Port, Seconds, Section
from apiservice.http.options import EVERY_ADDRESS

Count = Annotated[int, Field(ge=0)]


class LimitSettings(Section):
    """Bounds and times of the plan."""

    quantile: Annotated[Annotated[float, Field(gt=0, lt=1)] | None, ADVANCED] = None
    """Probability that pods and headroom suffice within one boot time. If not set, 0.8, or what
    follows from ``waiting_minute_price``."""
    waiting_minute_price: Annotated[float, Field(gt=0)] | None = None
    """Price of a minute in which a pod waits for a node, in the currency of ``gpu_hour_prices``,
    instead of ``quantile``: headroom grows while it costs less than the waiting."""
    share: Annotated[Annotated[float, Field(ge=0, le=10)], ADVANCED] = 0.2
    """Headroom as a share of a workload's pods at a probability of 0.8, until five forecasts have
    been checked, and while they would have cost more in the last 6 hours. If 0, the forecast
    applies from the third known minute on."""
    boot_seconds: Annotated[Interval, ADVANCED] = 300
    """Boot time of a node pool, from the order to allocatable GPUs, until it is measured."""
    hold_seconds: Annotated[Interval, ADVANCED] = 120
    """Seconds that headroom stays after it was last needed."""
    decay_seconds: Annotated[Interval, ADVANCED] = 120
    """Seconds in which headroom halves after ``hold_seconds``."""
    stale_seconds: Annotated[Interval, ADVANCED] = 300
    """Seconds after which headroom for unknown demand decays to 0."""
    min_pods: Count = 0
    """Fewest headroom pods for each pod shape that an HPA scales, within the other limits. The
    annotation ``gpu-metrics-adapter.io/headroom`` of an HPA raises it."""
    max_pods: Count = 8
    """Most headroom pods of one shape in one namespace."""
    max_gpus_per_pool: Count = 8
    """Most GPUs of headroom in one node pool."""
    gpu_hours_per_day: Annotated[float, Field(gt=0)] | None = None
    """GPU-hours of headroom that each node pool may use in a UTC day."""
    cost_per_day: Annotated[float, Field(gt=0)] | None = None
    """Cost of headroom that each node pool may cause in a UTC day. A node pool without a price
    (``gpu_hour_prices``) then gets none."""
    gpu_hour_prices: dict[str, Annotated[float, Field(ge=0)]] = Field(default_factory=dict)
    """Price of one GPU for one hour, by node pool. ``*`` sets the price for all other node
    pools."""

    @model_validator(mode="after")
    def _check_prices(self) -> LimitSettings:
        if self.cost_per_day is not None and not self.gpu_hour_prices:
            raise ValueError(
                "cost_per_day needs gpu_hour_prices: a pool without a price gets no headroom"
            )
        if self.waiting_minute_price is not None:
            if self.quantile is not None:
                raise ValueError(
                    "waiting_minute_price and quantile exclude each other: remove one of them"
                )
            if "*" not in self.gpu_hour_prices:
                raise ValueError(
                    'waiting_minute_price needs a price in gpu_hour_prices for every pool: add "*"'
                )
        return self


class PlaceholderSettings(Section):
    """Placeholder pods, which hold headroom in clusters without CapacityBuffers."""

    priority_class: Annotated[str, ADVANCED] = "gpu-metrics-adapter-headroom"
    """PriorityClass of placeholder pods: at least -10, and lower than the workloads'. The chart
    creates it."""
    image: str = "registry.k8s.io/pause:3.10"
    """Image of the placeholder pods and of the pod templates of CapacityBuffers."""


class LeaseSettings(Section):
    """Leader election."""

    name: Annotated[str, ADVANCED] = "gpu-metrics-adapter-nodepool"
    """Name of the Lease, in the controller's namespace."""
    duration: Annotated[Interval, Field(ge=3), ADVANCED] = 15
    """Seconds after which another replica may take a lease that its holder has not renewed."""
    renew: Annotated[Interval, Field(ge=2), ADVANCED] = 10
    """Seconds without a renewal after which the holder stops acting. Less than ``duration``."""
    retry: Annotated[Interval, Field(ge=1), ADVANCED] = 2
    """Seconds between two attempts to take or to renew the lease."""

    @model_validator(mode="after")
    def _check_order(self) -> LeaseSettings:
        if not self.retry * 1.2 < self.renew < self.duration:
            raise ValueError(
                "must have retry * 1.2 < renew < duration: a holder must stop before others start"
            )
        return self


class HistorySettings(Section):
    """The history of each workload's demand, kept across restarts."""

    interval: Annotated[Interval, ADVANCED] = 300
    """Seconds between two writes of the ConfigMap."""
    prometheus_url: BaseUrl | None = None
    """Prometheus that scrapes this controller, from which a lost history is read
    (``gma_nodepool_wanted_pods``). If it is that of ``source.prometheus``, its login, CA and
    headers are used."""


class NodepoolSettings(Section):
    """The companion controller ``nodepool``: see docs/nodepool.md."""

    apply: bool = False
    """Write to the cluster. If false, the controller only prints its plan (dry run)."""
    stop: bool = False
    """Remove all headroom immediately and order none."""
    namespace: Annotated[str | None, ADVANCED] = None
    """Namespace of the Lease, the ConfigMap and headroom. If not set, that of the pod, or
    ``gpu-metrics``."""
    claim_namespaces: tuple[str, ...] = ()
    """Namespaces whose workloads get headroom with ResourceClaims (DRA), where the controller's
    account needs the right to write."""
    namespaces: tuple[str, ...] = ()
    """Namespaces whose workloads get headroom. If empty, every namespace."""
    interval: Annotated[Interval, Field(ge=1, le=300), ADVANCED] = 15
    """Seconds between two reads of the metrics. A change of GPU pods is planned for within a
    second."""
    host: Annotated[str, ADVANCED] = EVERY_ADDRESS
    """Address of the listener for ``/metrics``, ``/healthz`` and ``/readyz``. See
    ``server.host``."""
    port: Annotated[Port, ADVANCED] = 8081
    """TCP port of that listener. With 0, the system chooses a free port."""
    pool_labels: tuple[str, ...] = ()
    """Node labels that name the node pool of a node, before those of the cloud providers."""
    provisioning_method: Literal["auto", "buffer", "placeholder"] = "auto"
    """``auto`` uses CapacityBuffers if a probe shows that they are served, and placeholder pods
    otherwise."""
    probe_wait: Annotated[Seconds, ADVANCED] = 30
    """Seconds in which the probe buffer should become ReadyForProvisioning. If it does so later,
    the provisioning method changes then."""
    lifeline: Annotated[Interval, Field(ge=10), ADVANCED] = 900
    """Seconds after which headroom ends when its controller is gone. At least three times
    ``interval``."""
    jobs: bool = True
    """Also order headroom for Jobs with GPU pods."""
    deletion_cost: bool = False
    """Write ``controller.kubernetes.io/pod-deletion-cost`` to GPU pods before a scale-in. Needs
    the right to patch pods."""
    limits: LimitSettings = LimitSettings()
    placeholder: PlaceholderSettings = PlaceholderSettings()
    lease: LeaseSettings = LeaseSettings()
    history: HistorySettings = HistorySettings()

    @model_validator(mode="after")
    def _check_lifeline(self) -> NodepoolSettings:
        if self.lifeline < 3 * self.interval:
            raise ValueError(
                "lifeline must be at least three intervals: headroom would end between two rounds"
            )
        return self
