"""Pods that run and are not ready: probes, readiness gates, and nodes that do not answer.

``ReadinessGatesNotReady`` is the kubelet's reason while the containers are ready and another
program has not set the pod's condition (kubernetes-sigs/aws-load-balancer-controller issue 1205).
The pods of a node that does not answer keep their last status, and get ``Ready: False``
(kubernetes/kubernetes issues 55713 and 102026).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from adapter.answers.causes import fixes
from adapter.answers.causes.cause import Cause, CauseCode
from adapter.answers.causes.facts import KubeKey, pod_key
from adapter.answers.causes.rows import ContainerRow
from adapter.answers.causes.signs import Sign, sign_of
from adapter.answers.causes.target import Target, shorten
from adapter.figures import age, count
from adapter.pipeline.cluster.objects import SeenEvent, SeenNode
from adapter.pipeline.cluster.podobjects import SeenPod
from apiservice.wire import instant

_UNREADY: Final = 900.0
"""Seconds after which a pod that runs and is not ready is a cause: servers load large models for
many minutes."""
_LOST: Final = 60.0
"""Seconds after which a node that is not Ready is a cause: the kubelet reports every 10 s."""
_GATED: Final = "ReadinessGatesNotReady"
_GATE: Final = re.compile(r'readiness gate "([^"]+)"')

_PROBES: Final = {
    "readiness": "see why the server does not answer its readiness probe, or correct the probe",
    "startup": "see why the server does not answer its startup probe in time; if it loads a model "
    "for longer, raise failureThreshold of the probe",
    "liveness": "the kubelet restarts a container whose liveness probe fails: give the server a "
    "startup probe that lasts as long as it loads, or correct the liveness probe",
}
"""The probe that the kubelet's events name, and what to do."""
_ANSWERS: Final = (
    Sign(("statuscode: 404",), "correct the path of the probe: the server has none of this name"),
    Sign(
        ("statuscode: 401", "statuscode: 403"),
        "let the probe ask a path that needs no credentials: the server, or a mesh sidecar, "
        "refuses it",
    ),
    Sign(
        ("connection refused", "no route to host"),
        "nothing listens on the probe's port: correct the port, let the server listen on 0.0.0.0, "
        "or wait until it has loaded",
    ),
    Sign(
        ("timeout", "deadline exceeded", "timed out"),
        "raise timeoutSeconds of the probe, which is 1 s by default, if the server answers later",
    ),
    Sign(
        ("http response to https", "malformed http", "tls: first record"),
        "correct scheme of the probe: HTTP or HTTPS",
    ),
)
"""What a probe got, and what to do."""
_KILLS: Final = ("liveness", "startup")
"""Probes after whose failures the kubelet kills the container."""
_WINDOW: Final = 1200.0
"""Seconds for which the last event of a probe counts."""


def causes(target: Target, pods: Sequence[SeenPod]) -> Iterator[Cause]:
    """Yield why pods are not ready.

    Args:
        target: whose pods they are.
        pods: those whose containers have no other trouble.
    """
    unready = [pod for pod in pods if _is_unready(pod)]
    away: set[str] = set()
    for node in target.facts.nodes or ():
        rows = [pod for pod in unready if pod.pod.node == node.name]
        if rows and (cause := lost_node(node, target.facts.now)) is not None:
            away.add(node.name)
            yield _of_node(target, cause, rows)
    late = [pod for pod in unready if pod.pod.node not in away and _is_late(target, pod)]
    gated = [pod for pod in late if _gates(pod)]
    if gated:
        yield _of_gates(target, gated)
    if rows := [pod for pod in late if not _gates(pod)]:
        yield _of_probe(target, rows)


def _is_unready(pod: SeenPod) -> bool:
    ready = pod.status.of("Ready")
    return pod.runs and ready is not None and ready.status != "True"


def _since(pod: SeenPod) -> float | None:
    ready = pod.status.of("Ready")
    return (ready.since if ready is not None else None) or instant.read(pod.status.start_time)


def _is_late(target: Target, pod: SeenPod) -> bool:
    since = _since(pod)
    return since is not None and target.facts.past(since, _UNREADY)


def _gates(pod: SeenPod) -> list[str]:
    """Return the readiness gates that nobody has met; empty if the containers are not ready."""
    ready = pod.status.of("Ready")
    if ready is None or ready.reason != _GATED:
        return []
    return _GATE.findall(ready.message) or [ready.message]


def _oldest_time(pods: Sequence[SeenPod]) -> float | None:
    return min((since for since in map(_since, pods) if since is not None), default=None)


def lost_node(node: SeenNode, now: float) -> Cause | None:
    """Return that a node does not answer; None if it does. The text follows the node's name.

    Args:
        node: the node.
        now: epoch seconds.
    """
    condition = node.status.of("Ready")
    if node.ready or condition is None:
        return None
    since = condition.since
    if since is not None and now - since < _LOST:
        return None
    message = shorten(condition.message).rstrip(".")
    lasts = "" if since is None else f" for {age(now - since)}"
    return Cause(
        CauseCode.NEVER_READY,
        f"node {node.name}",
        f"is not Ready{lasts}{f': {message}' if message else ''}",
        "repair the node; if its machine is gone for good, delete the Node object, and its pods "
        "are created elsewhere",
        f"kubectl describe node {shlex.quote(node.name)}",
        since=since,
    )


def _of_node(target: Target, cause: Cause, pods: Sequence[SeenPod]) -> Cause:
    verb = "is" if len(pods) == 1 else "are"
    text = f"{target.some(pods)} {verb} on {cause.subject}, which {cause.text}"
    return cause._replace(text=text, pods=tuple(sorted(pod.pod.ref.name for pod in pods)))


def _of_gates(target: Target, pods: Sequence[SeenPod]) -> Cause:
    gates = sorted({gate for pod in pods for gate in _gates(pod)})
    since = _oldest_time(pods)
    verb = "is" if len(pods) == 1 else "are"
    return target.cause(
        CauseCode.NEVER_READY,
        f"the containers of {target.some(pods)} are ready, and the pod{'s' * (len(pods) > 1)} "
        f"{verb} not{target.facts.ago(since)}: no program has met the readiness gate "
        f"{', '.join(gates)}",
        "see the log of the program that sets this condition, such as the controller of a load "
        "balancer: whether it runs, and whether its target exists and is healthy; without such a "
        "program, remove the readiness gate",
        fixes.describe(pod_key(pods[0])),
        pods,
        since,
    )


def _of_probe(target: Target, rows: Sequence[SeenPod]) -> Cause:
    since = _oldest_time(rows)
    first = min(rows, key=lambda pod: _since(pod) or 0.0)
    telling = _telling_events(target, rows)
    newest, times = (telling[-1], sum(event.times for event in telling)) if telling else (None, 0)
    probe = "" if newest is None else _kind(newest)
    restarted = any(row.restart_count for pod in rows for row in pod.status.container_statuses)
    killed = restarted and probe in _KILLS
    kills = ", because the kubelet kills the container" if killed else ""
    message = "" if newest is None else f"{kills}: {shorten(newest.message)} ({times} times)"
    verb = "runs and is" if len(rows) == 1 else "run and are"
    return target.cause(
        CauseCode.NEVER_READY,
        f"{target.some(rows)} {verb} not ready{target.facts.ago(since)}{_of_containers(first)}"
        f"{message}",
        _advice(probe, message),
        _log(pod_key(first)) + (" --previous" if probe == "liveness" else ""),
        rows,
        since,
    )


def _telling_events(target: Target, pods: Sequence[SeenPod]) -> list[SeenEvent]:
    """Return the events of the probe that explains the others, the newest last.

    A container that a probe kills fails its readiness probe too, while it starts again.
    """
    events = sorted(
        (event for pod in pods for event in target.facts.events_of(pod_key(pod), "Unhealthy")),
        key=lambda event: event.last or 0.0,
    )
    fresh = [event for event in events if not target.facts.past(event.last, _WINDOW)]
    kills = [event for event in fresh if _kind(event) in _KILLS]
    kind = _kind((kills or events)[-1]) if events else ""
    return [event for event in kills or events if _kind(event) == kind]


def _kind(event: SeenEvent) -> str:
    """Return which probe an event is about: ``readiness``."""
    return event.message.partition(" ")[0].lower()


def _advice(probe: str, message: str) -> str:
    general = _PROBES.get(probe, "see why the server is not ready")
    sign = sign_of(_ANSWERS, message)
    if sign is None:
        return general
    # A server that the kubelet kills while it loads does not answer: time comes before the answer.
    parts = (general, sign.fix) if probe in _KILLS else (sign.fix, general)
    return "; ".join(parts)


class ProbeKill(NamedTuple):
    """A container that the kubelet kills because of a probe."""

    text: str
    fix: str


def killing_probe(target: Target, row: ContainerRow) -> ProbeKill | None:
    """Return the probe for which the kubelet kills a container; None if none is known to fail."""
    telling = _telling_events(target, [row.pod])
    if not telling or _kind(telling[-1]) not in _KILLS:
        return None
    newest = telling[-1]
    if target.facts.past(newest.last, _WINDOW):
        return None
    text = (
        f"the kubelet kills it, because its {_kind(newest)} probe fails ({shorten(newest.message)})"
    )
    return ProbeKill(text, _advice(_kind(newest), newest.message))


def _of_containers(pod: SeenPod) -> str:
    """Return which containers of a pod are not ready, and how often they were restarted."""
    unready = [row for row in pod.status.container_statuses if not row.ready]
    beside = len(unready) < len(pod.status.container_statuses)
    names = ", ".join(row.name for row in unready) if beside else ""
    restarts = sum(row.restart_count for row in unready)
    parts = [f"container {names}"] if names else []
    parts += [f"restarted {count(restarts, 'time')}"] if restarts else []
    return f" ({', '.join(parts)})" if parts else ""


def _log(key: KubeKey) -> str:
    place = f"-n {shlex.quote(key.namespace)} logs {shlex.quote(key.name)}"
    return f"kubectl {place} --all-containers --tail=30"
