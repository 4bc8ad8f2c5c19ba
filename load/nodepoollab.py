"""Three policies before a real control plane and Karpenter: one recorded day in twenty minutes.

Each policy has a namespace, a node pool and a service of its own in one cluster, and all services
have the same load at the same time. Karpenter orders nodes of the provider that it is tested with,
and kwok acts as the kubelet, so a node has no hardware and boots in a set time.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from adapter.nodepool.act.ledgerstore import NAME, dump
from adapter.nodepool.learn.history import learn
from adapter.nodepool.learn.ledger import Ledger
from adapter.nodepool.model.demand import WorkloadRef
from adapter.nodepool.model.history import EMPTY, MINUTE, DemandPoint
from load.nodepooltraces import DAY, LORA, STEP, folder, many_days
from load.table import Run, Table
from tests.e2e.apiservice import NAMESPACE
from tests.e2e.cluster import Object, Watch
from tests.e2e.lab.lab import NODECLAIMS
from tests.e2e.lab.stage import LabStage

PLAYED: Final = 1200
"""Seconds in which a day is played."""
_QUICK: Final = 60
BOOT: Final = 60
"""Seconds from the order of a node to its registration."""
EMPTY_NODE: Final = 30
"""Seconds after which Karpenter removes an empty node."""
SYNC: Final = 5
"""Seconds between two syncs of the HPA, two settings of the load, and two reads of nodepool."""
PEAK_PODS: Final = 24
TARGET: Final = 50
LEAST: Final = 2
"""minReplicas."""
PERCENT: Final = 20
"""The fixed share: Karpenter adds so many percent of the replicas, rounded up."""
JUDGED: Final = 9
"""The day that is played, counted from the first of the record."""
LEARNED: Final = (5, 6, 7, 8)
"""Days that the history of the controller holds when it starts, as if played before."""
REACTIVE, SHARE, OURS = "reactive", "share", "ours"
POLICIES: Final = {
    REACTIVE: "reactive: no headroom",
    SHARE: f"CapacityBuffer of {PERCENT} % of the replicas",
    OURS: "nodepool with its default quantile",
}
_SCRAPE: Final = {"kind": "scrape", "scrape": {"interval": "1s", "timeout": "900ms"}}
_BUFFERS: Final = "/apis/autoscaling.x-k8s.io/v1beta1/namespaces/{ns}/capacitybuffers"


class Waits:
    """How long pods wait for a node, by namespace, from their creation as a watch shows it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._since: dict[str, tuple[str, float]] = {}
        self._ended: dict[str, list[float]] = {}
        self._known: set[str] = set()

    def changed(self, kind: str, pod: Object) -> None:
        """Take an event of the watch of all pods."""
        meta, now = pod["metadata"], time.monotonic()
        if (meta.get("labels") or {}).get("app") != "inference":
            return
        with self._lock:
            uid = meta["uid"]
            if uid not in self._known:
                self._known.add(uid)
                self._since[uid] = (meta["namespace"], now)
            if uid in self._since and (kind == "DELETED" or pod["spec"].get("nodeName")):
                namespace, since = self._since.pop(uid)
                self._ended.setdefault(namespace, []).append(now - since)

    def reset(self) -> None:
        """Forget the waits that have ended."""
        with self._lock:
            self._ended.clear()

    def of(self, namespace: str) -> list[float]:
        """Return seconds of each pod; those that wait still count until now."""
        now = time.monotonic()
        with self._lock:
            waiting = [now - at for own, at in self._since.values() if own == namespace]
            return [*self._ended.get(namespace, ()), *waiting]


class _Outcome(NamedTuple):
    policy: str
    waits: list[float]
    node_minutes: float
    pod_minutes: float
    nodes: int


def lab(run: Run) -> Table:
    """Play a day on all three policies at once.

    Raises:
        TracesMissingError: the recorded traces are not on this machine.
    """
    seconds = _QUICK if run.quick else PLAYED
    loads = demand(JUDGED, seconds)
    waits = Waits()
    begun = os.times()
    with LabStage(
        run.folder, BOOT, SYNC, source=_SCRAPE, pools=tuple(POLICIES), empty=EMPTY_NODE
    ) as stage:
        watch = Watch(stage.admin, "/api/v1/pods", waits.changed)
        _seed(stage, [demand(day, PLAYED) for day in LEARNED])
        controller = stage.controller(
            OURS,
            namespaces=[OURS],
            interval=SYNC,
            limits={"share": 0.2, "hold_seconds": BOOT, "decay_seconds": BOOT // 2},
        )
        controller.start()
        try:
            _start(stage, loads[0])
            waits.reset()
            outcomes = _play(stage, waits, loads)
        finally:
            controller.stop()
            watch.stop()
    ended = os.times()
    cpu = ended.children_user + ended.children_system - begun.children_user - begun.children_system
    return _table(outcomes, seconds, cpu)


def demand(day: int, seconds: int) -> list[float]:
    """Return a recorded day as percent of one GPU, one entry for each :data:`SYNC` seconds."""
    trace = many_days(folder() / LORA)
    first = int((trace.begin // DAY + day) * DAY - trace.begin) // STEP
    work = trace.work[max(0, first) : first + DAY // STEP]
    count = seconds // SYNC
    edges = [round(index * len(work) / count) for index in range(count + 1)]
    steps = [sum(work[low:high]) / max(1, high - low) for low, high in pairwise(edges)]
    return [each * PEAK_PODS * TARGET / max(steps) for each in steps]


def wanted(load: float) -> int:
    """Return the replicas for a load."""
    return max(LEAST, math.ceil(load / TARGET))


def _seed(stage: LabStage, days: Sequence[Sequence[float]]) -> None:
    """Store the history that the controller would have of earlier days, played as fast."""
    loads = [load for day in days for load in day]
    begin = time.time() // MINUTE * MINUTE - len(loads) * SYNC
    history = EMPTY
    for index, load in enumerate(loads):
        history = learn(history, DemandPoint(begin + index * SYNC, wanted(load)))
    ledger = Ledger()
    ledger.histories[WorkloadRef(OURS, "Deployment", "inference")] = history
    ledger.known_at[WorkloadRef(OURS, "Deployment", "inference")] = history.recent[-1].time
    stage.admin.create(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": NAME, "namespace": NAMESPACE},
            "data": dump(ledger),
        }
    )


def _start(stage: LabStage, load: float) -> None:
    """Create the services with the pods for the first load, and wait for their nodes."""
    for name in POLICIES:
        stage.workload(
            name,
            wanted(load),
            most=2 * PEAK_PODS,
            pool=name,
            scaleDown={"stabilizationWindowSeconds": BOOT},
        )
        stage.load.set(name, load, expected=wanted(load))
    stage.admin.request("POST", _BUFFERS.format(ns=SHARE), _buffer())
    for name in POLICIES:
        stage.wait_running(name, wanted(load), 300)
    # The headroom of both policies boots.
    time.sleep(1.5 * BOOT)


def _play(stage: LabStage, waits: Waits, loads: Sequence[float]) -> list[_Outcome]:
    held: Counter[str] = Counter()
    pods: Counter[str] = Counter()
    most: Counter[str] = Counter()
    for load in _ticks(loads):
        for name in POLICIES:
            stage.load.set(name, load)
        claims = stage.admin.get(NODECLAIMS)["items"]
        now = Counter(claim["metadata"]["labels"]["karpenter.sh/nodepool"] for claim in claims)
        for name in POLICIES:
            held[name] += now[name]
            pods[name] += len(stage.running(name))
            most[name] = max(most[name], now[name])
    return [
        _Outcome(
            text,
            waits.of(name),
            held[name] * SYNC / 60,
            pods[name] * SYNC / 60,
            most[name],
        )
        for name, text in POLICIES.items()
    ]


def _ticks(loads: Sequence[float]) -> Iterator[float]:
    """Yield each load at its time, however long the work in between takes."""
    begin = time.monotonic()
    for index, load in enumerate(loads):
        time.sleep(max(0.0, begin + index * SYNC - time.monotonic()))
        yield load
    time.sleep(max(0.0, begin + len(loads) * SYNC - time.monotonic()))


def _buffer() -> Object:
    return {
        "apiVersion": "autoscaling.x-k8s.io/v1beta1",
        "kind": "CapacityBuffer",
        "metadata": {"name": SHARE, "namespace": SHARE},
        "spec": {
            "scalableRef": {"apiGroup": "apps", "kind": "Deployment", "name": "inference"},
            "percentage": PERCENT,
        },
    }


def _table(outcomes: Sequence[_Outcome], seconds: int, cpu: float) -> Table:
    reactive = outcomes[0]
    return Table(
        ("policy", "pods waited", "longest wait s", "all waits s", "node-minutes", "most nodes"),
        tuple(
            (
                each.policy,
                str(sum(wait > 2 for wait in each.waits)),
                f"{max(each.waits, default=0.0):.0f}",
                f"{sum(each.waits):.0f} ({_percent(sum(each.waits), sum(reactive.waits))})",
                f"{each.node_minutes:.0f} ({_percent(each.node_minutes, reactive.node_minutes)})",
                str(each.nodes),
            )
            for each in outcomes
        ),
        notes=(
            (
                f"Day {JUDGED + 1} of lora in {seconds} s, at most {PEAK_PODS} pods, target "
                f"{TARGET} %. A node boots in {BOOT} s, and Karpenter removes it when it has been "
                f"empty for {EMPTY_NODE} s. HPAs sync every {SYNC} s. Waits are from the creation "
                "of a pod until it has a node. Node-minutes count NodeClaims from their creation. "
                "In brackets: percent of reactive's."
            ),
            (
                f"nodepool started with the history of days {LEARNED[0] + 1} to "
                f"{LEARNED[-1] + 1}, as if played before at the same speed. Its hold is a boot "
                "time, its decay half of one; other settings are the defaults."
            ),
            (
                f"All processes used {cpu:.0f} s of CPU. The load average was "
                f"{os.getloadavg()[2]:.1f} in the last 15 minutes, on {os.cpu_count()} cores that "
                "other work shared."
            ),
        ),
    )


def _percent(value: float, base: float) -> str:
    return f"{100 * value / base:.0f} %" if base else "-"
