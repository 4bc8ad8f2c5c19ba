"""Pods that exist and do not serve: crashes, memory, images, configuration, readiness.

Reasons are those that the kubelet writes into ``status.containerStatuses``
(``pkg/kubelet/container/sync_result.go`` of Kubernetes), and ``OOMKilled`` and ``StartError`` of
the container runtimes. The memory is that of the node: nothing in Kubernetes shows that the memory
of a GPU was exhausted; such a program ends with an error of its own.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Final

from adapter.answers.causes import fixes, images, readiness
from adapter.answers.causes.cause import Cause, CauseCode
from adapter.answers.causes.crashsigns import CRASHES
from adapter.answers.causes.facts import pod_key
from adapter.answers.causes.rows import ContainerRow, pods_of, rows_of, since_of
from adapter.answers.causes.signs import Sign, sign_of
from adapter.answers.causes.startsigns import STARTS
from adapter.answers.causes.target import Target, shorten
from adapter.figures import age, count
from adapter.hpa import quantity
from adapter.pipeline.cluster.changes import ObjectChange
from apiservice.wire import instant

_RECENT: Final = 3600.0
"""Seconds for which a restart of a container that is ready again counts."""
_SOME: Final = 60.0
"""Seconds after which the kubelet would have started a container again."""
_CONFIG: Final = frozenset(
    (
        *("CreateContainerConfigError", "CreateContainerError", "RunContainerError"),
        *("PreCreateHookError", "PreStartHookError", "PostStartHookError", "CreatePodSandboxError"),
    )
)
_CRASHES: Final = "CrashLoopBackOff"
_KILLED: Final = "OOMKilled"
_NOT_STARTED: Final = ("StartError", "ContainerCannotRun")
"""How a container ended that the runtime could not start: the message is the runtime's."""
_EXITS: Final = {
    0: "the program ends without an error",
    1: "an error of the program",
    2: "a wrong argument of the program",
    126: "the command cannot be executed",
    127: "the command was not found",
    132: "the processor does not know an instruction of the program",
    134: "the program aborted",
    135: "a bus error: often the shared memory of /dev/shm is too small",
    137: "the container was killed",
    139: "a segmentation fault",
    143: "the container was asked to end",
}
_ASKED: Final = (0, 137, 143)
"""Exit codes of a container that the kubelet has ended."""
_ENDS: Final = (
    "correct command and args of the container: a server runs in the foreground until it is asked "
    "to end; work that ends belongs into a Job"
)


def causes(target: Target) -> Iterator[Cause]:
    """Yield why pods of the target do not serve."""
    rows = list(rows_of(target.pods))
    yield from _killed_containers(target, [row for row in rows if _ran_out_of_memory(target, row)])
    rest = [row for row in rows if not _ran_out_of_memory(target, row)]
    unstarted = [row for row in rest if _cannot_start(target, row)]
    crashing = [row for row in rest if row not in unstarted and _ends(target, row)]
    yield from _crashed_containers(target, crashing)
    yield from images.causes(target, [row for row in rows if row.waits in images.REASONS])
    yield from _unconfigured_containers(target, unstarted)
    explained = (*unstarted, *crashing)
    troubled = {row.pod.key for row in rows if row.waits or row in explained or row not in rest}
    yield from readiness.causes(target, [pod for pod in target.pods if pod.key not in troubled])


def _ends(target: Target, row: ContainerRow) -> bool:
    """Return whether a container ends again and again, or has ended and is not started again."""
    if row.waits == _CRASHES:
        return True
    ended = row.status.state.terminated
    if ended is None or row.pod.pod.deleting:
        return False
    owner = row.pod.pod.owner
    if ended.exit_code == 0 and (row.init or (owner is not None and owner.kind == "Job")):
        return False
    return target.facts.past(instant.read(ended.finished_at), _SOME)


def _cannot_start(target: Target, row: ContainerRow) -> bool:
    """Return whether the kubelet or the runtime could not start the container."""
    if row.waits in _CONFIG:
        return True
    ended = row.ended
    return _ends(target, row) and ended is not None and ended.reason in _NOT_STARTED


def _ran_out_of_memory(target: Target, row: ContainerRow) -> bool:
    ended = row.ended
    if ended is None or ended.reason != _KILLED:
        return False
    recent = not target.facts.past(instant.read(ended.finished_at), _RECENT)
    return recent or not row.status.ready


def _restarts(target: Target, rows: Sequence[ContainerRow]) -> str:
    """Return how often the containers restarted, since when, and when last."""
    times = sum(row.status.restart_count for row in rows)
    first = since_of(rows)
    ends = [end for row in rows if row.ended and (end := instant.read(row.ended.finished_at))]
    now = target.facts.now
    since = f" in {age(now - first)}" if first is not None else ""
    last = f", the last time {age(now - max(ends))} ago" if ends else ""
    return f"{count(times, 'restart')}{since}{last}"


def _killed_containers(target: Target, rows: Sequence[ContainerRow]) -> Iterator[Cause]:
    if not rows:
        return
    name = rows[0].status.name
    limit = _memory_limit(rows[0])
    of = f" of {limit}" if limit else ""
    yield target.cause(
        CauseCode.OUT_OF_MEMORY,
        f"container {name} of {target.some(pods_of(rows))} was killed because it reached its "
        f"memory limit{of} (OOMKilled): {_restarts(target, rows)}",
        f"raise limits.memory of container {name}; this is the node's memory, and that of the GPU "
        "is not visible here; files in an emptyDir of medium Memory, such as /dev/shm, count too",
        _raise_memory(target, name, limit),
        pods_of(rows),
        since_of(rows),
    )


def _memory_limit(row: ContainerRow) -> str:
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
        return fixes.edit(target.changed)._replace(of_resources=True)
    spec = {"containers": [{"name": container, "resources": {"limits": {"memory": double}}}]}
    return fixes.merge_template(target.changed, spec)._replace(of_resources=True)


def _crashed_containers(target: Target, rows: Sequence[ContainerRow]) -> Iterator[Cause]:
    if not rows:
        return
    row = max(rows, key=lambda row: row.status.restart_count)
    ended, name = row.ended, row.status.name
    why = message = ""
    if ended is not None:
        meaning = _EXITS.get(ended.exit_code)
        why = f"; it ends with exit code {ended.exit_code}{f' ({meaning})' if meaning else ''}"
        message = ended.message
        why += f": {shorten(message)}" if message else ""
    killed = ended is None or ended.exit_code in _ASKED
    # A server that crashes by itself answers no probe either.
    probe = readiness.killing_probe(target, row) if killed else None
    if probe is not None:
        why += f"; {probe.text}"
    sign = sign_of(CRASHES, message)
    fix = _ENDS if ended is not None and ended.exit_code == 0 and not row.init else ""
    yield target.cause(
        CauseCode.CRASH_LOOP,
        f"container {name} of {target.some(pods_of(rows))} crashes again and again "
        f"({_CRASHES}): {_restarts(target, rows)}{why}"
        if row.waits == _CRASHES
        else f"container {name} of {target.some(pods_of(rows))} has ended: "
        f"{_restarts(target, rows)}{why}",
        probe.fix if probe is not None else sign.fix if sign is not None else fix or _SEE,
        _previous_log(row),
        pods_of(rows),
        since_of(rows),
    )


_SEE: Final = "see the end of its log before the last crash, and correct what it names"


def _previous_log(row: ContainerRow) -> str:
    ref = row.pod.pod.ref
    place = f"-n {shlex.quote(ref.namespace)} logs {shlex.quote(ref.name)}"
    previous = "" if row.status.state.terminated is not None else " --previous"
    return f"kubectl {place} -c {shlex.quote(row.status.name)}{previous} --tail=30"


def _unconfigured_containers(target: Target, rows: Sequence[ContainerRow]) -> Iterator[Cause]:
    if not rows:
        return
    row = rows[0]
    waiting, ended = row.status.state.waiting, row.ended
    message = waiting.message if waiting is not None and row.waits in _CONFIG else ""
    if ended is not None and len(ended.message) > len(message):
        message = ended.message
    reason = row.waits if row.waits in _CONFIG else ended.reason if ended is not None else ""
    sign = sign_of(STARTS, f"{reason} {message}") or _UNKNOWN
    since = since_of(rows)
    yield target.cause(
        CauseCode.CONTAINER_CONFIG,
        f"container {row.status.name} of {target.some(pods_of(rows))} cannot be started "
        f"({reason}){target.facts.ago(since)}{f': {shorten(message)}' if message else ''}",
        sign.fix,
        fixes.edit(target.changed) if sign.template else fixes.describe(pod_key(row.pod)),
        pods_of(rows),
        since,
    )


_UNKNOWN: Final = Sign((), "create what the message names, or correct the pod template")
