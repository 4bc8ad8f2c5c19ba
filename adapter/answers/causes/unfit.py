"""Why no node fits a pod, where neither a taint nor a node without GPUs is the reason.

The scheduler counts the nodes by reason: ``0/9 nodes are available: 1 Insufficient nvidia.com/gpu,
8 node(s) ... node affinity/selector.`` That does not say which label no node has, or
who holds the GPUs; both are read here. What a node autoscaler says stands in events: the cluster
autoscaler's ``NotTriggerScaleUp``, a normal event (kubernetes/autoscaler issues 3268 and
5692), and Karpenter's ``FailedScheduling``.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from typing import Final

from adapter.answers.causes import fixes, gpunodes
from adapter.answers.causes.cause import Cause, CauseCode
from adapter.answers.causes.facts import KubeKey, pod_key
from adapter.answers.causes.target import Target, short
from adapter.figures import age, count
from adapter.pipeline.cluster.changes import ObjectChange
from adapter.pipeline.cluster.objects import SeenNode
from adapter.pipeline.cluster.podobjects import SeenPod

_ENDING: Final = 60.0
"""Seconds for which a pod may end: twice the usual grace period."""
_SHOWN: Final = 3
_PREFIX: Final = " trigger scale-up: "
_SIGNS: Final = (
    (
        ("max node group size reached", "max limit reached", "max cluster"),
        "raise the maximum size of the node group in the node autoscaler, or lower maxReplicas",
    ),
    (
        ("exceed limits for nodepool", "exceeded limit"),
        "raise spec.limits of the NodePool, or lower maxReplicas",
    ),
    (
        ("topology spread constraints",),
        (
            "add GPUs in the zone that has fewest of these pods, or set whenUnsatisfiable of the "
            "topologySpreadConstraints to ScheduleAnyway"
        ),
    ),
    (
        ("anti-affinity rules",),
        "add nodes, or make the anti-affinity a preferred one, or lower maxReplicas",
    ),
    (
        ("volume node affinity conflict",),
        "add GPU nodes in the zone of the volume, or use a volume of the zone of the GPU nodes",
    ),
    (("have free ports for",), "remove hostPort from the pod template, or add nodes"),
    (
        ("insufficient memory", "insufficient cpu", "insufficient ephemeral-storage"),
        "lower the requests of the pod template to what a node has free, or add larger nodes",
    ),
)
"""What the scheduler or a node autoscaler says, and what to do."""
_ADD: Final = "add nodes with what the scheduler names, or see why the node autoscaler does not"


def cause(
    target: Target,
    pods: Sequence[SeenPod],
    nodes: Sequence[SeenNode],
    names: Sequence[str],
    message: str,
) -> Cause:
    """Return why no node fits.

    Args:
        target: whose pods they are.
        pods: those without a node.
        nodes: that the pods select.
        names: the GPU resources that they ask for.
        message: of the scheduler.
    """
    lower = message.lower()
    if "persistentvolumeclaim" in lower:
        return _of_volume(target, pods, message)
    if "allocate all claims" in lower or "resourceclaim" in lower:
        return _of_devices(target, pods, message)
    if target.facts.nodes and not nodes and pods[0].spec.node_selector:
        return _of_selector(target, pods, message)
    said = _autoscaler(target, pods)
    found = f"{said.lower()} {lower}"
    fix = next((fix for signs, fix in _SIGNS if any(sign in found for sign in signs)), "")
    held = _held(target, pods, nodes, names)
    more = f"; the node autoscaler says: {said}" if said else ""
    if held is not None and (not fix or held.urgent):
        return _cause(target, pods, f"{held.text}{more}", held.fix, held.command)
    text = f"{message}{f'; {held.text}' if held is not None else ''}{more}"
    if missing := _not_offered(target, nodes, names):
        return _cause(target, pods, *missing, fixes.edit(target.changed))
    return _cause(target, pods, text, fix or _ADD, fixes.describe(pod_key(pods[0])))


def _cause(
    target: Target,
    pods: Sequence[SeenPod],
    text: str,
    fix: str,
    command: str | ObjectChange,
) -> Cause:
    rows = (pod.status.of("PodScheduled") for pod in pods)
    since = min((row.since for row in rows if row is not None and row.since), default=None)
    verb = "waits" if len(pods) == 1 else "wait"
    wait = f"{target.some(pods)} {verb} for a node{target.facts.ago(since)}"
    return target.cause(CauseCode.UNSCHEDULABLE, f"{wait}: {text}", fix, command, pods, since)


def _of_volume(target: Target, pods: Sequence[SeenPod], message: str) -> Cause:
    """A claim that is not bound; the reason stands in the claim's events."""
    namespace = target.hpa.namespace
    claims = [
        KubeKey(namespace, "PersistentVolumeClaim", row.persistent_volume_claim.claim_name)
        for row in pods[0].spec.volumes
        if row.persistent_volume_claim is not None
    ]
    for key in claims:
        rows = target.facts.events_of(key, "ProvisioningFailed", "FailedBinding")
        if why := max(rows, key=lambda row: row.last or 0.0, default=None):
            text = f"{message}: claim {key.name}: {short(why.message)}"
            break
    else:
        text = f"{message} (claim {', '.join(sorted(key.name for key in claims)) or 'unknown'})"
    fix = "create what its event names, or create the claim again with another storage class"
    if "not found" in text and "storageclass" in text.lower():
        fix = (
            "create the storage class that the claim names, or create the claim again with one "
            "that exists (kubectl get storageclass)"
        )
    return _cause(
        target, pods, text, fix, fixes.describe(claims[0] if claims else pod_key(pods[0]))
    )


def _of_devices(target: Target, pods: Sequence[SeenPod], message: str) -> Cause:
    """A claim of devices (DRA) for which no node has any."""
    slices = target.facts.slices
    drivers = sorted({row.spec.driver for row in slices or () if row.spec.driver})
    known = ""
    if drivers:
        known = f"; the drivers of this cluster are {', '.join(drivers[:_SHOWN])}"
    elif slices is not None:
        known = "; no driver has published a device: there is no ResourceSlice"
    claims = ", ".join(sorted(row.name for row in pods[0].spec.resource_claims)) or "devices"
    return _cause(
        target,
        pods,
        f"no node has a device for the claim {claims} ({message}){known}",
        "install the DRA driver of the claim's DeviceClass, or see its pods on the GPU nodes; or "
        "name a class in the claim whose devices exist",
        f"kubectl -n {shlex.quote(target.hpa.namespace)} describe resourceclaims",
    )


def _of_selector(target: Target, pods: Sequence[SeenPod], message: str) -> Cause:
    """A node selector that no node meets."""
    nodes = target.facts.nodes or ()
    lacks = []
    for key, value in pods[0].spec.node_selector.items():
        values = {node.metadata.labels[key] for node in nodes if key in node.metadata.labels}
        if value not in values:
            shown = ", ".join(sorted(values)[:_SHOWN])
            lacks.append(f"{key}={value} (nodes have {shown})" if values else f"{key}={value}")
    what = " and ".join(lacks) or "all labels of the node selector"
    return _cause(
        target,
        pods,
        f"no node has the label {what}" if lacks else f"no node has {what}: {message}",
        "correct nodeSelector in the pod template, or add nodes with this label",
        fixes.edit(target.changed),
    )


def _not_offered(
    target: Target, nodes: Sequence[SeenNode], names: Sequence[str]
) -> tuple[str, str] | None:
    """Return that no node which the pods select has their GPU resource; None if one does."""
    if not nodes or not names:
        return None
    offered = {
        name
        for node in nodes
        for name in node.status.capacity
        if target.facts.resources.is_device(name) and gpunodes.amount(node.status.capacity, name)
    }
    if not offered or offered & set(names):
        return None
    what = ", ".join(sorted(offered)[:_SHOWN])
    return (
        f"no node that they may use has {' or '.join(names)}; such nodes offer {what}",
        (
            "ask for a resource that the nodes offer in the pod template, or change the nodes' MIG "
            "configuration"
        ),
    )


class _Held:
    """Who has the GPUs of the nodes."""

    def __init__(self, text: str, fix: str, command: str, *, urgent: bool = False) -> None:
        self.text, self.fix, self.command = text, fix, command
        self.urgent = urgent
        """The holders are the cause, regardless of what a node autoscaler says."""


def _held(
    target: Target, pods: Sequence[SeenPod], nodes: Sequence[SeenNode], names: Sequence[str]
) -> _Held | None:
    """Return who holds the GPUs; None if a node has free ones, or nobody is known to hold any."""
    holders: list[SeenPod] = []
    for name in names:
        wanted = max(pod.pod.gpus.get(name, 0) for pod in pods)
        for node in nodes:
            has = gpunodes.amount(node.status.allocatable, name)
            rows = [pod for pod in target.facts.on_node(node.name) if pod.pod.gpus.get(name)]
            used = sum(pod.pod.gpus[name] for pod in rows)
            if has and has - used >= wanted:
                return None
            holders += rows if has else []
    if not holders:
        return None
    facts, own = target.facts, pods[0].spec.priority
    ending = [
        pod for pod in holders if pod.deleted is not None and facts.past(pod.deleted, _ENDING)
    ]
    if ending:
        return _ending(target, ending)
    whose: dict[str, int] = {}
    above = [pod for pod in holders if pod.spec.priority > own]
    for pod in above or holders:
        owner = str(facts.top(pod) or pod_key(pod))
        whose[owner] = whose.get(owner, 0) + sum(pod.pod.gpus.get(name, 0) for name in names)
    most = sorted(whose, key=lambda owner: -whose[owner])
    shown = ", ".join(f"{owner} {whose[owner]}" for owner in most[:_SHOWN])
    more = ", …" * (len(most) > _SHOWN)
    if above:
        highest = max(pod.spec.priority for pod in above)
        return _Held(
            f"pods of a higher priority ({highest} against {own}) hold the GPUs: {shown}{more}",
            "add GPU nodes, or give the pods a priorityClassName that is not below those pods",
            fixes.describe(pod_key(above[0])),
            urgent=True,
        )
    return _Held(
        f"every {' or '.join(names)} of the nodes is held: {shown}{more}",
        "add GPU nodes, let the node autoscaler do so, or make those workloads smaller",
        fixes.describe(pod_key(pods[0])),
    )


def _ending(target: Target, pods: Sequence[SeenPod]) -> _Held:
    """Pods that are being deleted and keep their GPUs."""
    first = min(pods, key=lambda pod: pod.deleted or 0.0)
    nodes = {node.name: node for node in target.facts.nodes or ()}
    node = nodes.get(first.pod.node)
    key = pod_key(first)
    others = f" and {count(len(pods) - 1, 'more pod')}" if len(pods) > 1 else ""
    text = (
        f"{key}{others} holds its GPU on node {first.pod.node} and has been ending for "
        f"{age(target.facts.now - (first.deleted or target.facts.now))}"
    )
    if node is not None and node.status.of("Ready") is not None and not node.ready:
        return _Held(
            f"{text}: the node is not Ready",
            "repair the node; if its machine is gone for good, delete the Node object, and its "
            "pods are removed",
            f"kubectl describe node {shlex.quote(node.name)}",
            urgent=True,
        )
    if first.finalizers:
        body = shlex.quote(json.dumps({"metadata": {"finalizers": None}}))
        return _Held(
            f"{text}: nobody removes the finalizer {', '.join(first.finalizers)}",
            "see why the program of the finalizer does not run; if it is gone, remove the "
            "finalizer",
            fixes.on(key, "patch", f"--type=merge -p {body}"),
            urgent=True,
        )
    return _Held(
        text,
        "see why its containers do not end: a long terminationGracePeriodSeconds, or a process "
        "that hangs in the driver",
        fixes.describe(key),
        urgent=True,
    )


def _autoscaler(target: Target, pods: Sequence[SeenPod]) -> str:
    """Return what a node autoscaler last said of these pods; empty if it said nothing."""
    rows = [
        row
        for pod in pods
        for row in target.facts.events_of(pod_key(pod), "NotTriggerScaleUp", "FailedScheduling")
        if row.reason == "NotTriggerScaleUp" or "nodepool" in row.message.lower()
    ]
    last = max(rows, key=lambda row: row.last or 0.0, default=None)
    return "" if last is None else short(last.message.rpartition(_PREFIX)[2])
