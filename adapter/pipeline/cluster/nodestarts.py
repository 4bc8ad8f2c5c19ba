"""Whether a pod can start on a node, and if not why.

The kubelet refuses pods while its disk or its process ids run out (kubernetes ``pkg/kubelet/
eviction``, ``Admit``), and a node that is not Ready starts none. Other states close a node by
taints, which the node lifecycle controller makes of conditions and of ``spec.unschedulable``
(``pkg/controller/nodelifecycle``): a pod with a toleration starts all the same, as one with
requests of memory may under memory pressure. What is left is room: GPUs, places of pods, CPU and
memory.

The pods are those that exist and may hold a GPU. One that nobody has created yet may need less.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from adapter.figures import count, memory, short_number
from adapter.hpa.quantity import parse, to_milli
from adapter.pipeline.cluster.gpuresources import GpuResources
from adapter.pipeline.cluster.taints import Taint, Toleration, is_binding, repels

CONDITION_TAINTS: Final = "node.kubernetes.io/"
"""Before the name of a taint that stands for a state of its node, which the next node has not."""
CORDON: Final = Taint(f"{CONDITION_TAINTS}unschedulable", "", "NoSchedule")
_NOT_READY: Final = "NotReady"
_PRESSURES: Final = ("DiskPressure", "PIDPressure")
_WORDS: Final = {
    "not-ready": _NOT_READY,
    "unreachable": "unreachable",
    "unschedulable": "cordoned",
    "disk-pressure": "DiskPressure",
    "pid-pressure": "PIDPressure",
    "memory-pressure": "MemoryPressure",
    "network-unavailable": "NetworkUnavailable",
}
"""The rest of such a taint's key -> a word for the state."""
_LEAVES: Final = {
    "ToBeDeletedByClusterAutoscaler": "the cluster autoscaler is removing it",
    "karpenter.sh/disrupted": "Karpenter is removing it",
    "karpenter.sh/disruption": "Karpenter is removing it",
    "aws-node-termination-handler/": "its machine is being taken back",
    "cloud.google.com/impending-node-termination": "its machine is being taken back",
    "node.cloudprovider.kubernetes.io/shutdown": "its machine is shut down",
    "amd-dcm": "its GPUs are being partitioned",
    "mig-reconfigure": "its MIG layout is being changed",
}
"""How the keys of other such taints begin (kubernetes/autoscaler issue 5657, kubernetes-sigs/
karpenter issue 2704, aws/aws-node-termination-handler issue 160, ROCm/device-config-manager)."""
Amounts = Mapping[str, "str | int | float"]


class StartNeeds(NamedTuple):
    """What a pod needs of a node to start there, besides its GPUs."""

    tolerations: tuple[Toleration, ...] = ()
    cpu: int = 0
    """Thousandths of a core."""
    memory: int = 0
    """Bytes."""


NO_NEEDS: Final = StartNeeds()


class NodeState(NamedTuple):
    """What a node's object says of pods that would start there."""

    refuses: tuple[str, ...] = ()
    """Conditions that no pod passes: ``NotReady``, ``DiskPressure``."""
    taints: tuple[Taint, ...] = ()
    """Those that exclude pods, with that of a cordon."""
    has: Mapping[str, int] = {}
    """GPU resource -> units of the capacity."""
    offers: Mapping[str, int] = {}
    """GPU resource -> allocatable units."""
    cpu: int | None = None
    """Allocatable thousandths of a core; None if not known."""
    memory: int | None = None
    """Allocatable bytes; None if not known."""
    pods: int | None = None
    """Pods that may run there; None if not known."""


NOTHING_KNOWN: Final = NodeState()


class NodeUse(NamedTuple):
    """What the pods of a node take, without placeholders, which give way to any pod."""

    gpus: Mapping[str, int] = {}
    """GPU resource -> units that are requested."""
    cpu: int = 0
    memory: int = 0
    pods: int = 0


class BlockKind(StrEnum):
    """What keeps pods from a node."""

    CONDITION = "condition"
    TAINT = "taint"
    NOT_OFFERED = "not-offered"
    """The node has GPUs and offers none."""
    TAKEN = "taken"
    """Pods have requested all of its GPUs: the node is in use."""
    FULL = "full"
    """GPUs are left, and no place, CPU or memory for a pod."""


class NodeBlock(NamedTuple):
    """One thing that keeps every GPU pod from a node."""

    kind: BlockKind
    text: str
    """A few words: ``DiskPressure``, ``cordoned``, ``offers 0 of 8 nvidia.com/gpu``."""


def state_of(
    taints: Collection[Taint],
    conditions: Mapping[str, str],
    capacity: Amounts,
    allocatable: Amounts,
    resources: GpuResources,
    *,
    cordoned: bool,
) -> NodeState:
    """Return what a node's object says of pods that would start there.

    Args:
        taints: of its spec.
        conditions: type -> status.
        capacity: of its status.
        allocatable: of its status.
        resources: those that stand for a GPU.
        cordoned: ``spec.unschedulable``.
    """
    binding_taints = {taint: None for taint in taints if is_binding(taint)}
    if cordoned:
        binding_taints.setdefault(CORDON)
    cpu, pods = _milli(allocatable.get("cpu")), _milli(allocatable.get("pods"))
    size = _milli(allocatable.get("memory"))
    return NodeState(
        refusals(conditions),
        tuple(binding_taints),
        _units(capacity, resources),
        _units(allocatable, resources),
        cpu,
        None if size is None else size // 1000,
        None if pods is None else pods // 1000,
    )


def refusals(conditions: Mapping[str, str]) -> tuple[str, ...]:
    """Return the conditions that no pod passes, by type and status of all. A node that has not
    said whether it is Ready, such as one of a file, counts as Ready."""
    unready = (_NOT_READY,) if conditions.get("Ready", "True") != "True" else ()
    return (*unready, *(name for name in _PRESSURES if conditions.get(name) == "True"))


def _units(amounts: Amounts, resources: GpuResources) -> dict[str, int]:
    millis = {name: _milli(amounts[name]) for name in amounts if resources.is_device(name)}
    return {name: milli // 1000 for name, milli in millis.items() if milli is not None}


def _milli(amount: object) -> int | None:
    try:
        return None if amount is None else to_milli(parse(amount))
    except ValueError:
        return None


def word_of(taint: Taint) -> str:
    """Return the state of a node that a taint stands for; empty for another taint."""
    if taint.key.startswith(CONDITION_TAINTS):
        return _WORDS.get(taint.key.removeprefix(CONDITION_TAINTS), "")
    return leaving_words(taint)


def leaving_words(taint: Taint) -> str:
    """Return what a program does with a node whose taint it has set; empty for another taint."""
    return next((words for key, words in _LEAVES.items() if taint.key.startswith(key)), "")


def marks_state(taint: Taint) -> bool:
    """Return whether a taint stands for a passing state of its node, which no workload should
    tolerate and the next node has not."""
    return taint.key.startswith(CONDITION_TAINTS) or bool(leaving_words(taint))


def withheld_resources(state: NodeState) -> Iterator[tuple[str, int, int]]:
    """Yield each GPU resource of which fewer units are allocatable than the node has, with both
    numbers."""
    for name, has in sorted(state.has.items()):
        if (offers := state.offers.get(name, 0)) < has:
            yield name, has, offers


def blocks(
    state: NodeState, used: NodeUse, needs: Collection[StartNeeds], *, promised: bool = False
) -> list[NodeBlock]:
    """Return what keeps every GPU pod from starting on a node; empty if one can start.

    Args:
        state: of the node.
        used: what its pods take.
        needs: of the GPU pods of the cluster, each once. Without any, a pod is assumed that has
            no requests and the tolerations that the API server adds
            (``ExtendedResourceToleration``: the key is the name of the GPU resource).
        promised: a label says that the node has GPUs, and no pod gets one by a claim (DRA).
    """
    refused = [NodeBlock(BlockKind.CONDITION, word) for word in state.refuses]
    left: Collection[StartNeeds] = needs or (_usual_needs(state),)
    tainted: list[NodeBlock] = []
    for taint in state.taints:
        word = word_of(taint)
        if word in state.refuses or (word == "unreachable" and _NOT_READY in state.refuses):
            continue
        admitted = [need for need in left if not repels(taint, need.tolerations)]
        if admitted:
            left = admitted
        elif word:
            refused.append(NodeBlock(BlockKind.CONDITION, word))
        else:
            text = f"no GPU pod tolerates the taint {taint}"
            tainted.append(NodeBlock(BlockKind.TAINT, text))
    gpus = [*_gpus(state, used, promised)]
    return [*dict.fromkeys(refused), *tainted, *(gpus or _room(state, used, left))]


def _usual_needs(state: NodeState) -> StartNeeds:
    keys = sorted({*state.has, *state.offers})
    return StartNeeds(tuple(Toleration(key, "Exists", "", "") for key in keys))


def _gpus(state: NodeState, used: NodeUse, promised: bool) -> Iterator[NodeBlock]:
    offered = [f"{amount} {name}" for name, amount in sorted(state.offers.items()) if amount]
    if offered:
        if not any(units_left(state, used).values()):
            text = f"pods have requested all {' and '.join(offered)}"
            yield NodeBlock(BlockKind.TAKEN, text)
    elif state.has or state.offers or promised:
        gone = [f"0 of {has} {name}" for name, has, _ in withheld_resources(state)]
        text = f"offers {' and '.join(gone) or 'no GPU'}"
        yield NodeBlock(BlockKind.NOT_OFFERED, text)


def units_left(state: NodeState, used: NodeUse) -> dict[str, int]:
    """Return GPU resource -> allocatable units that no pod has requested."""
    return {n: max(0, amount - used.gpus.get(n, 0)) for n, amount in state.offers.items()}


def _room(state: NodeState, used: NodeUse, needs: Collection[StartNeeds]) -> Iterator[NodeBlock]:
    """Yield what is full, by the pods that ask for least."""
    if state.pods is not None and used.pods >= state.pods:
        yield NodeBlock(BlockKind.FULL, f"has {count(used.pods, 'pod')}, and no more may run there")
    if state.cpu is not None:
        free, least = state.cpu - used.cpu, min(need.cpu for need in needs)
        if least > free:
            shown = f"{short_number(max(0, free) / 1000)} CPU left, and GPU pods request "
            yield NodeBlock(BlockKind.FULL, f"{shown}{short_number(least / 1000)}")
            return
        needs = [need for need in needs if need.cpu <= free]
    if state.memory is not None:
        free, least = state.memory - used.memory, min(need.memory for need in needs)
        if least > free:
            shown = f"{memory(max(0, free))} of memory left, and GPU pods request "
            yield NodeBlock(BlockKind.FULL, f"{shown}{memory(least)}")
