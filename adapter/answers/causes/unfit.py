"""Why no node fits a pod, where neither a taint nor a node without GPUs is the reason.

The scheduler counts the nodes by reason: ``0/9 nodes are available: 1 Insufficient nvidia.com/gpu,
8 node(s) ... node affinity/selector.`` That does not say which label no node has, which request is
larger than every node, or who holds the GPUs; these are read here.
What node autoscalers say is in :mod:`adapter.answers.causes.nodeautoscalers`.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Final, NamedTuple

from adapter.answers.causes import fixes, gpunodes, nodeautoscalers
from adapter.answers.causes.amounts import find_amount_holders, number, requested_amounts
from adapter.answers.causes.cause import Cause, CauseCode
from adapter.answers.causes.facts import KubeKey, pod_key
from adapter.answers.causes.holders import find_gpu_holders
from adapter.answers.causes.placesigns import AMOUNTS, CLAIMS, LABELS, NEW_NODE, PLACES, VOLUME_ZONE
from adapter.answers.causes.signs import Sign, sign_of
from adapter.answers.causes.target import Target, shorten
from adapter.pipeline.cluster.changes import ObjectChange
from adapter.pipeline.cluster.objects import SeenNode
from adapter.pipeline.cluster.podobjects import SeenPod

_SHOWN: Final = 3
_ADD: Final = "add nodes with what the scheduler names, or see why the node autoscaler does not"


_VOLUMES: Final = (
    "kubectl get pv -o custom-columns=CLAIM:.spec.claimRef.name,NODES:.spec.nodeAffinity.required"
)
"""Shows the nodes to which the volumes of claims are bound."""


class _Lack(NamedTuple):
    """What keeps the pods from the nodes."""

    text: str
    fix: str


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
    if "persistentvolume" in lower or "persistent volume" in lower:
        return _of_volume(target, pods, message)
    if "allocate all claims" in lower or "resourceclaim" in lower or "deviceclass" in lower:
        return _of_devices(target, pods, message)
    change = fixes.edit(target.changed)
    short_of = [name for name in names if f"insufficient {name}".lower() in lower]
    verdict = nodeautoscalers.last_verdict(target.facts, pods)
    lack = (
        _missing_labels(target, pods, nodes)
        or _missing_resources(target, nodes, short_of, scaling=bool(verdict))
        or _too_large_request(pods[0], nodes, lower)
    )
    if lack is not None:
        return _cause(target, pods, lack.text, lack.fix, change)
    signs = _signs(f"{verdict.lower()} {lower}")
    if not signs and verdict.partition("nsufficient ")[1]:
        signs = [NEW_NODE]  # the autoscaler counts what a new node would lack
    lacks = find_amount_holders(target, pods, nodes, names, message)
    holder = find_gpu_holders(target, pods, nodes, names) or lacks
    more = f"; the node autoscaler says: {verdict}" if verdict else ""
    if holder is not None and (not signs or holder.urgent):
        return _cause(target, pods, f"{holder.text}{more}", holder.fix, holder.command)
    text = f"{message}{f'; {holder.text}' if holder is not None else ''}{more}"
    if not signs:
        return _cause(target, pods, text, _ADD, fixes.describe(pod_key(pods[0])))
    fix = "; or ".join(
        lacks.fix if lacks is not None and sign is AMOUNTS else sign.fix for sign in signs[:_SHOWN]
    )
    claims = _claims(target, pods)
    if signs[0] is VOLUME_ZONE and claims:
        command: str | ObjectChange = _VOLUMES
        text += f"; the claim{'s' if len(claims) > 1 else ''} {_names(claims)}"
    else:
        command = change if signs[0].template else fixes.describe(pod_key(pods[0]))
    return _cause(target, pods, text, fix, command)


def _claims(target: Target, pods: Sequence[SeenPod]) -> list[KubeKey]:
    """Return the claims of volumes that pods name."""
    return [
        KubeKey(
            target.hpa.namespace, "PersistentVolumeClaim", row.persistent_volume_claim.claim_name
        )
        for row in pods[0].spec.volumes
        if row.persistent_volume_claim is not None
    ]


def _names(claims: Sequence[KubeKey]) -> str:
    return ", ".join(sorted(key.name for key in claims))


def _signs(message: str) -> list[Sign]:
    """Return what each reason of the scheduler means: labels and taints of nodes count if they are
    the only reason, because nodes of other kinds have them in every cluster."""
    signs = [sign for sign in PLACES if sign_of([sign], message)]
    return [sign for sign in signs if sign not in LABELS] or signs


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


def unseen_pods(target: Target, pods: Sequence[SeenPod]) -> Cause:
    """Return that no scheduler has looked at pods: they have no condition ``PodScheduled``."""
    name = pods[0].spec.scheduler_name or "default-scheduler"
    since = min(pod.pod.born for pod in pods)
    fix = f"see whether the scheduler {name} runs in the cluster, and its log"
    command: str | ObjectChange = "kubectl get pods -A -l component=kube-scheduler"
    if name != "default-scheduler":
        fix += ", or correct schedulerName in the pod template"
        command = fixes.edit(target.changed)
    verb = "waits" if len(pods) == 1 else "wait"
    return target.cause(
        CauseCode.UNSCHEDULABLE,
        f"{target.some(pods)} {verb} for a node{target.facts.ago(since)}: no scheduler has looked "
        f"at {'it' if len(pods) == 1 else 'them'} (schedulerName {name})",
        fix,
        command,
        pods,
        since,
    )


def _of_volume(target: Target, pods: Sequence[SeenPod], message: str) -> Cause:
    """A claim that is not bound; the reason stands in the claim's events."""
    namespace = target.hpa.namespace
    claims = _claims(target, pods)
    for key in claims:
        rows = target.facts.events_of(key, "ProvisioningFailed", "FailedBinding")
        if why := max(rows, key=lambda row: row.last or 0.0, default=None):
            text = f"{message}: claim {key.name}: {shorten(why.message)}"
            break
    else:
        text = f"{message} (claim {_names(claims) or 'unknown'})"
    sign = sign_of(CLAIMS, text)
    fix = "create what its event names, or create the claim again with another storage class"
    if not claims or ("persistentvolumeclaim" in message and "not found" in message):
        command = f"kubectl -n {shlex.quote(namespace)} get persistentvolumeclaims"
    else:
        command = fixes.describe(claims[0])
    return _cause(target, pods, text, sign.fix if sign is not None else fix, command)


def _of_devices(target: Target, pods: Sequence[SeenPod], message: str) -> Cause:
    """A claim of devices (DRA) for which no node has any."""
    slices = target.facts.slices
    drivers = sorted({row.spec.driver for row in slices or () if row.spec.driver})
    detail = ""
    if drivers:
        detail = f"; the drivers of this cluster are {', '.join(drivers[:_SHOWN])}"
    elif slices is not None:
        detail = "; no driver has published a device: there is no ResourceSlice"
    claims = ", ".join(sorted(row.name for row in pods[0].spec.resource_claims)) or "devices"
    namespace = shlex.quote(target.hpa.namespace)
    text = f"no node has a device for the claim {claims} ({message}){detail}"
    fix = (
        "install the DRA driver of the claim's DeviceClass, or see its pods on the GPU nodes; or "
        "name a class in the claim whose devices exist"
    )
    command = f"kubectl -n {namespace} describe resourceclaims"
    if "not found" in message or "does not exist" in message or "not created yet" in message:
        text = f"the claim {claims} is not complete: {message}{detail}"
        fix = (
            "create the ResourceClaim, ResourceClaimTemplate or DeviceClass that is missing, or "
            "correct its name in the pod template"
        )
        command = f"kubectl -n {namespace} get resourceclaims,resourceclaimtemplates,deviceclasses"
    return _cause(target, pods, text, fix, command)


def _missing_labels(
    target: Target, pods: Sequence[SeenPod], nodes: Sequence[SeenNode]
) -> _Lack | None:
    """Return which labels of the selectors no node has; None if a node has them all."""
    listed, spec = target.facts.nodes, pods[0].spec
    if not listed or nodes or not (spec.node_selector or spec.node_terms):
        return None
    wanted: list[tuple[str, str, tuple[str, ...]]] = [
        ("nodeSelector", key, (value,)) for key, value in spec.node_selector.items()
    ]
    wanted += [
        ("nodeAffinity", str(row.get("key")), tuple(map(str, row.get("values") or ())))
        for term in spec.node_terms or ()
        for row in term.get("matchExpressions") or ()
        if row.get("operator") == "In"
    ]
    lacks = {text: field for field, key, values in wanted if (text := _label(listed, key, values))}
    fields = " and ".join(sorted({*lacks.values()} or {field for field, _, _ in wanted}))
    what = " and ".join(lacks) or f"all labels of {fields} together"
    these = "this label" if len(lacks) == 1 else "these labels"
    return _Lack(
        f"no node has {'the label ' if lacks else ''}{what}",
        f"correct {fields or 'nodeAffinity'} in the pod template, or add nodes with {these}",
    )


def _label(nodes: Sequence[SeenNode], key: str, wanted: Sequence[str]) -> str:
    """Return a label that no node has, with the values that nodes have; empty if one has it."""
    values = {node.metadata.labels[key] for node in nodes if key in node.metadata.labels}
    if values & set(wanted):
        return ""
    shown = ", ".join(sorted(values)[:_SHOWN])
    return f"{key}={' or '.join(wanted)}{f' (nodes have {shown})' if values else ''}"


def _missing_resources(
    target: Target, nodes: Sequence[SeenNode], names: Sequence[str], *, scaling: bool
) -> _Lack | None:
    """Return that no node which the pods select has their GPU resource; None if one does, or if a
    node autoscaler says why it adds none: its groups may be at 0.
    """
    if not names or not nodes:
        return None
    offered = set(_offered_resources(target, nodes))
    what = " or ".join(names)
    if offered & set(names):
        return None
    if offered:
        return _Lack(
            f"no node that they may use has {what}; such nodes offer "
            f"{', '.join(sorted(offered)[:_SHOWN])}",
            "ask for a resource that the nodes offer in the pod template, or change the nodes' MIG "
            "configuration",
        )
    others = [
        node
        for node in target.facts.nodes or ()
        if set(_offered_resources(target, [node])) & set(names)
    ]
    if others:
        name = others[0].name
        return _Lack(
            f"no node that they select has {what}, and node {name} has, which nodeSelector or "
            "nodeAffinity exclude",
            f"correct nodeSelector or nodeAffinity in the pod template to labels of node {name}",
        )
    if scaling:
        return None
    return _Lack(
        f"no node of the cluster offers {what}",
        "install the device plugin that offers it, or see its pods on the GPU nodes; or correct "
        "the name of the resource in the pod template",
    )


def _offered_resources(target: Target, nodes: Sequence[SeenNode]) -> Iterator[str]:
    for node in nodes:
        for name in node.status.capacity:
            if target.facts.resources.is_device(name) and gpunodes.amount(
                node.status.capacity, name
            ):
                yield name


def _too_large_request(pod: SeenPod, nodes: Sequence[SeenNode], message: str) -> _Lack | None:
    """Return the request that is larger than every node, of those that the scheduler names; None
    if a node is large enough."""
    for name, wanted in requested_amounts(pod).items():
        if f"insufficient {name}".lower() not in message:
            continue
        rows = [node.status.allocatable[name] for node in nodes if name in node.status.allocatable]
        if rows and wanted > max(map(number, rows)):
            most = max(rows, key=number)
            return _Lack(
                f"they ask for {_request_text(pod, name, wanted)} {name}, and the largest of these "
                f"nodes offers {most}",
                f"lower requests.{name} in the pod template to less than {most}, or add larger "
                "nodes",
            )
    return None


def _request_text(pod: SeenPod, name: str, amount: Decimal) -> str:
    """Return the amount that a pod asks for, as its only container has it."""
    rows = [{**row.resources.limits, **row.resources.requests} for row in pod.spec.containers]
    amounts = [str(row[name]) for row in rows if name in row]
    return amounts[0] if len(amounts) == 1 else f"{amount.normalize():f}"
