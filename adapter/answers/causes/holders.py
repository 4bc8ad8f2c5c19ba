"""Who holds the GPUs that waiting pods need: other workloads, Jobs, pods that do not end."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Final

from adapter.answers.causes import fixes, gpunodes
from adapter.answers.causes.facts import KubeKey, pod_key
from adapter.answers.causes.target import Target
from adapter.figures import age, count
from adapter.pipeline.cluster.objects import SeenNode
from adapter.pipeline.cluster.podobjects import SeenPod

_ENDING: Final = 60.0
"""Seconds for which a pod may end after its grace period."""
_SHOWN: Final = 3
_JOBS: Final = ("Job", "CronJob")


class Held:
    """Who has the GPUs of the nodes."""

    def __init__(self, text: str, fix: str, command: str, *, urgent: bool = False) -> None:
        self.text, self.fix, self.command = text, fix, command
        self.urgent = urgent
        """The holders are the cause, regardless of what a node autoscaler says."""


def find_gpu_holders(
    target: Target, pods: Sequence[SeenPod], nodes: Sequence[SeenNode], names: Sequence[str]
) -> Held | None:
    """Return who holds the GPUs; None if a node has free ones, or nobody is known to hold any.

    Args:
        pods: those that wait.
        nodes: that they select.
        names: the GPU resources that they ask for.
    """
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
    stuck = find_ending_pods(target, holders)
    if stuck is not None:
        return stuck
    priority = pods[0].spec.priority
    above = [pod for pod in holders if pod.spec.priority > priority]
    whose: dict[KubeKey, int] = {}
    for pod in above or holders:
        owner = target.facts.top(pod) or pod_key(pod)
        whose[owner] = whose.get(owner, 0) + sum(pod.pod.gpus.get(name, 0) for name in names)
    most = sorted(whose, key=lambda owner: -whose[owner])
    shown = name_holders(most, whose)
    if above:
        highest = max(pod.spec.priority for pod in above)
        return Held(
            f"pods of a higher priority ({highest} against {priority}) hold the GPUs: {shown}",
            "add GPU nodes, or give the pods a priorityClassName that is not below those pods",
            fixes.describe(pod_key(above[0])),
            urgent=True,
        )
    text = f"every {' or '.join(names)} of the nodes is held: {shown}"
    job = next((owner for owner in most if owner.kind in _JOBS), None)
    if job is not None:
        return Held(
            text,
            f"add GPU nodes, wait until {job} ends, or suspend it; pods with a higher priority "
            "than the Job's (priorityClassName) take its GPUs",
            fixes.on(job, "get", "-o wide"),
        )
    return Held(
        text,
        "add GPU nodes, let the node autoscaler do so, or make those workloads smaller",
        fixes.describe(pod_key(pods[0])),
    )


def name_holders(most: Sequence[KubeKey], whose: Mapping[KubeKey, object]) -> str:
    """Return the largest holders, each with what it holds."""
    shown = ", ".join(f"{owner} {whose[owner]}" for owner in most[:_SHOWN])
    return shown + ", …" * (len(most) > _SHOWN)


def find_ending_pods(target: Target, pods: Sequence[SeenPod]) -> Held | None:
    """Return that pods have been ending for long and keep their GPUs; None if none has."""
    facts = target.facts
    stuck = [pod for pod in pods if pod.deleted is not None and facts.past(pod.deleted, _ENDING)]
    if not stuck:
        return None
    first = min(stuck, key=lambda pod: pod.deleted or 0.0)
    node = {node.name: node for node in facts.nodes or ()}.get(first.pod.node)
    key = pod_key(first)
    others = f" and {count(len(stuck) - 1, 'more pod')}" if len(stuck) > 1 else ""
    what = "holds its GPU on" if first.pod.gpus else "is on"
    text = (
        f"{key}{others} {what} node {first.pod.node} and has been ending for "
        f"{age(facts.now - (first.deleted or facts.now))}"
    )
    if node is not None and node.status.of("Ready") is not None and not node.ready:
        return Held(
            f"{text}: the node is not Ready",
            "repair the node; if its machine is gone for good, delete the Node object, and its "
            "pods are removed",
            f"kubectl describe node {shlex.quote(node.name)}",
            urgent=True,
        )
    if first.finalizers:
        body = shlex.quote(json.dumps({"metadata": {"finalizers": None}}))
        return Held(
            f"{text}: nobody removes the finalizer {', '.join(first.finalizers)}",
            "see why the program of the finalizer does not run; if it is gone, remove the "
            "finalizer",
            fixes.on(key, "patch", f"--type=merge -p {body}"),
            urgent=True,
        )
    return Held(
        text,
        "see why its containers do not end: a long terminationGracePeriodSeconds, or a process "
        "that hangs in the driver",
        fixes.describe(key),
        urgent=True,
    )
