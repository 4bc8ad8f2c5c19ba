"""Checks of nodepool: autoscaler, CapacityBuffers, priority, quota, caps, shapes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from adapter.answers.causes.gpunodes import gpus_of
from adapter.config.settings import Settings
from adapter.hpa import quantity
from adapter.pipeline.cluster.changes import edit
from adapter.pipeline.cluster.fixes import make_lasting
from adapter.pipeline.cluster.gpuresources import GpuResources
from adapter.pipeline.cluster.workloadobjects import SeenWorkload
from adapter.tools.doctor.changedobjects import changed_workload
from adapter.tools.doctor.facts import Facts
from adapter.tools.doctor.model import (
    CheckSection,
    Finding,
    FindingEffect,
    NotApplicableError,
    Severity,
    check,
)
from adapter.tools.doctor.release import Release
from adapter.tools.doctor.scaletargets import target_of

_LOWEST = -10
"""The cluster-autoscaler ignores pods below (``--expendable-pods-priority-cutoff``)."""
_BUFFERS = "autoscaling.x-k8s.io"


def _release(facts: Facts) -> Release:
    release = facts.nodepool.read()
    if release is None:
        raise NotApplicableError("nodepool is not installed")
    return release


def _settings(release: Release) -> Settings:
    return release.settings or Settings()


@check("GMA601", CheckSection.NODEPOOL, "a node autoscaler runs", Severity.WARNING)
def no_autoscaler(facts: Facts) -> Iterator[Finding]:
    """nodepool is installed, and no cluster-autoscaler (by its status in `kube-system`), Karpenter
    or managed node pools were found. Headroom then waits without a new node.

    Install a node autoscaler, or ignore this if it runs where it cannot be seen.
    """
    _release(facts)
    if not facts.autoscaler.read():
        yield Finding(
            "cluster",
            "no node autoscaler was found, so no node is added for headroom",
            "install the cluster-autoscaler or Karpenter",
            "kubectl -n kube-system get configmap cluster-autoscaler-status --ignore-not-found",
        )


@check(
    "GMA602",
    CheckSection.NODEPOOL,
    "CapacityBuffers are served if the settings ask for them",
    effect=FindingEffect.FAULT,
)
def no_buffers(facts: Facts) -> Iterator[Finding]:
    """`nodepool.provisioning_method` is `buffer`, and the API server does not serve
    CapacityBuffers. No headroom is ordered.

    Install the CRD and turn the autoscaler's feature on (`docs/nodepool.md`), or set
    `nodepool.provisioning_method: auto`.
    """
    settings = _settings(_release(facts)).nodepool
    if settings.provisioning_method != "buffer":
        raise NotApplicableError("nodepool.provisioning_method is not buffer")
    served = facts.groups.read().get(_BUFFERS, frozenset())
    if not served & {"v1alpha1", "v1beta1"}:
        yield Finding(
            "crd capacitybuffers.autoscaling.x-k8s.io",
            "is not served, and nodepool.provisioning_method is buffer: no headroom is ordered",
            "install the CRD and turn the feature on, or set nodepool.provisioning_method to auto",
            "kubectl get crd capacitybuffers.autoscaling.x-k8s.io --ignore-not-found",
        )


@check(
    "GMA603",
    CheckSection.NODEPOOL,
    "the PriorityClass of placeholder pods is below workloads",
    effect=FindingEffect.FAULT,
)
def priority(facts: Facts) -> Iterator[Finding]:
    """The class in `nodepool.placeholder.priority_class` does not exist, is not below 0, so that
    placeholder pods do not give way, or is below -10, where the cluster-autoscaler ignores pods.

    Apply the chart again, which creates the class with -10.
    """
    settings = _settings(_release(facts)).nodepool
    name = settings.placeholder.priority_class
    pod_class = next((p for p in facts.priorityclasses.read() if p.metadata.name == name), None)
    if settings.provisioning_method == "buffer":
        raise NotApplicableError("CapacityBuffers need no placeholder pods")
    if pod_class is None:
        wrong = "does not exist, so no placeholder pod can be created"
    elif pod_class.value >= 0:
        wrong = f"has value {pod_class.value}, so placeholder pods do not give way to workloads"
    elif pod_class.value < _LOWEST:
        wrong = f"has value {pod_class.value}: the cluster-autoscaler ignores pods below {_LOWEST}"
    else:
        return
    yield Finding(
        f"priorityclass {name}",
        wrong,
        f"create it with value {_LOWEST}, or apply the chart again",
        f"kubectl create priorityclass {name} --value={_LOWEST}",
    )


@check("GMA604", CheckSection.NODEPOOL, "quotas leave room for headroom", Severity.WARNING)
def quota(facts: Facts) -> Iterator[Finding]:
    """A ResourceQuota in the namespace of nodepool leaves no room for placeholder pods.

    Raise the quota, or install nodepool in a namespace without one.
    """
    namespace, resources = _release(facts).workload.metadata.namespace, facts.gpu_resources
    for row in facts.quotas.read():
        if row.metadata.namespace != namespace:
            continue
        hard = row.status.hard or row.spec.hard
        for name, most in hard.items():
            counted = name in ("pods", "count/pods") or resources.is_gpu(
                name.removeprefix("requests.")
            )
            used = row.status.used.get(name)  # None until the quota controller has counted
            if counted and used is not None and quantity.parse(used) >= quantity.parse(most):
                yield Finding(
                    f"resourcequota {namespace}/{row.metadata.name}",
                    f"{name} is used up: {used} of {most}",
                    "raise the quota, or install nodepool in another namespace",
                    f"kubectl -n {namespace} describe resourcequota {row.metadata.name}",
                )


def _gpus(workload: SeenWorkload, resources: GpuResources) -> int:
    """Return the GPUs that one pod of a workload requests."""
    amounts: Counter[str] = Counter()
    for container in workload.spec.template.spec.containers:
        limits = container.resources.limits.items()
        amounts.update({name: int(quantity.parse(amount)) for name, amount in limits})
    return sum(resources.devices(amounts).values())


def _scaled_workloads(facts: Facts) -> dict[str, tuple[SeenWorkload, int]]:
    """Return the workloads with GPUs that HPAs scale, with the GPUs of one pod."""
    resources = facts.gpu_resources
    workloads = {}
    for hpa in facts.hpas.read():
        target = target_of(facts, hpa)
        if target is not None and (count := _gpus(target, resources)):
            workloads[target.key] = (target, count)
    return workloads


@check("GMA605", CheckSection.NODEPOOL, "caps let headroom exist", Severity.WARNING)
def caps(facts: Facts) -> Iterator[Finding]:
    """`max_pods` is 0, or one pod of a workload needs more GPUs than `max_gpus_per_pool`. This
    workload never gets headroom.

    Raise the cap in `nodepool.limits`.
    """
    release = _release(facts)
    limits = _settings(release).nodepool.limits
    where = release.workload.metadata.namespace
    see = f"kubectl -n {where} get configmap {release.workload.metadata.name} -o yaml"
    if limits.max_pods == 0:
        text = "is 0, so no workload gets headroom"
        yield Finding("nodepool.limits.max_pods", text, "raise nodepool.limits.max_pods", see)
    for workload, count in _scaled_workloads(facts).values():
        if count > limits.max_gpus_per_pool:
            yield Finding(
                f"{workload.kind.lower()} {workload.key}",
                f"one pod needs {count} GPUs, and nodepool.limits.max_gpus_per_pool is "
                f"{limits.max_gpus_per_pool}: it never gets headroom",
                f"set nodepool.limits.max_gpus_per_pool to {count} or more",
                see,
            )


@check("GMA606", CheckSection.NODEPOOL, "nodes can hold the pods that HPAs scale")
def shapes(facts: Facts) -> Iterator[Finding]:
    """One pod requests more GPUs than any node offers. It stays Pending, unless the autoscaler has
    an empty node pool with larger nodes.

    Add a node pool with larger nodes, or request fewer GPUs.
    """
    resources = facts.gpu_resources
    offers = [sum(gpus_of(node, resources).values()) for node in facts.nodes.read()]
    most = max(offers, default=0)
    if not most:
        raise NotApplicableError("no node offers a GPU")
    for workload, count in _scaled_workloads(facts).values():
        if count > most:
            of = changed_workload(workload)
            yield Finding(
                f"{workload.kind.lower()} {workload.key}",
                f"one pod needs {count} GPUs, and the largest node offers {most}",
                "add a node pool with larger nodes, or request fewer GPUs for each pod",
                make_lasting(of, edit(of, "request fewer GPUs for each pod")),
            )
