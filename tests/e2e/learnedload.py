"""What an earlier process of `serve` learned of a load, in the ConfigMap of `memory.enabled`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import yaml

from adapter.nodepool.model.history import (
    DAY,
    MINUTE,
    SLOT,
    SLOTS,
    DemandDay,
    DemandHistory,
    DemandPoint,
)
from adapter.pipeline.cluster.workload import DEPLOYMENTS
from adapter.server.ahead.replicaload import ReplicaLoad
from adapter.server.ahead.starts import StartTimes
from adapter.server.ahead.storedloads import dump
from adapter.server.ahead.workloadload import LoadKey, WorkloadLoad
from tests.e2e.apiservice import NAMESPACE, SERVICE
from tests.e2e.cluster import Cluster, Object

MEASURED = "gpu_utilization"
EXPECTED = MEASURED + "_expected"
NAME = f"{SERVICE}-memory"
CONFIGMAP = f"/api/v1/namespaces/{NAMESPACE}/configmaps/{NAME}"
SETTINGS: dict[str, Any] = {
    "ahead": {"enabled": True},
    "memory": {"configmap": f"{NAMESPACE}/{NAME}", "interval": 15},
}


def write(admin: Cluster, namespace: str, load: float, rise: float, target: float) -> None:
    """Let the Deployment `inference` have had a rise at this time on each earlier day.

    Args:
        admin: of the cluster, which has the chart's ConfigMap.
        namespace: of the Deployment.
        load: percent of one GPU, all pods together, of the last five hours.
        rise: percent that came on top.
        target: percent that a replica carries.
    """
    key = LoadKey(namespace, DEPLOYMENTS, "inference", MEASURED)
    loads = {key: learned(time.time(), load, rise, target)}
    admin.patch(CONFIGMAP, {"data": {"loads": dump(loads)[0]}})


def learned(now: float, load: float, rise: float, target: float) -> WorkloadLoad:
    """Return what is known of such a load. The arguments are those of :func:`write`."""
    return WorkloadLoad(
        now,
        history=_earlier_days(now, load, rise),
        replica=ReplicaLoad(target * 1e6, 1e6, now),
        starts=StartTimes(watched=(30.0,)),
    )


def use(config: Path) -> None:
    """Add the settings with which `serve` reads it."""
    config.write_text(yaml.safe_dump(yaml.safe_load(config.read_text()) | SETTINGS))


def add_expected(hpa: Object) -> Object:
    """Return the HPA with the expected metric beside the measured one."""
    measured = hpa["spec"]["metrics"][0]["pods"]
    pods = measured | {"metric": {"name": EXPECTED}}
    hpa["spec"]["metrics"].append({"type": "Pods", "pods": pods})
    return hpa


def _earlier_days(now: float, load: float, rise: float) -> DemandHistory:
    """Four days that rose in this slot, and in the next one, which may begin soon.

    The second rise ends at what is expected. So it is never more, in the seconds either in which
    the lead time reaches into both slots: no load above the highest one known is expected. The
    load falls again half a day later, regardless of the time of the day.
    """
    minute, today = now // MINUTE * MINUTE, int(now // DAY)
    this_slot = int(now // SLOT) % SLOTS

    def peak(slot: int) -> float:
        after = (slot - this_slot + SLOTS // 2) % SLOTS - SLOTS // 2
        return max(0.0, load + rise * max(-1, min(1, after)))

    peaks = tuple(peak(slot) for slot in range(SLOTS))
    days = (DemandDay(day, peaks) for day in range(today - 4, today))
    recent = (DemandPoint(minute - back * MINUTE, load) for back in range(300, 0, -1))
    return DemandHistory(tuple(recent), tuple(days))
