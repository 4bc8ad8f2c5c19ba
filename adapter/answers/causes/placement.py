"""Pods without a node: taints, GPUs that a node does not offer, rollouts that wait for themselves.

The scheduler writes the condition ``PodScheduled`` with the reason ``Unschedulable`` and a message
such as ``0/3 nodes are available: 2 node(s) had untolerated taint {dedicated: ml}, 1 Insufficient
nvidia.com/gpu`` (hystax/optscale issue 568); later versions write ``untolerated taint(s)`` without
the key, so the taints are read from the nodes.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Final

from adapter.answers.causes import fixes, gpunodes, nodestates, rollouts, unfit
from adapter.answers.causes.cause import Cause, CauseCode
from adapter.answers.causes.facts import pod_key
from adapter.answers.causes.target import Target
from adapter.figures import count
from adapter.pipeline.cluster.changes import ObjectChange
from adapter.pipeline.cluster.nodeoperations import NodeOperation, operations
from adapter.pipeline.cluster.nodestarts import CORDON
from adapter.pipeline.cluster.objects import SeenNode
from adapter.pipeline.cluster.podobjects import SeenPod
from adapter.pipeline.cluster.taints import Taint, repels

_PATIENCE: Final = 60.0
"""Seconds for which a pod may wait for a node: schedulers and node autoscalers need a moment."""
_LONGEST: Final = 240
_PARTITIONS: Final = "amd-dcm"
"""The taint that keeps pods from a node while AMD's device config manager partitions its GPUs."""


def causes(target: Target) -> Iterator[Cause]:
    """Yield why pods of the target have no node."""
    if unseen := [pod for pod in target.pods if _is_unseen(target, pod)]:
        yield unfit.unseen_pods(target, unseen)
    waiting = [pod for pod in target.pods if _is_unscheduled(target, pod)]
    gated = [pod for pod in waiting if pod.spec.scheduling_gates]
    waiting = [pod for pod in waiting if not pod.spec.scheduling_gates]
    if gated:
        yield _gated_pods(target, gated)
    if not waiting:
        return
    if (cause := rollouts.deadlock(target, waiting, _since(waiting))) is not None:
        yield cause
        return
    known_causes = [*_repelling_taints(target, waiting), *_nodes_without_gpus(target, waiting)]
    if not known_causes:
        nodes, names = _candidates(target, waiting), gpunodes.resources_of(target, waiting)
        known_causes = [unfit.cause(target, waiting, nodes, names, _message(waiting))]
    yield from known_causes


def _is_unscheduled(target: Target, pod: SeenPod) -> bool:
    condition = pod.status.of("PodScheduled")
    return (
        pod.pod.phase == "Pending"
        and condition is not None
        and condition.status == "False"
        and target.facts.past(condition.since, _PATIENCE)
    )


def _is_unseen(target: Target, pod: SeenPod) -> bool:
    """Return whether no scheduler has looked at a pod that has existed for a moment."""
    if pod.pod.node or pod.pod.phase != "Pending" or pod.pod.deleting or pod.spec.scheduling_gates:
        return False
    born = pod.pod.born or target.facts.now
    return pod.status.of("PodScheduled") is None and target.facts.past(born, _PATIENCE)


def _since(pods: Sequence[SeenPod]) -> float | None:
    rows = (pod.status.of("PodScheduled") for pod in pods)
    return min((row.since for row in rows if row is not None and row.since), default=None)


def _message(pods: Sequence[SeenPod]) -> str:
    row = pods[0].status.of("PodScheduled")
    text = " ".join((row.message or row.reason if row is not None else "").split())
    # After the reasons come words about pre-emption and about claims.
    start, separator, reasons = text.partition("nodes are available: ")
    text = f"{start}{separator}{reasons.partition('. ')[0]}".rstrip(".")
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _wait(target: Target, pods: Sequence[SeenPod]) -> str:
    verb = "waits" if len(pods) == 1 else "wait"
    return f"{target.some(pods)} {verb} for a node{target.facts.ago(_since(pods))}"


def _gated_pods(target: Target, pods: Sequence[SeenPod]) -> Cause:
    gates = sorted({gate.name for pod in pods for gate in pod.spec.scheduling_gates})
    queue = pods[0].pod.labels.get(_QUEUE_NAME, "")
    more = f" The pods name LocalQueue {queue}." if queue else ""
    return target.cause(
        CauseCode.SCHEDULING_GATE,
        f"{target.some(pods)} {'is' if len(pods) == 1 else 'are'} held back"
        f"{target.facts.ago(_since(pods))} by the scheduling gate {', '.join(gates)}",
        f"{_QUEUE}{more}".rstrip(".")
        if any(_KUEUE in gate for gate in gates)
        else "see why the program that set the gate does not remove it",
        fixes.describe(pod_key(pods[0])),
        pods,
        _since(pods),
    )


_KUEUE: Final = "kueue.x-k8s.io"
_QUEUE_NAME: Final = f"{_KUEUE}/queue-name"
_QUEUE: Final = (
    "see why the queue of Kueue does not admit the pods (kubectl get "
    "localqueues,workloads.kueue.x-k8s.io): the quota of its ClusterQueue is used up, "
    f"the LocalQueue of the label {_QUEUE_NAME} does not exist in the namespace, or the queue is "
    "stopped."
)


def _candidates(target: Target, pods: Sequence[SeenPod]) -> list[SeenNode]:
    """Return the nodes that the pods select; none if nodes were not read."""
    spec = pods[0].spec
    return [
        node for node in target.facts.nodes or () if spec.selects(node.metadata.labels, node.name)
    ]


def _repelling_taints(target: Target, pods: Sequence[SeenPod]) -> Iterator[Cause]:
    """Yield the taints of GPU nodes that the pods do not tolerate."""
    names = gpunodes.resources_of(target, pods)
    by_taint: dict[tuple[Taint, NodeOperation | None], list[SeenNode]] = {}
    for node in _candidates(target, pods):
        if names and not any(gpunodes.amount(node.status.allocatable, name) for name in names):
            continue
        work = next(operations(node.metadata.labels), None)
        for taint in node.taints:
            by_operator = taint.key in (CORDON.key, _PARTITIONS)
            if by_operator and work is not None and work.failed and names:
                continue  # what has failed is the cause, and not the taint
            if repels(taint, pods[0].spec.tolerations):
                by_taint.setdefault((taint, work if by_operator else None), []).append(node)
    if not names and "untolerated taint" not in _message(pods):
        return
    for (taint, work), nodes in by_taint.items():
        yield _of_taint(target, pods, taint, work, nodes)


def _of_taint(
    target: Target,
    pods: Sequence[SeenPod],
    taint: Taint,
    work: NodeOperation | None,
    nodes: Sequence[SeenNode],
) -> Cause:
    shown = sorted(node.name for node in nodes)
    where = f"{count(len(shown), 'GPU node')} ({', '.join(shown[:3])}{', …' * (len(shown) > 3)})"
    first = shlex.quote(shown[0])
    subject = ""
    command: str | ObjectChange
    if work is not None:
        fix, command, subject = work.fix, f"kubectl describe node {first}", f"node {shown[0]}"
        text = f"{where} has the taint {taint}: {work.text}"
    elif taint.key == CORDON.key:
        fix = "let pods on the node again, if its maintenance is over"
        command, subject = f"kubectl uncordon {first}", f"node {shown[0]}"
        text = f"{where} {'is' if len(shown) == 1 else 'are'} cordoned"
    elif nodestates.is_of_state(taint):
        fix, command = nodestates.advice(taint), f"kubectl describe node {first}"
        text, subject = f"{where} has the taint {taint}", f"node {shown[0]}"
    else:
        has_some = bool(
            target.workload is not None and target.workload.spec.template.spec.seen_tolerations
        )
        fix = f"add a toleration of {taint.key} to the pod template, if the pods may run there"
        command = fixes.tolerate(target.changed, [taint], has_some=has_some)
        text = f"no toleration for the taint {taint} of {where}"
    return target.cause(
        CauseCode.TAINT,
        f"{_wait(target, pods)}: {text}",
        fix,
        command,
        pods,
        _since(pods),
        subject,
    )


def _nodes_without_gpus(target: Target, pods: Sequence[SeenPod]) -> Iterator[Cause]:
    """Yield the nodes that have GPUs and do not offer them, if these pods wait for such ones."""
    names = gpunodes.resources_of(target, pods)
    if names:
        nodes, by_claims = _candidates(target, pods), gpunodes.dra_nodes(target.facts.slices or ())
        for cause in gpunodes.causes(
            nodes, target.facts.resources, by_claims, names=names, pods=target.facts.pods
        ):
            yield cause._replace(
                text=f"{_wait(target, pods)}: {cause.subject} {cause.text}",
                pods=tuple(sorted(pod.pod.ref.name for pod in pods)),
                since=_since(pods),
            )
    if any(pod.spec.resource_claims for pod in pods):
        yield from _tainted_devices(target, [pod for pod in pods if pod.spec.resource_claims])


def _tainted_devices(target: Target, pods: Sequence[SeenPod]) -> Iterator[Cause]:
    """Yield the DRA devices whose taints keep claims from them (KEP-5055, gate
    ``DRADeviceTaints``)."""
    selected = {node.name for node in _candidates(target, pods)}
    others = {node.name for node in target.facts.nodes or ()} - selected
    for row in target.facts.slices or ():
        if row.spec.node_name in others:
            continue  # the pods may not run there, so another claim needs these devices
        tainted = [
            (device.name, Taint(taint.key, taint.value, taint.effect))
            for device in row.spec.devices
            for taint in device.taints
            if taint.effect in ("NoSchedule", "NoExecute")
        ]
        if not tainted:
            continue
        devices = sorted({name for name, _ in tainted})
        taints = sorted({str(taint) for _, taint in tainted})
        where = row.spec.node_name or row.metadata.name
        yield target.cause(
            CauseCode.DEVICE_TAINT,
            f"{_wait(target, pods)}: {len(devices)} of {len(row.spec.devices)} devices of "
            f"{row.spec.driver} on {where} have the taint {', '.join(taints)} "
            f"({', '.join(devices[:3])}{', …' * (len(devices) > 3)})",
            "see why the driver, or a DeviceTaintRule, taints the devices",
            f"kubectl get resourceslice {shlex.quote(row.metadata.name)} -o yaml",
            pods,
            _since(pods),
            f"node {where}" if row.spec.node_name else f"ResourceSlice {row.metadata.name}",
        )
