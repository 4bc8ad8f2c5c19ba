"""The demo's scenario: fifteen minutes that show every important behaviour once.

A chat service on whole GPUs gets a burst that exceeds its node, calms down and gets a smaller one.
It runs on five clusters at once. On the first the ``nodepool`` controller orders nodes ahead. On
the second they come when pods wait for them. The others differ from the first in their HPA: instead
of GPU utilization it reads the queue of the servers, this queue and what is expected of it, or how
near the servers are to breaking a promise. An
embedding service on MIG slices is busy, then idle *while the exporter of its node is dead*: its
values expire, and the HPA must not scale in because of that. Beside them, another team holds two
MIG instances that do nothing, and its HPA has no value, because the exporter of its second node
names no pods.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from adapter.demo.hardware import DemoPool
from adapter.demo.load import Profile
from adapter.demo.world import DemoWorkload
from adapter.nodepool.plan.limits import Limits
from adapter.pipeline.catalog.expectedmetrics import SUFFIX
from adapter.pipeline.catalog.promise import SLO_RATIO

LENGTH = 900.0
"""Seconds of the simulation, after which the load profiles repeat."""
NAMESPACE = "inference"
BEGIN = 1_767_603_540.0
"""Epoch seconds of the story's 0: 08:59 UTC, so that its first burst begins at nine."""
BEFORE = 900.0
"""Seconds played silently before the first picture, which then shows a running fleet. The
history keeps quarters of an hour, and predicts from the previous one."""
EARLIER_DAYS = 3
"""Days simulated before, for the history."""
LIMITS = Limits()
"""nodepool's settings: the defaults."""

POOLS = (
    DemoPool(
        name="h100",
        resource="nvidia.com/gpu",
        model="NVIDIA H100 80GB HBM3",
        gpus=4,
        memory_mib=81559,
        first=1,
        most=3,
    ),
    DemoPool(
        name="mig",
        resource="nvidia.com/mig-1g.10gb",
        model="NVIDIA A100-SXM4-80GB",
        gpus=1,
        memory_mib=9728,
        mig_profile="1g.10gb",
        instances=7,
    ),
)

WORKLOADS = (
    DemoWorkload(
        name="chat",
        resource="nvidia.com/gpu",
        profile=Profile.of(
            *((0, 1.6), (60, 1.6), (180, 8.6), (390, 8.6), (420, 1.6)),
            *((690, 1.6), (710, 5.0), (860, 5.0), (LENGTH, 1.6)),
        ),
        mean_work=0.8,
        promised=2.5,
        start_seconds=25,
        memory_share=0.86,
        replicas=2,
    ),
    DemoWorkload(
        name="embed",
        resource="nvidia.com/mig-1g.10gb",
        profile=Profile.of((0, 4.0), (30, 9.5), (430, 9.5), (450, 2.5), (780, 2.5), (LENGTH, 4.0)),
        mean_work=0.3,
        start_seconds=10,
        memory_share=0.42,
        replicas=2,
    ),
)


@dataclass(frozen=True, slots=True)
class Burst:
    """A stretch of the story in which a service gets more load than before and after."""

    service: str
    start: float
    """When its load begins to rise, in seconds of the story."""
    end: float


BURSTS = (Burst("chat", 60, 420), Burst("chat", 690, LENGTH))


@dataclass(frozen=True, slots=True)
class Outage:
    """A period in which an exporter does not answer."""

    node: str
    start: float
    """Seconds into each round of the story."""
    end: float

    def covers(self, now: float) -> bool:
        """Return whether the exporter is dead at ``now``."""
        return self.start <= now % LENGTH < self.end


OUTAGES = (Outage(node="mig-1", start=420, end=620),)


RUNNING, WAITING = "inference_requests_running", "inference_requests_waiting"
"""Metrics of the servers' own pages."""


def _hpa(
    namespace: str,
    service: str,
    least: int,
    most: int,
    targets: Mapping[str, str],
    window: int,
    promise: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    stated = {"selector": {"matchLabels": promise}} if promise else {}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": service, "namespace": namespace},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": service},
            "minReplicas": least,
            "maxReplicas": most,
            "metrics": [
                {
                    "type": "Pods",
                    "pods": {
                        "metric": {"name": metric, **stated},
                        "target": {"type": "AverageValue", "averageValue": target},
                    },
                }
                for metric, target in targets.items()
            ],
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": window}},
        },
    }


HPAS = (
    _hpa(NAMESPACE, "chat", 2, 12, {"gpu_utilization": "70"}, 90),
    _hpa(NAMESPACE, "embed", 1, 7, {"gpu_utilization": "60"}, 60),
)
"""autoscaling/v2 manifests. The scale-down windows are shorter than the default 300 s, so that
scaling in is visible within the story."""


class ClusterSetup(NamedTuple):
    """A simulated cluster's services, pools and HPAs."""

    namespace: str
    pools: tuple[DemoPool, ...]
    workloads: tuple[DemoWorkload, ...]
    hpas: tuple[Mapping[str, Any], ...]
    server_pages: bool = False
    """Whether its pods have a page about their requests, as vLLM does, and opt in to its scrape."""


WITH_NODEPOOL = ClusterSetup(NAMESPACE, POOLS, WORKLOADS, HPAS)
REACTIVE = ClusterSetup(
    namespace="inference-reactive",
    pools=(replace(POOLS[0], name="reactive"),),
    workloads=WORKLOADS[:1],
    hpas=(_hpa("inference-reactive", "chat", 2, 12, {"gpu_utilization": "70"}, 90),),
)
"""The cluster without nodepool, with only the services whose pools grow. Its pool has a name of
its own, so that its nodes, exporters and GPUs differ from the other cluster's."""

ON_QUEUE = ClusterSetup(
    namespace="inference-queue",
    pools=(replace(POOLS[0], name="queue"),),
    workloads=WORKLOADS[:1],
    hpas=(_hpa("inference-queue", "chat", 2, 12, {RUNNING: "700m", WAITING: "1"}, 90),),
    server_pages=True,
)
"""The same chat service with nodepool, scaled on its queue. A server works on one request after the
other, so 700m requests in progress are as much work as 70 % utilization."""

ON_EXPECTED = ON_QUEUE._replace(
    namespace="inference-expected",
    pools=(replace(POOLS[0], name="expected"),),
    hpas=(
        _hpa(
            *("inference-expected", "chat", 2, 12),
            {RUNNING: "700m", RUNNING + SUFFIX: "700m", WAITING: "1"},
            90,
        ),
    ),
)
"""The same, and replicas ahead of demand: what earlier days had at this time (docs/ahead.md)."""
PROMISE = {"ttft_p90": "2.5s"}
"""The seconds are those that each workload's ``promised`` counts by."""
ON_PROMISE = ClusterSetup(
    namespace="inference-promise",
    pools=(replace(POOLS[0], name="promise"),),
    workloads=(replace(WORKLOADS[0], depth=None),),
    hpas=(_hpa("inference-promise", "chat", 2, 12, {SLO_RATIO: "700m"}, 90, PROMISE),),
)
"""The same chat service with nodepool, scaled on a promise. No gateway holds requests back, so that
its servers count all of the time to a first token."""

RESEARCH = ClusterSetup(
    namespace="research",
    pools=(
        DemoPool(
            name="dev",
            resource="nvidia.com/mig-3g.40gb",
            model="NVIDIA A100-SXM4-80GB",
            gpus=1,
            memory_mib=40192,
            instance_type="p4de.24xlarge",
            mig_profile="3g.40gb",
            instances=2,
            first_instance=1,
        ),
        DemoPool(
            name="lab",
            resource="nvidia.com/mig-4g.40gb",
            model="NVIDIA A100-SXM4-80GB",
            gpus=1,
            memory_mib=40192,
            instance_type="p4de.24xlarge",
            mig_profile="4g.40gb",
            first_instance=2,
            names_pods=False,
        ),
    ),
    workloads=(
        DemoWorkload(
            name="notebook",
            resource="nvidia.com/mig-3g.40gb",
            profile=Profile.of((0, 0), (LENGTH, 0)),
            mean_work=1,
            start_seconds=10,
            memory_share=0.31,
            replicas=2,
        ),
        DemoWorkload(
            name="rerank",
            resource="nvidia.com/mig-4g.40gb",
            profile=Profile.of((0, 2), (LENGTH, 2)),
            mean_work=0.3,
            start_seconds=10,
            memory_share=0.5,
            replicas=1,
        ),
    ),
    hpas=(_hpa("research", "rerank", 1, 4, {"gpu_utilization": "60"}, 60),),
)
"""Another team in the same cluster, with the two mistakes that are most frequent."""
