"""Jumps of demand with independent timing of HPA controller, node autoscaler and plan.

The autoscaler behaves like the real ones: a second after the last change, it orders a node for each
pending pod and each pod of headroom. It does not withdraw orders.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from adapter.hpa import HpaState, Observation, PodState, decide, from_manifest
from adapter.nodepool.learn.pace import NEW, after_next_sync, follow
from adapter.nodepool.model.capacity import Capacity
from adapter.nodepool.model.demand import Demand, WorkloadRef
from adapter.nodepool.plan.limits import Limits
from adapter.nodepool.plan.plan import plan
from tests.adapter.nodepool.planning import GPU, NOW, applied, pool

STEP = 0.1
LASTS = 150.0
PERIOD = 15.0
EVENTS = 0.5
"""Seconds from a change of pods to the end of the round that it starts."""
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
                "maxReplicas": self.most,
                "metrics": [{"type": "External", "external": metric}],
                **rules,
            },
        }


@st.composite
def cases(draw: st.DrawFn) -> Case:
    before = draw(st.integers(1, 10))
    return Case(
        before,
        draw(st.integers(before, 30)),
        draw(st.integers(before, 30)),
        draw(st.none() | st.tuples(st.integers(1, 6), st.sampled_from((15, 30, 60)))),
        draw(st.floats(0, PERIOD)),
        draw(st.floats(0, PERIOD)),
    )


def play(case: Case) -> tuple[int, int]:
    """The nodes at the end, and the maximum headroom."""
    spec, state, pace = from_manifest(case.manifest()), HpaState(), NEW
    pods = nodes = case.before
    at = Capacity((), {"gpu": pool()})
    hpa, full, event, calm = case.hpa, case.nodepool, float("inf"), float("inf")
    most = 0
    for tick in range(int(LASTS / STEP)):
        second = tick * STEP
        now = NOW + second
        if second >= hpa:
            hpa += PERIOD
            seen = Observation(
                pods, [PodState(str(name)) for name in range(pods)], ([case.after * 1000],)
            )
            decision, state = decide(spec, state, seen, now)
            if decision.rescale:
                pods, event, calm = decision.desired, second + EVENTS, second + 1
        if second >= full or second >= event:
            full += PERIOD if second >= full else 0
            event = float("inf")
            pace = follow(pace, pods, case.after, now)
            row = Demand(
                workload=WorkloadRef("ml", "Deployment", "w"),
                shape=GPU,
                bound=min(pods, nodes),
                pending=max(0, pods - nodes),
                wanted=case.after,
                max_replicas=case.most,
                known_at=now,
                asked=pods,
                coming=after_next_sync(spec, pace, pods, case.after, now),
            )
            decided = plan([row], at, LIMITS, now)
            before, at = at.headroom, applied(decided, at)
            if before != at.headroom:
                calm = second + 1
        if second >= calm:
            calm = float("inf")
            held = sum(each.replicas for each in at.headroom)
            most = max(most, held)
            nodes = max(nodes, pods + held)
    return nodes, most


@given(cases())
def test_nodes_ordered_do_not_exceed_the_final_pods(case: Case) -> None:
    nodes, _ = play(case)
    assert nodes <= max(case.before, min(case.after, case.most))


def test_nodes_are_ordered_ahead_for_pods_that_policies_delay() -> None:
    nodes, most = play(Case(2, 12, 20, (1, 60), hpa=10, nodepool=1))
    assert (nodes, most) == (12, 9)
