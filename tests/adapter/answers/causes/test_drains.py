"""What keeps a node from being emptied: budgets, annotations, pods that nobody creates again."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from adapter.answers.causes import drains
from adapter.pipeline.cluster.evictions import SeenBudget
from adapter.pipeline.cluster.objects import SeenEvent, SeenNode, SeenNodeClaim, read
from adapter.pipeline.cluster.podobjects import SeenPod, read_pod

Json = dict[str, Any]
NOW = 1_790_000_000.0
AGO = "2026-09-21T14:00:00Z"  # 800 seconds before
OWNER: Json = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "llm-1", "uid": "u"}
OF_KARPENTER = {"karpenter.sh/nodepool": "gpu"}
NOTED = {"karpenter.sh/do-not-disrupt": "true"}
UNSAFE = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}


def node(
    labels: Json | None = None, notes: Json | None = None, taints: tuple[str, ...] = (), **spec: Any
) -> SeenNode:
    spec["taints"] = [{"key": key, "effect": "NoSchedule"} for key in taints]
    meta = {"name": "n1", "labels": labels or {}, "annotations": notes or {}}
    return read({"metadata": meta, "spec": spec}, SeenNode)


def pod(name: str, notes: Json | None = None, owner: Json | None = OWNER, **more: Any) -> SeenPod:
    ready = "True" if more.pop("ready", True) else "False"
    meta: Json = {"name": name, "namespace": "chat", "labels": {"app": "llm"}, "uid": name}
    meta |= {"annotations": notes or {}, **more}
    meta["ownerReferences"] = [owner | {"controller": True}] if owner else []
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]}
    return read_pod({"metadata": meta, "spec": {"nodeName": "n1"}, "status": status})


def budget(allowed: int = 0, healthy: int = 2, wanted: int = 2, of: int = 2, **spec: Any) -> Any:
    status = {
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": wanted,
        "expectedPods": of,
    }
    spec.setdefault("selector", {"matchLabels": {"app": "llm"}})
    meta = {"name": "llm", "namespace": "chat", **spec.pop("meta", {})}
    return read({"metadata": meta, "spec": spec, "status": status}, SeenBudget)


def kept(
    of: SeenNode, *pods: SeenPod, budgets: tuple[Any, ...] = (), structural: bool = False
) -> list[str]:
    """What keeps a node, each with fix and command."""
    rows = list(drains.keepers(of, pods, budgets, structural=structural))
    for row in rows:
        assert shlex.split(row.command)[0] == "kubectl"
        assert "\n" not in row.text
    return [f"{row.text} | {row.fix} | {row.command}" for row in rows]


BY_BUDGET = {
    "as many as there are": (
        budget(minAvailable=2),
        "(minAvailable 2): it allows no eviction of 1 pod (chat/a), also while all are ready",
        '{"spec":{"minAvailable":null,"maxUnavailable":1}}',
    ),
    "none at all": (budget(maxUnavailable=0), "(maxUnavailable 0)", "kubectl -n chat patch"),
    "every pod, by an empty selector": (budget(maxUnavailable=0, selector={}), "chat/llm", "fix"),
    "the others are not ready": (
        budget(healthy=1, wanted=1, of=2, minAvailable=1),
        "1 are ready, and 1 have to be",
        "see why the other pods of the budget are not ready",
    ),
}


@pytest.mark.parametrize("name", BY_BUDGET)
def test_a_budget_without_an_eviction_keeps_the_node(name: str) -> None:
    of, text, fix = BY_BUDGET[name]
    (message,) = kept(node(), pod("a"), budgets=(of,))
    assert text in message
    assert fix.replace("fix", "") in message


OPEN = {
    "it allows one": budget(allowed=1),
    "of other pods": budget(selector={"matchLabels": {"app": "other"}}),
    "of no pod": budget(selector=None),
    "whose pods are not counted yet": budget(of=0, wanted=0),
}


@pytest.mark.parametrize("name", OPEN)
def test_another_budget_keeps_nothing(name: str) -> None:
    assert kept(node(), pod("a"), budgets=(OPEN[name],)) == []


def test_a_pod_that_is_not_ready_may_go_if_the_others_are_enough() -> None:
    assert kept(node(), pod("a", ready=False), budgets=(budget(),)) == []
    few = budget(healthy=1)
    assert len(kept(node(), pod("a", ready=False), budgets=(few,))) == 1
    always = budget(healthy=1, unhealthyPodEvictionPolicy="AlwaysAllow")
    assert kept(node(), pod("a", ready=False), budgets=(always,)) == []


def test_a_budget_of_helm_is_changed_in_its_values() -> None:
    notes = {"meta.helm.sh/release-name": "llm", "meta.helm.sh/release-namespace": "chat"}
    meta = {"labels": {"app.kubernetes.io/managed-by": "Helm"}, "annotations": notes}
    (of,) = drains.keepers(
        node(), [pod("a")], [budget(minAvailable=2, meta=meta)], structural=False
    )
    advice = f"{of.fix} {of.command}"
    assert "values" in advice
    assert "kubectl -n chat patch" not in advice


def test_the_annotations_count_of_the_autoscaler_that_has_the_node() -> None:
    ours, other = node(OF_KARPENTER), node()
    (message,) = kept(ours, pod("a", NOTED), pod("b", UNSAFE), pod("c", owner=None))
    assert "karpenter.sh/do-not-disrupt" in message
    assert "pod (chat/a)" in message
    unsafe, bare = kept(other, pod("a", NOTED), pod("b", UNSAFE), pod("c", owner=None))
    assert "safe-to-evict" in unsafe
    assert "1 pod (chat/c): nothing would create it again" in bare
    (message,) = kept(node(OF_KARPENTER, NOTED))
    assert "by its own annotation" in message
    (message,) = kept(node({}, {"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"}))
    assert "scale-down-disabled-" in message


def test_daemons_static_pods_and_finished_pods_keep_nothing() -> None:
    daemon, static = {**OWNER, "kind": "DaemonSet"}, {**OWNER, "kind": "Node"}
    pods = [pod("a", owner=daemon), pod("b", owner=static)]
    pods.append(pod("c", UNSAFE, deletionTimestamp=AGO))
    assert kept(node(), *pods, budgets=(budget(),)) == []


def test_what_somebody_asked_for_is_said_only_of_a_node_that_leaves() -> None:
    assert kept(node(), pod("a", UNSAFE), pod("b", owner=None), structural=True) == []
    passing = budget(healthy=1, wanted=1, of=2)
    assert kept(node(), pod("a"), budgets=(passing,), structural=True) == []
    assert len(kept(node(), pod("a"), budgets=(budget(),), structural=True)) == 1


def event(
    reason: str, message: str, at: str = AGO, kind: str = "Node", first: str = ""
) -> SeenEvent:
    about = {"kind": kind, "name": "n1"}
    row = {"involvedObject": about, "reason": reason, "message": message, "lastTimestamp": at}
    return read(row | {"firstTimestamp": first or at}, SeenEvent)


DRAIN = "Failed to drain node, 3 pods are waiting to be evicted"
PDB = "Pdb prevents pod evictions (PodDisruptionBudget=[chat/llm])"


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (event("DisruptionBlocked", PDB), f"Karpenter cannot remove it: {PDB}"),
        (event("FailedDraining", DRAIN, first="2026-09-21T13:50:00Z"), "Karpenter cannot"),
        (event("FailedDraining", DRAIN), ""),
        (event("DisruptionBlocked", "Node is not initialized"), ""),
        (event("ScaleDownFailed", "failed to drain the node"), "the cluster autoscaler cannot"),
        (event("DisruptionBlocked", "Node is nominated for a pending pod"), ""),
        (event("DisruptionBlocked", PDB, kind="NodeClaim"), ""),
        (event("DisruptionBlocked", PDB, "2026-09-21T12:00:00Z"), ""),
        (event("Unconsolidatable", "No cheaper node replaces it"), ""),
    ],
)
def test_events_say_what_keeps_a_node(row: SeenEvent, said: str) -> None:
    blocked = drains.blocked_nodes([row], NOW)
    assert blocked.get("n1", "").startswith(said)
    assert bool(blocked) == bool(said)


def drifted(status: str) -> SeenNodeClaim:
    row = {"type": "Drifted", "status": status, "reason": "NodePoolDrifted"}
    row["lastTransitionTime"] = AGO
    return read({"status": {"nodeName": "n1", "conditions": [row]}}, SeenNodeClaim)


def test_who_wants_to_remove_a_node() -> None:
    assert drains.why_leaving(node(), [], NOW) == ""
    assert drains.why_leaving(node(unschedulable=True), [], NOW) == "is cordoned"
    words = drains.why_leaving(node(taints=("karpenter.sh/disrupted",)), [], NOW)
    assert words.endswith("Karpenter is removing it")
    assert "(Drifted: NodePoolDrifted)" in drains.why_leaving(node(), [drifted("True")], NOW)
    assert drains.why_leaving(node(), [drifted("False")], NOW) == ""
