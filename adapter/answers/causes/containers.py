"""Pods that exist and do not serve: crashes, memory, images, configuration, readiness.

Reasons are those that the kubelet writes into ``status.containerStatuses``
(``pkg/kubelet/images/types.go``, ``pkg/kubelet/container/sync_result.go`` of Kubernetes), and
``OOMKilled`` of the container runtimes. The memory is that of the node: nothing in Kubernetes shows
that the memory of a GPU was exhausted; such a program ends with an error of its own.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from adapter.answers.causes import fixes, readiness
from adapter.answers.causes.cause import Cause, CauseCode
from adapter.answers.causes.facts import pod_key
from adapter.answers.causes.target import Target, short
from adapter.figures import age, count
from adapter.hpa import quantity
from adapter.pipeline.cluster.changes import ObjectChange
from adapter.pipeline.cluster.podobjects import ContainerStatus, Ended, SeenPod
from apiservice.wire import instant

_RECENT: Final = 3600.0
"""Seconds for which a restart of a container that is ready again counts."""
_PULL: Final = frozenset(
    (
        *("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"),
        *("ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed"),
    )
)
_CONFIG: Final = frozenset(
    (
        *("CreateContainerConfigError", "CreateContainerError", "RunContainerError"),
        *("PreCreateHookError", "PreStartHookError", "PostStartHookError", "CreatePodSandboxError"),
    )
)
_CRASHES: Final = "CrashLoopBackOff"
_KILLED: Final = "OOMKilled"
_EXITS: Final = {
    1: "an error of the program",
    126: "the command cannot be executed",
    127: "the command was not found",
    134: "the program aborted",
    137: "the container was killed",
    139: "a segmentation fault",
    143: "the container was asked to end",
}


class _Row(NamedTuple):
    pod: SeenPod
    status: ContainerStatus

    @property
    def ended(self) -> Ended | None:
        """How the container ended last; None if it never did."""
        return self.status.state.terminated or self.status.last_state.terminated

    @property
    def waits(self) -> str:
        """The reason for which the container waits; empty if it does not."""
        return self.status.state.waiting.reason if self.status.state.waiting is not None else ""


def causes(target: Target) -> Iterator[Cause]:
    """Yield why pods of the target do not serve."""
    stale = {pod.pod.ref.name: pod for pod in target.pods if _stale(target, pod)}
    for cause in _causes(target):
        old = [stale[name] for name in cause.pods if name in stale]
        yield _replaced(cause, old) if old and len(old) == len(cause.pods) else cause


def _stale(target: Target, pod: SeenPod) -> bool:
    """Return whether a StatefulSet's template has changed since it created the pod.

    It replaces no pod that never became ready (kubernetes/kubernetes issue 67250).
    """
    wanted = target.workload.status.update_revision if target.workload is not None else ""
    own = pod.pod.labels.get("controller-revision-hash", "")
    return bool(wanted and own and own != wanted and not pod.pod.ready)


def _replaced(cause: Cause, pods: Sequence[SeenPod]) -> Cause:
    return cause._replace(
        text=f"{cause.text}; the template of {cause.subject} has changed since, and a StatefulSet "
        "does not replace a pod that is not ready",
        fix="delete the pod: it is created again from the present template",
        command=fixes.on(pod_key(pods[0]), "delete"),
    )


def _causes(target: Target) -> Iterator[Cause]:
    rows = [_Row(pod, status) for pod in target.pods for status in _statuses(pod)]
    yield from _killed(target, [row for row in rows if _out_of_memory(target, row)])
    crashing = [r for r in rows if r.waits == _CRASHES and not _out_of_memory(target, r)]
    yield from _crashed(target, crashing)
    yield from _unpulled(target, [row for row in rows if row.waits in _PULL])
    yield from _unconfigured(target, [row for row in rows if row.waits in _CONFIG])
    troubled = {row.pod.key for row in rows if row.waits or _out_of_memory(target, row)}
    yield from readiness.causes(target, [pod for pod in target.pods if pod.key not in troubled])


def _statuses(pod: SeenPod) -> Iterable[ContainerStatus]:
    return (*pod.status.init_container_statuses, *pod.status.container_statuses)


def _out_of_memory(target: Target, row: _Row) -> bool:
    ended = row.ended
    if ended is None or ended.reason != _KILLED:
        return False
    recent = not target.facts.past(instant.read(ended.finished_at), _RECENT)
    return recent or not row.status.ready


def _pods(rows: Sequence[_Row]) -> list[SeenPod]:
    return list({row.pod.key: row.pod for row in rows}.values())


def _restarts(target: Target, rows: Sequence[_Row]) -> str:
    """Return how often the containers restarted, since when, and when last."""
    times = sum(row.status.restart_count for row in rows)
    starts = [at for row in rows if (at := instant.read(row.pod.status.start_time)) is not None]
    ends = [at for row in rows if row.ended and (at := instant.read(row.ended.finished_at))]
    now = target.facts.now
    since = f" in {age(now - min(starts))}" if starts else ""
    last = f", the last time {age(now - max(ends))} ago" if ends else ""
    return f"{count(times, 'restart')}{since}{last}"


def _since(rows: Sequence[_Row]) -> float | None:
    return min(
        (at for row in rows if (at := instant.read(row.pod.status.start_time))), default=None
    )


def _killed(target: Target, rows: Sequence[_Row]) -> Iterator[Cause]:
    if not rows:
        return
    name = rows[0].status.name
    limit = _memory_limit(rows[0])
    of = f" of {limit}" if limit else ""
    yield target.cause(
        CauseCode.OUT_OF_MEMORY,
        f"container {name} of {target.some(_pods(rows))} was killed because it reached its memory "
        f"limit{of} (OOMKilled): {_restarts(target, rows)}",
        f"raise limits.memory of container {name}; this is the node's memory, and that of the GPU "
        "is not visible here",
        _raise_memory(target, name, limit),
        _pods(rows),
        _since(rows),
    )


def _memory_limit(row: _Row) -> str:
    for container in row.pod.spec.containers:
        if container.name == row.status.name:
            return str(container.resources.limits.get("memory") or "")
    return ""


def _raise_memory(target: Target, container: str, limit: str) -> ObjectChange:
    """Return the change that doubles the limit; one that opens the template without a limit."""
    try:
        double = str(int(quantity.parse(limit) * 2)) if limit else ""
    except ValueError:
        double = ""
    for suffix, power in (("Gi", 1 << 30), ("Mi", 1 << 20)):
        if double.isdigit() and int(double) % power == 0:
            double = f"{int(double) // power}{suffix}"
    if not double:
        return fixes.edit(target.changed)
    spec = {"containers": [{"name": container, "resources": {"limits": {"memory": double}}}]}
    return fixes.merge_template(target.changed, spec)


def _crashed(target: Target, rows: Sequence[_Row]) -> Iterator[Cause]:
    if not rows:
        return
    row = max(rows, key=lambda row: row.status.restart_count)
    ended, name = row.ended, row.status.name
    why = ""
    if ended is not None:
        meaning = _EXITS.get(ended.exit_code)
        why = f"; it ends with exit code {ended.exit_code}{f' ({meaning})' if meaning else ''}"
        if ended.message:
            why += f": {short(ended.message)}"
    yield target.cause(
        CauseCode.CRASH_LOOP,
        f"container {name} of {target.some(_pods(rows))} crashes again and again "
        f"({_CRASHES}): {_restarts(target, rows)}{why}",
        "see the end of its log before the last crash, and correct what it names",
        _previous_log(row),
        _pods(rows),
        _since(rows),
    )


def _previous_log(row: _Row) -> str:
    ref = row.pod.pod.ref
    place = f"-n {shlex.quote(ref.namespace)} logs {shlex.quote(ref.name)}"
    return f"kubectl {place} -c {shlex.quote(row.status.name)} --previous --tail=30"


_PULL_FIXES: Final = (
    (
        ("not found", "manifest unknown", "notfound", "does not exist"),
        "correct the image's name or tag",
    ),
    (
        ("unauthorized", "denied", "forbidden", "authentication required", "no basic auth"),
        "give the pods a Secret for the registry (imagePullSecrets)",
    ),
    (("toomanyrequests", "rate limit"), "use a registry of your own, or sign in to this one"),
    (("no space left",), "free disk space on the node"),
    (
        ("no such host", "timeout", "timed out", "refused", "x509", "unreachable"),
        "make the registry reachable from the node",
    ),
)
"""What a message of a failed pull contains, and what to do."""


def _unpulled(target: Target, rows: Sequence[_Row]) -> Iterator[Cause]:
    if not rows:
        return
    row = rows[0]
    image = _image(row)
    message = _pull_message(target, row)
    found = (words for signs, words in _PULL_FIXES if any(s in message.lower() for s in signs))
    fix = next(found, "see the events of the pod")
    yield target.cause(
        CauseCode.IMAGE_PULL,
        f"image {image} of {target.some(_pods(rows))} cannot be pulled ({row.waits})"
        f"{target.facts.ago(_since(rows))}{f': {short(message)}' if message else ''}",
        fix,
        fixes.edit(target.changed)
        if fix == _PULL_FIXES[0][1]
        else fixes.describe(pod_key(row.pod)),
        _pods(rows),
        _since(rows),
    )


def _image(row: _Row) -> str:
    named = {each.name: each.image for each in row.pod.spec.containers}
    return named.get(row.status.name) or row.status.image


def _pull_message(target: Target, row: _Row) -> str:
    """Return the registry's words: the message while it waits often has the image alone."""
    events = target.facts.events_of(pod_key(row.pod), "Failed")
    pulls = [event.message for event in events if "pull" in event.message.lower()]
    waiting = row.status.state.waiting
    own = waiting.message if waiting is not None else ""
    return max((own, *pulls[-1:]), key=len)


def _unconfigured(target: Target, rows: Sequence[_Row]) -> Iterator[Cause]:
    if not rows:
        return
    row = rows[0]
    waiting = row.status.state.waiting
    message = short(waiting.message) if waiting is not None else ""
    yield target.cause(
        CauseCode.CONTAINER_CONFIG,
        f"container {row.status.name} of {target.some(_pods(rows))} cannot be started "
        f"({row.waits}){target.facts.ago(_since(rows))}{f': {message}' if message else ''}",
        "create what the message names, or correct the pod template",
        fixes.describe(pod_key(row.pod)),
        _pods(rows),
        _since(rows),
    )
