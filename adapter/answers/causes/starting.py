"""Pods that have a node and do not start there: volumes, sandboxes, init containers, rejections.

The kubelet shows such a pod as ``Pending`` with ``ContainerCreating`` or ``PodInitializing``, and
writes its reason as an event alone: ``FailedCreatePodSandBox`` (NVIDIA/gpu-operator issue 549),
``FailedAttachVolume`` (helm/charts issue 5595). An init container that loads a model may hang
(kserve/kserve issue 5611). A pod that the kubelet rejects fails at once, and its workload creates
the next one (NVIDIA/k8s-device-plugin issue 231).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Final

from adapter.answers.causes import fixes, holders, readiness
from adapter.answers.causes.cause import Cause, CauseCode
from adapter.answers.causes.facts import pod_key
from adapter.answers.causes.signs import Sign, sign_of
from adapter.answers.causes.startsigns import STARTS
from adapter.answers.causes.target import Target, shorten
from adapter.figures import count
from adapter.pipeline.cluster.manifest import REJECTED, REJECTED_FOR
from adapter.pipeline.cluster.objects import SeenEvent
from adapter.pipeline.cluster.podobjects import SeenPod
from apiservice.wire import instant

_WINDOW: Final = 1200.0
"""Seconds for which the last event counts: the kubelet writes repeated ones more and more seldom.
"""
_SOME: Final = 60.0
"""Seconds for which an event may be the trouble of a moment: volumes move between nodes."""
_LONG: Final = 900.0
"""Seconds after which an init container, or a start without any event, is a cause."""
_FAILURES: Final = (
    "FailedCreatePodSandBox",
    "FailedAttachVolume",
    "FailedMount",
    "FailedPrepareDynamicResources",
)
_EVICTED: Final = "Evicted"
"""The kubelet's reason for pods that it ended because the node, or their own limit of local
storage, ran out (``pkg/kubelet/eviction`` of k8s.io/kubernetes)."""
_SLICES: Final = Sign(
    ("maximum request size for shared resources",),
    "request one device in the pod template: a second slice of a shared GPU is no more of it; or "
    "set failRequestsGreaterThanOne: false in the sharing configuration of the device plugin",
    template=True,
)
"""NVIDIA/k8s-device-plugin, README, "With CUDA Time-Slicing"."""
_DEVICES: Final = Sign(
    ("allocate", "unhealthy devices"),
    "see the log of the device plugin on the node, and restart it, and the kubelet if it keeps "
    "rejecting; until the GPUs are repaired, cordon the node, so that the pods go elsewhere",
)
_REJECTIONS: Final = (
    _SLICES,
    _DEVICES,
    Sign(
        ("ephemeral-storage", "ephemeral local storage", "emptydir", "disk"),
        "in the pod template, request the ephemeral-storage that the server writes, raise its "
        "limit, or write to a volume of its own, such as the cache of models",
        template=True,
    ),
    Sign(
        ("low on resource", "evicted"),
        "in the pod template, request what the message names, raise its limit, or write to a "
        "volume of its own",
        template=True,
    ),
    Sign(
        ("outof", "enough resource"),
        "the kubelet counts less room than the scheduler: let one scheduler place all pods that "
        "ask for GPUs, and none name their node (nodeName), and delete the failed pods; restart "
        "the kubelet if it counts pods that are gone",
    ),
    Sign(
        ("topology", "numa"),
        "ask for GPUs and processors that fit one NUMA node in the pod template, or change the "
        "topologyManagerPolicy of the kubelet",
        template=True,
    ),
    Sign(
        ("node affinity", "nodeaffinity", "predicate"),
        "the labels of the node have changed since the pod was placed: correct them, or the "
        "nodeSelector of the pod template",
    ),
)
"""What the kubelet says of pods that it does not admit or keep, and what to do."""


def causes(target: Target) -> Iterator[Cause]:
    """Yield why pods of the target do not start on their nodes."""
    yield from _rejected_pods(target)
    yield from _ending_pods(target)
    starting = [
        pod
        for pod in target.pods
        if pod.pod.node and pod.pod.phase == "Pending" and not pod.pod.deleting
    ]
    explained: set[str] = set()
    for reason in _FAILURES:
        failed = [(pod, row) for pod in starting if (row := _event(target, pod, reason))]
        if failed:
            explained |= {pod.key for pod, _ in failed}
            yield _of_event(target, failed)
    rest = [pod for pod in starting if pod.key not in explained]
    loading: dict[str, list[SeenPod]] = {}
    for pod in rest:
        if name := _initializes(target, pod):
            loading.setdefault(name, []).append(pod)
    for name, pods in loading.items():
        yield _of_init(target, name, pods)
    if late := [pod for pod in rest if _creates(target, pod)]:
        yield _of_creation(target, late)


def _ending_pods(target: Target) -> Iterator[Cause]:
    """Yield the pods of a StatefulSet that do not end: it creates none of the same name before.

    Those of a node that does not answer never end by themselves (kubernetes issue 54368).
    """
    rows = [row for row in target.pods if row.pod.owner and row.pod.owner.kind == "StatefulSet"]
    holder = holders.find_ending_pods(target, rows)
    if holder is not None:
        pods = [pod for pod in rows if pod.pod.deleting]
        since = min((pod.deleted for pod in pods if pod.deleted), default=None)
        yield target.cause(
            CauseCode.NEVER_READY,
            f"{holder.text}; no pod of this name is created before it is gone",
            holder.fix,
            holder.command,
            pods,
            since,
        )


def _event(target: Target, pod: SeenPod, reason: str) -> SeenEvent | None:
    """Return the last event of a reason, if it is of now and not new."""
    rows = target.facts.events_of(pod_key(pod), reason)
    last = max(rows, key=lambda row: row.last or 0.0, default=None)
    if last is None or target.facts.past(last.last, _WINDOW):
        return None
    first = min((row.first for row in rows if row.first is not None), default=None)
    return last if target.facts.past(first, _SOME) else None


def _of_event(target: Target, failed: Sequence[tuple[SeenPod, SeenEvent]]) -> Cause:
    pods = [pod for pod, _ in failed]
    event = failed[0][1]
    sign = sign_of(STARTS, event.message) or _UNKNOWN
    since = _start(pods)
    verb = "does" if len(pods) == 1 else "do"
    return target.cause(
        CauseCode.CONTAINER_CONFIG,
        f"{target.some(pods)} {verb} not start on {_nodes(pods)}{target.facts.ago(since)} "
        f"({event.reason}, {count(event.times, 'time')}): {shorten(event.message)}",
        sign.fix,
        fixes.edit(target.changed) if sign.template else fixes.describe(pod_key(pods[0])),
        pods,
        since,
    )


_UNKNOWN: Final = Sign((), "see the events of the pod, and correct what the message names")


def _initializes(target: Target, pod: SeenPod) -> str:
    """Return the init container that has run for long; empty without one. Sidecars run on."""
    sidecars = {row.name for row in pod.spec.init_containers if row.restart_policy == "Always"}
    for row in pod.status.init_container_statuses:
        running = row.state.running
        if running is None or row.name in sidecars:
            continue
        started = instant.read(running.started_at)
        if started is not None and target.facts.past(started, _LONG):
            return row.name
    return ""


def _creates(target: Target, pod: SeenPod) -> bool:
    """Return whether a pod's containers have been created for long, and nothing says why."""
    start = instant.read(pod.status.start_time)
    if start is None or not target.facts.past(start, _LONG) or pod.status.init_container_statuses:
        return False
    rows = pod.status.container_statuses
    states = {row.state.waiting.reason if row.state.waiting else "" for row in rows}
    return states <= {"ContainerCreating"}


def _of_creation(target: Target, pods: Sequence[SeenPod]) -> Cause:
    since = _start(pods)
    verb = "is" if len(pods) == 1 else "are"
    text = f"{target.some(pods)} {verb} on {_nodes(pods)} and {verb} being created"
    for node in target.facts.nodes or ():
        away = readiness.lost_node(node, target.facts.now)
        if away is not None and any(pod.pod.node == node.name for pod in pods):
            return away._replace(
                text=f"{text}{target.facts.ago(since)}; {away.subject} {away.text}",
                pods=tuple(sorted(pod.pod.ref.name for pod in pods)),
            )
    return target.cause(
        CauseCode.CONTAINER_CONFIG,
        f"{text}{target.facts.ago(since)}: no event says why; a large image may be being pulled, "
        "or the kubelet hangs",
        "see the events of the pod; for a large image, pull it to the nodes before, or use a "
        "registry near the cluster",
        fixes.describe(pod_key(pods[0])),
        pods,
        since,
    )


def _of_init(target: Target, name: str, pods: Sequence[SeenPod]) -> Cause:
    since = min(
        (
            start
            for pod in pods
            for row in pod.status.init_container_statuses
            if row.name == name and row.state.running is not None
            if (start := instant.read(row.state.running.started_at)) is not None
        ),
        default=None,
    )
    ref = pods[0].pod.ref
    place = f"-n {shlex.quote(ref.namespace)} logs {shlex.quote(ref.name)}"
    return target.cause(
        CauseCode.NEVER_READY,
        f"init container {name} of {target.some(pods)} runs{target.facts.ago(since)}, and the "
        "server does not start before it ends",
        "see in its log what it waits for, such as the download of a model that hangs; then repair "
        f"that, and delete the pod{'s' * (len(pods) > 1)}",
        f"kubectl {place} -c {shlex.quote(name)} --tail=30",
        pods,
        since,
    )


def _rejected_pods(target: Target) -> Iterator[Cause]:
    """Yield the nodes whose kubelet does not admit or keep the pods, while some are missing."""
    failed: dict[tuple[str, str], list[SeenPod]] = {}
    for pod in target.failed:
        reason = pod.status.reason
        recent = not target.facts.past(instant.read(pod.status.start_time), REJECTED_FOR)
        if recent and reason.startswith(REJECTED):
            failed.setdefault((pod.pod.node, reason), []).append(pod)
    if all(pod.pod.ready for pod in target.pods) and target.pods:
        return
    for (node, reason), pods in failed.items():
        since = _start(pods)
        message = pods[0].status.message
        verb = "evicted" if reason == _EVICTED else "rejected"
        sign = sign_of(_REJECTIONS, f"{reason} {message}") or _UNKNOWN
        device = sign is _DEVICES
        yield target.cause(
            CauseCode.CONTAINER_CONFIG,
            f"the kubelet of node {node} has {verb} {target.some(pods)}{target.facts.ago(since)} "
            f"({reason}): {shorten(message).rstrip('.')}",
            sign.fix,
            f"kubectl {'cordon' if device else 'describe node'} {shlex.quote(node)}",
            pods,
            since,
            f"node {node}",
        )


def _start(pods: Sequence[SeenPod]) -> float | None:
    return min((at for pod in pods if (at := instant.read(pod.status.start_time))), default=None)


def _nodes(pods: Sequence[SeenPod]) -> str:
    names = sorted({pod.pod.node for pod in pods})
    return (
        f"{'node' if len(names) == 1 else 'nodes'} {', '.join(names[:3])}{', …' * (len(names) > 3)}"
    )
