"""Jumps of demand with independent timing of HPA controller, node autoscaler and plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.hpa import HpaState, Observation, PodState, decide, from_manifest
from adapter.nodepool.learn.pace import NEW, follow, replicas_after_next_sync
from adapter.nodepool.model.capacity import Capacity
from adapter.nodepool.model.demand import Demand, WorkloadRef
from adapter.nodepool.plan.limits import Limits
from adapter.nodepool.plan.order import Tie
from adapter.nodepool.plan.plan import plan
from tests.adapter.nodepool.nodeautoscalers import (
    ClusterAutoscaler,
    Karpenter,
    Node,
    NodeAutoscaler,
    Seen,
)
from tests.adapter.nodepool.planning import GPU, NOW, applied, node, pool

STEP = 0.1
LASTS = 150.0
PERIOD = 15.0
BOOT = 20.0
EVENTS = 0.5
"""Seconds from a change of pods or nodes to the end of the round that it starts."""
LIMITS = Limits(share=0, max_pods=100, max_gpus_per_pool=100)


@dataclass(frozen=True)
class Case:
    before: int
    after: int
    most: int
    policy: tuple[int, int] | None
    """Pods, and the seconds in which they may be added."""
    hpa: float
    """Seconds after the jump of its first sync."""
    nodepool: float
    """Seconds after the jump of its first full round."""
    floor: int = 0
    """Minimum headroom, which stands before the jump."""

    def manifest(self) -> dict[str, Any]:
        rules = {}
        if self.policy is not None:
            value, period = self.policy
            policies = [{"type": "Pods", "value": value, "periodSeconds": period}]
            rules = {"behavior": {"scaleUp": {"policies": policies}}}
        metric = {
            "metric": {"name": "queue"},
            "target": {"type": "AverageValue", "averageValue": "1"},
        }
        return {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "spec": {
                "scaleTargetRef": {
                    "apiVersion": "apps/v1",
                    "kind": "Deployment",
                    "name": "llm",
                },
                "maxReplicas": self.most,
                "metrics": [{"type": "External", "external": metric}],
                **rules,
            },
        }

    @property
    def pods(self) -> int:
        """Pods at the end."""
        return max(self.before, min(self.after, self.most))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    # From 10 to 11 is within the HPA's tolerance: it would not scale, and the plan knows that from
    # the value, which is not simulated here.
    before = draw(st.integers(1, 9))
    return Case(
        before,
        draw(st.integers(before, 30)),
        draw(st.integers(before, 30)),
        draw(st.none() | st.tuples(st.integers(1, 6), st.sampled_from((15, 30, 60)))),
        draw(st.floats(0, PERIOD)),
        draw(st.floats(0, PERIOD)),
        draw(st.integers(0, 4)),
    )


class Played(NamedTuple):
    """What a jump came to."""

    nodes: int
    """At the end."""
    held: int
    """Most pods of headroom."""
    left: int
    """Pods of headroom at the end."""
    wait: float
    """Longest wait of a pod in seconds."""
    raced: bool
    """Whether pods were created while the autoscaler had not yet seen a raised order."""


class World:
    """One workload with its HPA, 1-GPU nodes, the plan, and a node autoscaler."""

    def __init__(self, case: Case, autoscaler: NodeAutoscaler, *, buffers: bool = True) -> None:
        self.case = case
        self.autoscaler = autoscaler
        self.limits = LIMITS.model_copy(update={"buffers": buffers})
        self.placeholders: list[float] = []
        """When each placeholder without a node was created."""
        self.bound = 0
        """Placeholders on nodes."""
        self.spec, self.state, self.pace = from_manifest(case.manifest()), HpaState(), NEW
        self.pods = case.before
        self.pending: list[float] = []
        self.nodes = [Node(f"n{index}", 0.0, pod=True) for index in range(case.before)]
        self.at = Capacity((), {"gpu": pool(waits=autoscaler.waits)})
        self.tie: Tie | None = None
        self.round_at = case.nodepool
        self.full = case.nodepool
        self.hpa = case.hpa
        self.held = 0
        self.wait = 0.0
        self.raced = False
        self.seen = 0
        """Headroom when the autoscaler last ran a round."""
        self.ordered = 0
        """Nodes that the autoscaler has added."""
        self.removed = 0

    def play(self, seconds: float = LASTS) -> Played:
        """Let time pass."""
        if self.case.floor:
            self._prepare()
        for tick in range(int(seconds / STEP)):
            second = tick * STEP
            self._sync(second)
            self._schedule(second)
            self._plan(second)
            self._order(second)
        return self.played()

    def abandon(self, begin: float, seconds: float) -> Played:
        """Delete the headroom, as a kill switch or the end of a lifeline does, and wait."""
        self.at, self.tie = replace(self.at, headroom=()), None
        self.placeholders, self.bound = [], 0
        for tick in range(int(seconds / STEP)):
            self._order(begin + tick * STEP)
        return self.played()

    def played(self) -> Played:
        """Return what the jump came to until now."""
        return Played(len(self.nodes), self.held, self._held(), self.wait, self.raced)

    def _prepare(self) -> None:
        """Let the headroom of the floor stand: its nodes are Ready and empty."""
        ahead = min(self.case.floor, self.case.most - self.case.before)
        self.nodes += [Node(f"n{len(self.nodes) + index}", 0.0) for index in range(ahead)]
        self._round(0.0, self.case.before)

    def _sync(self, second: float) -> None:
        if second < self.hpa:
            return
        self.hpa += PERIOD
        running = [PodState(str(name)) for name in range(self.pods)]
        observation = Observation(self.pods, running, ([self.case.after * 1000],))
        decision, self.state = decide(self.spec, self.state, observation, NOW + second)
        if decision.rescale:
            self.raced |= self._held() > self.seen
            self.pending += [second] * (decision.desired - self.pods)
            self.pods = decision.desired
            self.round_at = min(self.round_at, second + EVENTS)
            self._schedule(second)
            if self.pending:
                self.autoscaler.pods_changed(second)

    def _schedule(self, second: float) -> None:
        """Bind pods to free Ready nodes."""
        for host in self.nodes:
            if self.pending and not host.pod and host.usable <= second:
                host.pod = True
                self.wait = max(self.wait, second - self.pending.pop(0))
            if abs(host.usable - second) < STEP / 2:
                self.round_at = min(self.round_at, second + EVENTS)
        if self.limits.buffers:
            return
        free = sum(not host.pod and host.usable <= second for host in self.nodes)
        if self.bound > free:
            self.placeholders += [second] * (self.bound - free)
            self.autoscaler.pods_changed(second)
        elif self.placeholders:
            del self.placeholders[: free - self.bound]
        self.bound = min(free, self._held() - len(self.placeholders))

    def _held(self) -> int:
        return sum(headroom.replicas for headroom in self.at.headroom)

    def _written(self) -> object:
        """Return what changes the CapacityBuffer at once."""
        return [(headroom.replicas, headroom.pods) for headroom in self.at.headroom]

    def _write(self, second: float) -> None:
        """Change the Deployment of placeholders. Those without a node are deleted first."""
        changed = self._held() - self.bound - len(self.placeholders)
        if changed > 0:
            self.placeholders += [second] * changed
            self.autoscaler.pods_changed(second)
        elif changed < 0:
            left = max(0, len(self.placeholders) + changed)
            self.bound += min(0, len(self.placeholders) + changed)
            del self.placeholders[left:]

    def _plan(self, second: float) -> None:
        if second < min(self.full, self.round_at):
            return
        if second >= self.full:
            self.full += PERIOD
        self.round_at = self.full
        self._round(second, self.case.after)

    def _round(self, second: float, wanted: int) -> None:
        now = NOW + second
        self.pace = follow(self.pace, self.pods, wanted, now)
        row = Demand(
            workload=WorkloadRef("ml", "Deployment", "w"),
            shape=GPU,
            bound=self.pods - len(self.pending),
            pending=len(self.pending),
            wanted=wanted,
            max_replicas=self.case.most,
            known_at=now,
            asked=self.pods,
            coming=replicas_after_next_sync(self.spec, self.pace, self.pods, wanted, now),
            floor=self.case.floor,
        )
        nodes = tuple(
            node(host.name, GPU if host.pod else None, ready=host.usable <= second)
            for host in self.nodes
        )
        decided = plan([row], replace(self.at, nodes=nodes), self.limits, now)
        before, self.at = self._written(), applied(decided, self.at)
        self.tie = decided.orders[0].tie
        if not self.limits.buffers:
            self._write(second)
        elif before != self._written() and not self.autoscaler.waits:
            self.autoscaler.pods_changed(second)
        self.held = max(self.held, self._held())

    def _order(self, second: float) -> None:
        held = self._held() if self.limits.buffers else 0
        held = held if self.tie is None else self.tie.pods
        seen = Seen(self.pending, self.nodes, held, self.tie, tuple(self.placeholders), self.bound)
        rounds = self.autoscaler.rounds
        added = self.autoscaler.add(seen, second)
        if self.autoscaler.rounds > rounds:
            self.seen = self._held()
            gone = self.autoscaler.removed(seen, second)
            self.removed += len(gone)
            self.nodes = [host for host in self.nodes if host.name not in gone]
        for _ in range(added):
            self.ordered += 1
            self.nodes.append(Node(f"ordered-{self.ordered}", second + BOOT))
        if added:
            self.round_at = min(self.round_at, second + EVENTS)


WAYS: dict[str, Callable[[Case], World]] = {
    "Karpenter, buffers": lambda case: World(case, Karpenter()),
    "Karpenter, placeholders": lambda case: World(case, Karpenter(), buffers=False),
    "cluster-autoscaler, buffers": lambda case: World(case, ClusterAutoscaler()),
    "cluster-autoscaler, placeholders": lambda case: World(
        case, ClusterAutoscaler(), buffers=False
    ),
}


@pytest.mark.parametrize("world", WAYS.values(), ids=WAYS)
@given(case=cases())
def test_nodes_do_not_exceed_the_pods_and_the_headroom_of_the_plan(
    world: Callable[[Case], World], case: Case
) -> None:
    """Except with Karpenter, if pods take free nodes in the second in which it collects changes."""
    played = world(case).play()
    late = played.raced and world is WAYS["Karpenter, buffers"]
    assert played.nodes <= case.pods + (played.held if late else played.left)


@pytest.mark.parametrize("buffers", [True, False], ids=["buffers", "placeholders"])
@given(case=cases())
def test_headroom_keeps_its_nodes_until_it_is_deleted_and_then_none(
    case: Case, buffers: bool
) -> None:
    """The cluster-autoscaler removes a node that has been unneeded for 30 s."""
    world = World(replace(case, policy=None), ClusterAutoscaler(unneeded=30.0), buffers=buffers)
    played = world.play(240)
    assert (played.nodes, world.removed) == (world.pods + played.left, 0)
    assert world.abandon(240, 60).nodes == world.pods
    assert world.removed == played.left


@pytest.mark.parametrize("world", WAYS.values(), ids=WAYS)
def test_nodes_are_ordered_ahead_for_pods_that_policies_delay(
    world: Callable[[Case], World],
) -> None:
    played = world(Case(2, 12, 20, (1, 60), hpa=10, nodepool=1)).play()
    assert (played.nodes, played.held) == (12, 9)


class Untied(World):
    """The cluster-autoscaler with the plan for one that collects changes first, as Karpenter."""

    def __init__(self, case: Case, *, buffers: bool = True) -> None:
        super().__init__(case, ClusterAutoscaler(), buffers=buffers)
        self.at = Capacity((), {"gpu": pool(waits=False)})


STEPS = (4, 15)
"""The pods that an HPA with ``behavior`` may add in 15 s by default, from two."""
SLOW = (1, 15)
MEASURED = {
    "a jump": (Case(2, 8, 8, STEPS, hpa=9, nodepool=2), True, 10),
    "a ramp": (Case(2, 8, 8, SLOW, hpa=9, nodepool=2), True, 9),
    "a ramp without the CRD": (Case(2, 8, 8, SLOW, hpa=9, nodepool=2), False, 9),
}
"""Nodes of the cluster-autoscaler 1.36.1 on a real control plane before orders were tied."""


@pytest.mark.parametrize(("case", "buffers", "nodes"), MEASURED.values(), ids=MEASURED)
def test_the_cluster_autoscaler_orders_twice_without_ties(
    case: Case, buffers: bool, nodes: int
) -> None:
    assert Untied(case, buffers=buffers).play().nodes == nodes
    assert World(case, ClusterAutoscaler(), buffers=buffers).play().nodes == 8


def test_pods_that_take_headroom_by_surprise_wait_for_nodes_only_beyond_it() -> None:
    """The HPA is first: three pods are placed at once, the fourth orders its node at once."""
    played = World(Case(2, 6, 6, STEPS, hpa=9, nodepool=12, floor=3), ClusterAutoscaler()).play()
    assert (played.nodes, played.left) == (6, 0)
    assert played.wait < BOOT + 1
