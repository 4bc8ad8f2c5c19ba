"""Who holds the CPU or memory that waiting pods with GPUs lack, on nodes that have free GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from adapter.answers.causes import fixes, gpunodes
from adapter.answers.causes.facts import KubeKey, pod_key
from adapter.answers.causes.holders import Held, name_holders
from adapter.answers.causes.target import Target
from adapter.hpa import quantity
from adapter.pipeline.cluster.objects import SeenNode
from adapter.pipeline.cluster.podobjects import SeenPod

AMOUNTS: Final = ("cpu", "memory", "ephemeral-storage")
"""Resources of which a pod holds a part of the node's."""
_GIB: Final = 2**30


def number(value: object) -> Decimal:
    """Return an amount of a manifest; 0 if it is not one."""
    try:
        return quantity.parse(str(value))
    except ValueError:
        return Decimal(0)


def requested_amounts(pod: SeenPod) -> dict[str, Decimal]:
    """Return what the containers of a pod request; a limit alone is a request too."""
    amounts: dict[str, Decimal] = {}
    for container in pod.spec.containers:
        for name, value in {**container.resources.limits, **container.resources.requests}.items():
            amounts[name] = amounts.get(name, Decimal(0)) + number(value)
    return amounts


def lacking_resources(message: str) -> list[str]:
    """Return the resources that the scheduler calls insufficient, without GPUs."""
    lower = message.lower()
    return [name for name in AMOUNTS if f"insufficient {name}" in lower]


def find_amount_holders(
    target: Target,
    pods: Sequence[SeenPod],
    nodes: Sequence[SeenNode],
    names: Sequence[str],
    message: str,
) -> Held | None:
    """Return who holds what the scheduler calls insufficient; None if nobody is known to.

    Args:
        pods: those that wait.
        nodes: that they select.
        names: the GPU resources that they ask for. Nodes without a free GPU do not count.
        message: of the scheduler.
    """
    wanted = requested_amounts(pods[0])
    for name in lacking_resources(message):
        best: tuple[Decimal, SeenNode] | None = None
        whose: dict[KubeKey, Decimal] = {}
        for node in nodes:
            placed = target.facts.on_node(node.name)
            if name not in node.status.allocatable or not _fits(node, placed, pods[0], names):
                continue
            rows = [(pod, requested_amounts(pod).get(name, Decimal(0))) for pod in placed]
            free = number(node.status.allocatable[name]) - sum(amount for _, amount in rows)
            if best is None or free > best[0]:
                best = free, node
            for pod, amount in rows:
                if amount:
                    owner = target.facts.top(pod) or pod_key(pod)
                    whose[owner] = whose.get(owner, Decimal(0)) + amount
        if best is None or not whose or best[0] >= wanted.get(name, Decimal(0)):
            continue
        free, node = best
        left = _words(name, max(free, Decimal(0)))
        most = sorted(whose, key=lambda owner: -whose[owner])
        shown = name_holders(most, {owner: _words(name, whose[owner]) for owner in most})
        gpus = f" with a free {' or '.join(names)}" if names else ""
        return Held(
            f"the nodes{gpus} have at most {left} {name} free (node {node.name}), and the pods ask "
            f"for {_words(name, wanted[name])}; {name} of these nodes is held: {shown}",
            f"lower requests.{name} of the pod template to at most {left}, keep pods without GPUs "
            "from GPU nodes (a taint), or make those workloads smaller",
            fixes.describe(pod_key(pods[0])),
        )
    return None


def _fits(node: SeenNode, placed: Sequence[SeenPod], pod: SeenPod, names: Sequence[str]) -> bool:
    """Return whether the GPUs of a node would do for a pod."""
    for name in names:
        used = sum(other.pod.gpus.get(name, 0) for other in placed)
        if gpunodes.amount(node.status.allocatable, name) - used < pod.pod.gpus.get(name, 0):
            return False
    return True


def _words(name: str, amount: Decimal) -> str:
    """Return an amount as manifests write it: ``3.5`` of cpu, ``12.5Gi`` of memory."""
    if name == "cpu":
        return f"{amount.normalize():f}"
    return f"{(amount / _GIB).quantize(Decimal('0.1')).normalize():f}Gi"
