"""Three policies before a real control plane and Karpenter, on recorded load.

Each policy has a namespace, a node pool and a service of its own for each recorded load, all in one
cluster, and all policies have the same loads at the same time. Karpenter orders nodes of the
provider that it is tested with, and kwok acts as the kubelet, so a node has no hardware and boots
in a set time.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from adapter.nodepool.act.ledgerstore import NAME, dump
from adapter.nodepool.learn.history import learn
from adapter.nodepool.learn.ledger import Ledger
from adapter.nodepool.model.demand import WorkloadRef
from adapter.nodepool.model.history import EMPTY, MINUTE, DemandHistory, DemandPoint
from adapter.nodepool.plan.limits import Limits
from load.nodepoolexpected import Expected, expected
from load.nodepoolplays import (
    BUSIER,
    MOST,
    PERCENT,
    TARGET,
    LabLoad,
    LabPlay,
    rises,
    wanted,
)
from load.table import Run, Table
from research.traces import JUDGE_DAYS
from tests.e2e.apiservice import NAMESPACE
from tests.e2e.cluster import Object, Watch
from tests.e2e.lab.lab import NODECLAIMS
from tests.e2e.lab.stage import LabStage

REACTIVE, SHARE, OURS = "reactive", "share", "ours"
POLICIES: Final = {
    REACTIVE: "reactive: no headroom",
    SHARE: f"CapacityBuffer of {PERCENT} % of the replicas",
    OURS: "nodepool with its default quantile",
}
_UNLIMITED: Final = "The replay does not limit headroom; the default is 8 pods a service."
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
        """Begin again: no wait until now counts."""
        with self._lock:
            self._ended.clear()
            now = time.monotonic()
            self._since = {uid: (namespace, now) for uid, (namespace, _) in self._since.items()}

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
    nodes: int


def lab(run: Run) -> Table:
    """Play the steepest rise of each judged day at its own speed, on all three policies at once.

    Raises:
        TracesMissingError: the recorded traces are not on this machine.
    """
    play = rises(quick=run.quick)
    found = _play(run, play)
    before = play.uncounted * play.tick // 60
    wide = len(play.loads[0].ticks) * play.tick // 60 - before
    days = ", ".join(str(day + 1) for day in JUDGE_DAYS)
    return _table(
        found,
        expected(play),
        (
            f"The {wide} minutes in which the load rises most, of each of the days {days} of lora "
            f"at {BUSIER} times the recorded rate, at their own speed, target {TARGET} %. A node "
            "boots in 120 s, and Karpenter removes it when it has been empty for 300 s. HPAs sync "
            f"every 15 s. The {before} minutes before are played too and do not count. Waits are "
            "from the creation of a pod until it has a node. Node-minutes count NodeClaims from "
            "their creation. In brackets: percent of reactive's."
        ),
        (
            "nodepool knows the boot time, may order 64 GPUs a pool, has its defaults otherwise, "
            f"and started with the history of all days until then. {_UNLIMITED}"
        ),
    )


def _play(run: Run, play: LabPlay) -> tuple[list[_Outcome], float]:
    """Return what each policy came to, and the CPU seconds of all processes."""
    waits = Waits()
    begun = os.times()
    defaults = Limits()
    names = [_named(policy, load) for policy in POLICIES for load in play.loads]
    scrape = {"kind": "scrape", "scrape": {"interval": f"{play.scrape}s", "timeout": "900ms"}}
    with LabStage(
        run.folder, play.boot, play.tick, source=scrape, pools=names, empty=play.empty
    ) as stage:
        watch = Watch(stage.admin, "/api/v1/pods", waits.changed)
        _seed(stage, play)
        controller = stage.controller(
            OURS,
            namespaces=[_named(OURS, load) for load in play.loads],
            interval=play.tick,
            limits={
                "hold_seconds": defaults.hold_seconds,
                "decay_seconds": defaults.decay_seconds,
            },
        )
        controller.start()
        try:
            _start(stage, play)
            outcomes = _follow(stage, waits, play)
        finally:
            controller.stop()
            watch.stop()
    ended = os.times()
    cpu = ended.children_user + ended.children_system - begun.children_user - begun.children_system
    return outcomes, cpu


def _named(policy: str, load: LabLoad) -> str:
    return f"{policy}-{load.name}"


def _seed(stage: LabStage, play: LabPlay) -> None:
    """Store the history that the controller would have."""
    ledger = Ledger()
    begin = time.time() // MINUTE * MINUTE
    for load in play.loads:
        history: DemandHistory = EMPTY
        for index, each in enumerate(load.past):
            at = begin - (len(load.past) - index) * play.apart
            history = learn(history, DemandPoint(at, each / TARGET))
        workload = WorkloadRef(_named(OURS, load), "Deployment", "inference")
        ledger.histories[workload] = history
        ledger.known_at[workload] = history.recent[-1].time
    stage.admin.create(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": NAME, "namespace": NAMESPACE},
            "data": dump(ledger),
        }
    )


def _start(stage: LabStage, play: LabPlay) -> None:
    """Create the services with the pods for the first load, and wait for their nodes."""
    begun = [(name, load.ticks[0]) for load in play.loads for name in _names(load)]
    for name, load in begun:
        stage.workload(
            name,
            wanted(load),
            most=MOST,
            pool=name,
            scaleDown={"stabilizationWindowSeconds": play.stabilization},
        )
        stage.load.set(name, load, expected=wanted(load))
        if name.startswith(SHARE):
            stage.admin.request("POST", _BUFFERS.format(ns=name), _buffer(name))
    for name, load in begun:
        stage.wait_running(name, wanted(load), 600)
    if not play.uncounted:
        # The headroom of both policies boots.
        time.sleep(1.5 * play.boot)


def _names(load: LabLoad) -> list[str]:
    return [_named(policy, load) for policy in POLICIES]


def _follow(stage: LabStage, waits: Waits, play: LabPlay) -> list[_Outcome]:
    held: Counter[str] = Counter()
    most: Counter[str] = Counter()
    for index in _ticks(len(play.loads[0].ticks), play.tick):
        if index == play.uncounted:
            waits.reset()
        for load in play.loads:
            for name in _names(load):
                stage.load.set(name, load.ticks[index])
        claims = stage.admin.get(NODECLAIMS)["items"]
        now = Counter(
            claim["metadata"]["labels"]["karpenter.sh/nodepool"].partition("-")[0]
            for claim in claims
        )
        if index >= play.uncounted:
            for policy in POLICIES:
                held[policy] += now[policy]
                most[policy] = max(most[policy], now[policy])
    return [
        _Outcome(
            text,
            [wait for load in play.loads for wait in waits.of(_named(policy, load))],
            held[policy] * play.tick / 60,
            most[policy],
        )
        for policy, text in POLICIES.items()
    ]


def _ticks(count: int, seconds: int) -> Iterator[int]:
    """Yield each tick at its time, however long the work in between takes."""
    begin = time.monotonic()
    for index in range(count):
        time.sleep(max(0.0, begin + index * seconds - time.monotonic()))
        yield index
    time.sleep(max(0.0, begin + count * seconds - time.monotonic()))


def _buffer(namespace: str) -> Object:
    return {
        "apiVersion": "autoscaling.x-k8s.io/v1beta1",
        "kind": "CapacityBuffer",
        "metadata": {"name": SHARE, "namespace": namespace},
        "spec": {
            "scalableRef": {"apiGroup": "apps", "kind": "Deployment", "name": "inference"},
            "percentage": PERCENT,
        },
    }


def _table(found: tuple[list[_Outcome], float], replayed: Sequence[Expected], *notes: str) -> Table:
    outcomes, cpu = found
    reactive, first = outcomes[0], replayed[0]
    return Table(
        (
            *("policy", "pods waited", "longest wait s", "all waits s", "node-minutes"),
            *("most nodes", "all waits s, replayed", "node-minutes, replayed"),
        ),
        tuple(
            (
                each.policy,
                str(sum(wait > 2 for wait in each.waits)),
                f"{max(each.waits, default=0.0):.0f}",
                _beside(sum(each.waits), sum(reactive.waits)),
                _beside(each.node_minutes, reactive.node_minutes),
                str(each.nodes),
                _beside(other.wait_seconds, first.wait_seconds),
                _beside(other.node_minutes, first.node_minutes),
            )
            for each, other in zip(outcomes, replayed, strict=True)
        ),
        notes=(
            *notes,
            (
                f"All processes used {cpu:.0f} s of CPU. The load average was "
                f"{os.getloadavg()[2]:.1f} in the last 15 minutes, on {os.cpu_count()} cores that "
                "other work shared. *Replayed* is what `replay hpa --headroom` says of the same "
                "load, with these times and with everything before it."
            ),
        ),
    )


def _beside(value: float, base: float) -> str:
    """Return a figure with its percent of reactive's."""
    return f"{value:.0f} ({100 * value / base:.0f} %)" if base else f"{value:.0f}"
