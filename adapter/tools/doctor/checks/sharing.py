"""Checks of shared GPUs: time-slicing and MPS, MIG, DRA, resources with other names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from adapter.answers.causes.gpunodes import gpus_of
from adapter.pipeline.catalog.targetfit import MisfitKind
from adapter.pipeline.cluster import nodelabels
from adapter.pipeline.cluster.changes import ChangedObject
from adapter.pipeline.cluster.fixes import Fix
from adapter.tools.doctor.askedmetrics import targets
from adapter.tools.doctor.changedobjects import own_values
from adapter.tools.doctor.checks.hpas import metrics
from adapter.tools.doctor.claims import of_other_devices
from adapter.tools.doctor.facts import Facts
from adapter.tools.doctor.model import CheckSection, Finding, NotApplicableError, Severity, check
from adapter.tools.doctor.podcommands import describe
from adapter.tools.doctor.release import configmap_of
from adapter.tools.doctor.scaletargets import pods_of, target_of

_GPU: Final = re.compile(r"gpu|gaudi|mig-|npu|accelerator", re.IGNORECASE)


def _shared_nodes(facts: Facts) -> dict[str, str]:
    """Return the nodes whose GPUs several pods share -> how."""
    shared = {}
    for node in facts.nodes.read():
        node_facts = nodelabels.facts(node.metadata.labels)
        if node_facts.shared:
            shared[node.name] = node_facts.strategy or "replicas"
    return shared


@check(
    "GMA201",
    CheckSection.SHARING,
    "HPAs on shared GPUs do not scale on copied values",
    Severity.WARNING,
)
def copied_values(facts: Facts) -> Iterator[Finding]:
    """The pods of an HPA share GPUs by time-slicing or MPS, and `sharing.policy` is `copy`: more
    replicas do not lower the utilization of the whole GPU, so the HPA goes to its maximum.

    Set `sharing.policy: equal` or `memory`, use a metric of the inference server, or give each pod
    a GPU or a MIG instance (`docs/sharing.md`).
    """
    if facts.settings.sharing.policy != "copy" or facts.settings.sharing.rules:
        raise NotApplicableError("sharing.policy is not copy")
    shared = _shared_nodes(facts)
    for hpa, metric in metrics(facts):
        target = target_of(facts, hpa)
        if target is None or "gpu_util" not in metric.name.lower():
            continue
        on = sorted({pod.pod.node for pod in pods_of(facts, target)} & shared.keys())
        if on:
            yield Finding(
                hpa.subject,
                f"scales on {metric.name}, and node {on[0]} shares its GPUs ({shared[on[0]]}): "
                "each pod gets the value of the whole GPU",
                "set sharing.policy to equal or memory, or use a metric of the server",
                _share_equally(facts),
            )


def _share_equally(facts: Facts) -> Fix | str:
    """Return how the sharing policy is set; empty before the adapter is installed."""
    release = facts.release.value if facts.release.known else None
    if release is None:
        return ""
    edits = ChangedObject(
        "ConfigMap", release.workload.metadata.namespace, configmap_of(release.workload)
    )
    return own_values(release, {"config.sharing.policy": "equal"}, edits.kubectl("edit", ""))


@check("GMA202", CheckSection.SHARING, "pods request GPU resources that nodes offer")
def unoffered_resources(facts: Facts) -> Iterator[Finding]:
    """A pod requests a GPU resource that no node offers, such as `nvidia.com/gpu` where nodes offer
    `nvidia.com/mig-1g.5gb` (MIG's strategy `mixed`) or `nvidia.com/gpu.shared` (time-slicing). It
    stays Pending.

    Request a resource that the nodes offer.
    """
    resources = facts.gpu_resources
    offered = {name for node in facts.nodes.read() for name in gpus_of(node, resources)}
    reported = set()
    for pod in facts.gpu_pods:
        for resource in pod.pod.gpus:
            unknown = resource not in offered and resources.is_device(resource)
            name = (pod.pod.ref.namespace, resource, pod.pod.owner or pod.pod.ref)
            if not unknown or name in reported or pod.pod.phase != "Pending":
                continue
            reported.add(name)
            choices = ", ".join(sorted(offered)[:3]) or "no GPU resource"
            yield Finding(
                pod.subject,
                f"requests {resource}, and nodes offer {choices}: it stays Pending",
                "request a resource that the nodes offer",
                describe(pod),
            )


@check("GMA203", CheckSection.SHARING, "HPAs on MIG instances use metrics that MIG has")
def not_on_mig(facts: Facts) -> Iterator[Finding]:
    """An HPA or a ScaledObject asks for a metric that MIG instances do not have, such as
    `DCGM_FI_DEV_GPU_UTIL`.

    Use `gpu_utilization`: for instances it comes from `DCGM_FI_PROF_GR_ENGINE_ACTIVE` (GMA123 looks
    for this field).
    """
    for target in targets(facts):
        for misfit in target.misfits:
            if misfit.kind is MisfitKind.MIG:
                yield Finding(target.subject, misfit.text, *target.fix(misfit))


@check("GMA204", CheckSection.SHARING, "pods with resource claims are on pages", Severity.WARNING)
def claims(facts: Facts) -> Iterator[Finding]:
    """A pod holds its GPU through a ResourceClaim (DRA), and the exporter's page of its node does
    not name it. Claims of network cards are left out.

    Set `KUBERNETES_ENABLE_DRA=true` in dcgm-exporter 4.4.0 or newer.
    """
    known_claims = (facts.claims.value or ()) if facts.claims.known else ()
    pods = [
        pod
        for pod in facts.pods.read()
        if pod.pod.claims and not pod.pod.gpus and not pod.pod.finished
        if not of_other_devices(known_claims, pod.key)
    ]
    pages = facts.pages.read().values() if pods else ()
    for pod in pods:
        on = [page for page in pages if page.node == pod.pod.node and page.devices]
        if on and pod.pod.ready and not any(pod.key in page.named for page in on):
            namespace, _, name = on[0].pod.partition("/")
            yield Finding(
                pod.subject,
                f"has a resource claim and no other GPU, and the exporter on {pod.pod.node} does "
                "not name it",
                "set KUBERNETES_ENABLE_DRA=true for dcgm-exporter 4.4.0 or newer",
                f"kubectl -n {namespace} get pod {name} -o yaml",
            )


@check("GMA205", CheckSection.SHARING, "GPU resources have known names", Severity.WARNING)
def unknown_resource(facts: Facts) -> Iterator[Finding]:
    """A resource looks like a GPU, and `cluster.gpu_resources` does not match it. Until a sample
    names them, its pods are in no list, and `nodepool` does not count them.

    Add the resource to `cluster.gpu_resources`.
    """
    resources = facts.gpu_resources
    by_resource: dict[str, str] = {}
    for node in facts.nodes.read():
        for name in node.status.allocatable:
            if "/" in name and _GPU.search(name) and not resources.is_gpu(name):
                by_resource.setdefault(name, node.name)
    for name, node_name in by_resource.items():
        yield Finding(
            f"node {node_name}",
            f"offers {name}, which cluster.gpu_resources does not match",
            f"add {name} to cluster.gpu_resources in the settings",
            f"kubectl describe node {node_name}",
        )
