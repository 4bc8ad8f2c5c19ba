"""A GPU node without an exporter: which DaemonSet should be on it, and why it is not."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from adapter.pipeline.cluster.objects import SeenNode, read
from adapter.tools.doctor.daemonsets import SeenDaemonSet, read_daemonset
from adapter.tools.doctor.facts import Fact, Facts, UnreadError
from adapter.tools.doctor.model import Finding
from adapter.tools.doctor.runner import run
from tests.adapter.tools.doctor.clean import clean, node
from tests.adapter.tools.doctor.faults.exporters import only_on_a

LABELS = {"app.kubernetes.io/name": "dcgm-exporter"}


def daemonset(labels: dict[str, str] | None = None, **spec: Any) -> SeenDaemonSet:
    """The DaemonSet of an exporter."""
    containers = [{"name": "exporter", "image": "x"}]
    return read_daemonset(
        {
            "metadata": {"namespace": "gpu-operator", "name": "dcgm-exporter"},
            "spec": {
                "template": {
                    "metadata": {"labels": labels or LABELS},
                    "spec": {"containers": containers, **spec},
                }
            },
        }
    )


def affinity(*terms: list[dict[str, Any]]) -> dict[str, Any]:
    """A required node affinity."""
    rows = [{"matchExpressions": term} for term in terms]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": rows}}
    return {"nodeAffinity": required}


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    """A row of ``matchExpressions``."""
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def tainted(name: str, *taints: dict[str, str]) -> SeenNode:
    """A GPU node with taints."""
    allocatable = {"nvidia.com/gpu": "8"}
    ready = [{"type": "Ready", "status": "True"}]
    status = {"allocatable": allocatable, "conditions": ready}
    meta = {"name": name}
    return read({"metadata": meta, "spec": {"taints": list(taints)}, "status": status}, SeenNode)


def found(facts: Facts) -> Finding:
    """The finding about the node without an exporter."""
    ((finding,),) = (result.findings for result in run(facts, ("GMA101",)))
    return finding


def without_exporter(*daemonsets: SeenDaemonSet, on: SeenNode | None = None) -> Facts:
    """A cluster whose second node has no exporter."""
    facts = clean()
    only_on_a(facts)
    facts.daemonsets = Fact(daemonsets)
    if on is not None:
        facts.nodes = Fact([node("gpu-a"), on])
    return facts


def test_a_label_that_the_node_lacks_is_named_and_set() -> None:
    finding = found(without_exporter(daemonset(nodeSelector={"gpu-exporter": "true"})))
    assert finding.message.endswith(
        "DaemonSet gpu-operator/dcgm-exporter runs only on nodes with gpu-exporter=true, and "
        "gpu-b has no such label"
    )
    assert finding.command == "kubectl label node gpu-b gpu-exporter=true"


def test_a_label_with_another_value_is_shown_and_overwritten() -> None:
    on = node("gpu-b", labels={"exporter": "off"})
    finding = found(without_exporter(daemonset(nodeSelector={"exporter": "on"}), on=on))
    assert finding.message.endswith("and gpu-b has exporter=off")
    assert finding.command == "kubectl label node gpu-b exporter=on --overwrite"


@pytest.mark.parametrize(
    ("rows", "change"),
    [
        ([expression("pool", "In", "gpu", "old")], "pool=gpu"),
        ([expression("pool", "Exists")], "pool=true"),
        ([expression("virtual", "DoesNotExist"), expression("pool", "Exists")], "virtual- pool=t"),
    ],
)
def test_an_expression_of_the_affinity_leads_to_a_label(
    rows: list[dict[str, Any]], change: str
) -> None:
    on = node("gpu-b", labels={"virtual": "yes"})
    finding = found(without_exporter(daemonset(affinity=affinity(rows)), on=on))
    assert finding.command.startswith(f"kubectl label node gpu-b {change}")


def test_the_term_of_the_affinity_that_lacks_least_is_named() -> None:
    far = [expression("a", "Exists"), expression("b", "Exists")]
    near = [expression("c", "Exists")]
    finding = found(without_exporter(daemonset(affinity=affinity(far, near))))
    assert finding.command == "kubectl label node gpu-b c=true"


@pytest.mark.parametrize("key", ["kubernetes.io/arch", "node.kubernetes.io/instance-type"])
def test_a_label_of_the_cluster_is_not_set_by_hand(key: str) -> None:
    finding = found(without_exporter(daemonset(nodeSelector={key: "x"})))
    assert f"{key}=x" in finding.message
    assert finding.command == "kubectl -n gpu-operator edit daemonset dcgm-exporter"


@pytest.mark.parametrize("own", [[], [{"key": "other", "operator": "Exists"}]])
def test_a_taint_is_named_with_the_toleration_to_add(own: list[dict[str, str]]) -> None:
    taint = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
    soft = {"key": "soft", "effect": "PreferNoSchedule"}
    state = {"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}
    facts = without_exporter(daemonset(tolerations=own), on=tainted("gpu-b", taint, soft, state))
    finding = found(facts)
    assert "does not tolerate the taint nvidia.com/gpu=present:NoSchedule" in finding.message
    (change,) = json.loads(shlex.split(finding.command)[-1])
    row = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
    path = "/spec/template/spec/tolerations"
    assert change == (
        {"op": "add", "path": f"{path}/-", "value": row}
        if own
        else {"op": "add", "path": path, "value": [row]}
    )


def test_a_daemonset_that_selects_the_node_leads_to_its_events() -> None:
    tolerant = daemonset(tolerations=[{"operator": "Exists"}])
    taint = {"key": "nvidia.com/gpu", "effect": "NoExecute"}
    finding = found(without_exporter(tolerant, on=tainted("gpu-b", taint)))
    assert "selects the node, and has no pod on it" in finding.message
    assert finding.command == "kubectl -n gpu-operator describe daemonset dcgm-exporter"


def test_a_daemonset_of_another_vendor_or_program_is_not_named() -> None:
    amd = daemonset({"app.kubernetes.io/name": "metrics-exporter", "daemonset-name": "amd"})
    other = daemonset({"app": "node-exporter"})
    finding = found(without_exporter(other, amd))
    assert "DaemonSet" not in finding.message
    assert "spec.nodeName=gpu-b" in finding.command


def test_without_the_right_to_daemonsets_the_node_is_found_and_the_right_is_named() -> None:
    facts = without_exporter()
    facts.daemonsets = Fact(unread=UnreadError("bob may not list daemonsets.apps"))
    (result,) = run(facts, ("GMA101",))
    assert [finding.subject for finding in result.findings] == ["node gpu-b"]
    assert result.why == "bob may not list daemonsets.apps"
