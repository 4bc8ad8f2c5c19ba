"""The state of one node: why pods do not start there, and what its operators say in labels.

Operands of the GPU operator run where ``nvidia.com/gpu.deploy.NAME`` is ``true``; while a driver or
a MIG layout changes, its value is ``paused-for-…``.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator
from typing import Final

from adapter.answers.causes import gpunodes
from adapter.answers.causes.cause import Cause, CauseCode
from adapter.answers.causes.placesigns import STARTING
from adapter.answers.causes.readiness import lost_node
from adapter.answers.causes.target import shorten
from adapter.figures import age
from adapter.pipeline.cluster.gpuresources import GpuResources
from adapter.pipeline.cluster.nodeoperations import operations
from adapter.pipeline.cluster.nodestarts import (
    CONDITION_TAINTS,
    CORDON,
    leaving_words,
    marks_state,
    refusals,
    word_of,
)
from adapter.pipeline.cluster.objects import SeenNode
from adapter.pipeline.cluster.taints import Taint, is_binding

_STATES: Final = {
    "disk-pressure": "free disk space on the node: images and logs, or a larger disk",
    "memory-pressure": "free memory on the node, or give its pods requests and limits of memory",
    "pid-pressure": "end processes on the node, or raise its limit of processes",
    "network-unavailable": "see the pod of the network plugin on the node",
    "not-ready": "see the kubelet, the container runtime and the network plugin of the node",
    "unreachable": "see whether the machine runs and reaches the API server",
}
"""The rest of the key of a taint for the state of a node, and what to do. Nobody tolerates such a
taint for a workload."""
_CONDITIONS: Final = {
    "DiskPressure": "disk-pressure",
    "PIDPressure": "pid-pressure",
    "MemoryPressure": "memory-pressure",
    "NetworkUnavailable": "network-unavailable",
}
_OF_STARTS: Final = ("not-ready", "uninitialized", "unregistered")
"""How keys of taints end that a program removes from a new node: those of Cilium, of the CSI
drivers, of cloud controllers and of Karpenter."""
_PARTITIONED: Final = ("amd-dcm", "mig-reconfigure")
"""Taints while a person or a program changes how the GPUs of a node are divided."""
_DEPLOY: Final = "nvidia.com/gpu.deploy."
_PAUSED: Final = "paused-for-"
_OPERANDS: Final = ("operands", "device-plugin", "container-toolkit")
"""Operands without which no GPU is offered. The driver may be installed in another way."""


def is_of_state(taint: Taint) -> bool:
    """Return whether a taint stands for a state of its node, and not for who may use it."""
    return marks_state(taint) or taint.key.endswith(_OF_STARTS)


def advice(taint: Taint) -> str:
    """Return what to do about a taint that stands for the state of a node."""
    if taint.key.endswith(_OF_STARTS):
        return STARTING.fix
    words = leaving_words(taint)
    if words and taint.key in _PARTITIONED:
        return f"{words}: wait until it is done; if nobody does, remove the taint from the node"
    if words:
        return (
            f"{words}: wait for the next node; if the taint stays for long, see the log of the "
            "program that set it, and pods that keep the node (karpenter.sh/do-not-disrupt, a "
            "PodDisruptionBudget)"
        )
    state = _STATES.get(taint.key.removeprefix(CONDITION_TAINTS))
    return f"{state}; see the conditions of the node" if state else "see the conditions of the node"


def causes(
    node: SeenNode, now: float, resources: GpuResources, dra_nodes: Collection[str] = ()
) -> Iterator[Cause]:
    """Yield why pods do not start on a node, or its GPUs are not offered. Each text follows the
    node's name.

    Args:
        node: the node.
        now: epoch seconds.
        resources: those that stand for a GPU.
        dra_nodes: nodes whose devices a DRA driver publishes.
    """
    away = lost_node(node, now)
    if away is not None:
        yield away
    yield from _conditions(node, now)
    works = list(operations(node.metadata.labels))
    yield from _taints(node, away=away is not None, at_work=bool(works))
    lacking = list(gpunodes.causes([node], resources, dra_nodes))
    if not lacking:
        # What has failed, or explains GPUs that are gone, is said there.
        for work in works:
            text = f"says that {work.text}"
            yield _cause(node, text, work.fix, CauseCode.GPUS_UNAVAILABLE)
    yield from _labels(node, resources)
    yield from lacking


def _conditions(node: SeenNode, now: float) -> Iterator[Cause]:
    statuses = {row.type: row.status for row in node.status.conditions}
    refused = refusals(statuses)
    for kind, key in _CONDITIONS.items():
        row = node.status.of(kind)
        if row is None or row.status != "True":
            continue
        lasts = "" if row.since is None else f" for {age(now - row.since)}"
        text = f"has {kind}{lasts}{f': {shorten(row.message)}' if row.message else ''}"
        ends = "the kubelet starts no pod" if kind in refused else "its taint keeps pods away"
        yield _cause(node, f"{text.rstrip('.')}; {ends}", _STATES[key], CauseCode.UNSCHEDULABLE)


def _taints(node: SeenNode, *, away: bool, at_work: bool) -> Iterator[Cause]:
    """Yield a cordon, and taints for a state that no condition says.

    Args:
        node: the node.
        away: the node does not answer, which explains its taints.
        at_work: an operator works on the node, which explains the cordon.
    """
    if not at_work and (node.spec.unschedulable or CORDON in node.taints):
        name = shlex.quote(node.name)
        yield Cause(
            CauseCode.TAINT,
            f"node {node.name}",
            "is cordoned: no new pod starts there",
            "let pods on the node again, if its maintenance is over",
            f"kubectl uncordon {name}",
        )
    shown = {CORDON.key, *(f"{CONDITION_TAINTS}{key}" for key in _CONDITIONS.values())}
    for taint in node.taints:
        explained = taint.key in shown or (away and word_of(taint))
        if is_binding(taint) and is_of_state(taint) and not explained:
            yield _cause(node, f"has the taint {taint}", advice(taint), CauseCode.TAINT)


def _labels(node: SeenNode, resources: GpuResources) -> Iterator[Cause]:
    labels = node.metadata.labels
    paused = [key for key, state in labels.items() if state.startswith(_PAUSED)]
    for key in sorted(key for key in paused if key.startswith(_DEPLOY)):
        text = f"keeps an operand of the GPU operator away ({key}={labels[key]})"
        fix = "wait until the change of the driver or MIG layout is over; see the log of its pod"
        yield _cause(node, text, fix, CauseCode.GPUS_UNAVAILABLE)
    if gpunodes.gpus_of(node, resources):
        return
    for name in _OPERANDS:
        key = f"{_DEPLOY}{name}"
        if labels.get(key) == "false":
            fix = "remove the label, unless another program offers the GPUs"
            yield Cause(
                CauseCode.GPUS_UNAVAILABLE,
                f"node {node.name}",
                f"keeps the GPU operator's {name} away ({key}=false), and offers no GPU",
                fix,
                f"kubectl label node {shlex.quote(node.name)} {key}-",
            )


def _cause(node: SeenNode, text: str, fix: str, code: CauseCode) -> Cause:
    command = f"kubectl describe node {shlex.quote(node.name)}"
    return Cause(code, f"node {node.name}", text, fix, command)
