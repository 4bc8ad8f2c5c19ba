"""Checks of nodes: they offer GPUs, and are Ready."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from adapter.answers.causes import CauseCode, drains, gpunodes, nodeautoscalers
from adapter.answers.causes.gpunodes import gpus_of
from adapter.pipeline.cluster.gpuresources import STANDARD
from adapter.pipeline.cluster.nodelabels import has_gpus
from adapter.pipeline.cluster.objects import SeenNode
from adapter.pipeline.cluster.podobjects import SeenPod
from adapter.tools.doctor.facts import Facts, UnreadError
from adapter.tools.doctor.hpacauses import of_codes
from adapter.tools.doctor.model import CheckSection, Finding, FindingEffect, Severity, check


@check("GMA012", CheckSection.CLUSTER, "nodes offer GPUs")
def no_gpus(facts: Facts) -> Iterator[Finding]:
    """No node offers a GPU and no exporter reports one, a node with the label of GPU nodes offers
    none, or a node offers fewer (`allocatable`) than it has (`capacity`). Or a label says that the
    node's operator failed: a driver upgrade (`…-driver-upgrade-state=upgrade-failed`), a MIG layout
    (`nvidia.com/mig.config.state=failed`) or AMD's partitions
    (`dcm.amd.com/gpu-config-profile-state=failure`).

    Install the vendor's device plugin, or see the log of its pod on the node. Add a resource with a
    name of its own to `cluster.gpu_resources`.
    """
    nodes = facts.nodes.read()
    resources = facts.gpu_resources if facts.settings.cluster.gpu_resources else STANDARD
    equipped = {node.name for node in nodes if gpus_of(node, resources)}
    marked = [node for node in nodes if has_gpus(node.metadata.labels)]
    slices = (facts.slices.value or ()) if facts.slices.known else ()
    pods = facts.pods.value or () if facts.pods.known else ()
    lacking = list(gpunodes.causes(nodes, resources, gpunodes.dra_nodes(slices), pods=pods))
    waiting = _waiting_hpas(facts) if lacking else {}
    for cause in lacking:
        hpas = waiting.get(cause.subject, [])
        more = f"; pods of {', '.join(hpas[:3])} wait for it" if hpas else ""
        severity = Severity.WARNING if cause.subject.removeprefix("node ") in equipped else None
        effect = FindingEffect.CAUSE if hpas else None
        yield Finding(cause.subject, cause.text + more, cause.fix, cause.command, severity, effect)
    pages = (facts.pages.value or {}).values() if facts.pages.known else ()
    if not equipped and not marked and not lacking and not any(page.devices for page in pages):
        yield Finding(
            "cluster",
            "no node offers a GPU (nvidia.com/gpu, amd.com/gpu, …), and no page has a device",
            "add GPU nodes and install the vendor's device plugin; if the resource has a name of "
            "its own, add it to cluster.gpu_resources",
            "kubectl get nodes -o custom-columns=NAME:.metadata.name,HAS:.status.allocatable",
            Severity.WARNING,
        )


def _waiting_hpas(facts: Facts) -> dict[str, list[str]]:
    """Return node -> the HPAs whose pods wait for its GPUs, as far as they are known."""
    try:
        rows = of_codes(facts, CauseCode.GPUS_UNAVAILABLE)
    except UnreadError:
        return {}
    hpas_by_node: dict[str, list[str]] = {}
    for hpa, cause in rows:
        hpas_by_node.setdefault(cause.subject, []).append(hpa.subject)
    return hpas_by_node


@check(
    "GMA013",
    CheckSection.CLUSTER,
    "GPU nodes are Ready",
    Severity.WARNING,
    effect=FindingEffect.CAUSE,
)
def not_ready(facts: Facts) -> Iterator[Finding]:
    """The pods of the node have no values after the age limit, so HPAs do not scale in.

    See the conditions of the node.
    """
    resources = facts.gpu_resources
    for node in facts.nodes.read():
        if gpus_of(node, resources) and not node.ready:
            yield Finding(
                f"node {node.name}",
                "is not Ready",
                "see the conditions of the node",
                f"kubectl describe node {node.name}",
            )


@check("GMA015", CheckSection.CLUSTER, "GPU nodes can be emptied", Severity.WARNING)
def kept_nodes(facts: Facts) -> Iterator[Finding]:
    """Karpenter, the cluster autoscaler or a person removes a node, and a PodDisruptionBudget, the
    annotation `karpenter.sh/do-not-disrupt` or `safe-to-evict`, or a pod without a controller keeps
    its pods there. The node costs money, and no pod starts there. A budget that allows no eviction
    while all of its pods are ready (`minAvailable` as many as there are pods, `maxUnavailable: 0`)
    is reported before anybody removes the node.

    Let the budget allow one eviction at a time.
    """
    nodes = [row for row in facts.nodes.read() if _has_gpus(facts, row)]
    claims = (facts.node_claims.value or ()) if facts.node_claims.known else ()
    events = (facts.node_events.value or ()) if facts.node_events.known else ()
    blocked = drains.blocked_nodes(events, facts.now)
    pods: dict[str, list[SeenPod]] = {node.name: [] for node in nodes}
    for pod in facts.pods.read():
        if (node_pods := pods.get(pod.pod.node)) is not None:
            node_pods.append(pod)
    budgets = facts.budgets.value or () if facts.budgets.known else ()
    findings: dict[tuple[str, str], list[Finding]] = {}
    for node in nodes:
        why = drains.why_leaving(node, claims, facts.now) or blocked.get(node.name, "")
        causes = list(drains.keepers(node, pods[node.name], budgets, structural=not why))
        for cause in causes:
            text = f"{why}, and {cause.text}" if why else cause.text
            row = Finding(f"node {node.name}", text, cause.fix, cause.command)
            findings.setdefault((cause.subject, cause.command), []).append(row)
        if not causes and node.name in blocked:
            command = f"kubectl describe node {shlex.quote(node.name)}"
            row = Finding(f"node {node.name}", why, "see the events of the node", command)
            findings[node.name, command] = [row]
    for first, *others in findings.values():
        yield first._replace(concerns=tuple(row.subject for row in others))
    for fact in (facts.budgets, facts.node_events, facts.node_claims):
        fact.read()


def _has_gpus(facts: Facts, node: SeenNode) -> bool:
    return bool(gpus_of(node, facts.gpu_resources)) or has_gpus(node.metadata.labels)


@check("GMA016", CheckSection.CLUSTER, "Karpenter gets the nodes that it orders", Severity.WARNING)
def not_ordered(facts: Facts) -> Iterator[Finding]:
    """A NodeClaim of Karpenter is not launched, has not joined the cluster, or is not initialized,
    or the cloud has no such machine (`InsufficientCapacityError`).

    Allow further machine types, zones or capacity types in the NodePool; for a machine that does
    not join, see its NodeClass and its kubelet.
    """
    claims = facts.node_claims.read()
    events = (facts.node_events.value or ()) if facts.node_events.known else ()
    for subject, text, command in nodeautoscalers.troubles(claims, events, facts.now):
        words = "allow further machines in the NodePool, or correct what its NodeClass says"
        yield Finding(subject, text, words, command)
    facts.node_events.read()
