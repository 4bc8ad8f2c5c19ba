"""Rollouts that do not go on: paused, held by their own pods, or waiting for a person.

The Deployment controller rolls out no template while ``spec.paused`` is true. A StatefulSet
replaces no pod that never became ready (kubernetes/kubernetes issue 67250), no pod below
``partition`` even if somebody deletes it (issue 70442), and with ``OnDelete`` none at all; with
``OrderedReady`` it creates no pod before those below it are ready. A rollout that waits for its own
old pod's GPU: defilantech/LLMKube issue 192, ai-runway/airunway issue 400.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from adapter.answers.causes import fixes, gpunodes
from adapter.answers.causes.cause import Cause, CauseCode
from adapter.answers.causes.facts import pod_key
from adapter.answers.causes.target import Target, shorten
from adapter.figures import count
from adapter.pipeline.cluster.fixes import make_lasting
from adapter.pipeline.cluster.podobjects import SeenPod
from adapter.pipeline.cluster.workloadobjects import SeenWorkload

_STUCK: Final = 120.0
"""Seconds after which a rollout whose new pod has no node waits for itself."""
_SLOW: Final = 300
"""``minReadySeconds`` from which on a rollout waits for long after each pod."""
_PAUSABLE: Final = ("Deployment", "Rollout")
_REVISION: Final = "controller-revision-hash"


def causes(target: Target, pod_causes: Sequence[Cause]) -> Iterator[Cause]:
    """Yield why the present template of the target is not rolled out.

    Args:
        pod_causes: the causes that were found in the target's pods.
    """
    workload = target.workload
    if workload is None or not workload.spec.replicas:
        return
    behind = workload.status.updated_replicas < workload.status.replicas
    if workload.kind in _PAUSABLE and workload.spec.paused:
        yield from _paused_rollout(target, workload, pod_causes, behind=behind)
        return
    slow = _slow_rollout(target, workload) if behind else None
    late = _late_rollout(target, workload) if not pod_causes else None
    if (cause := slow or late) is not None:
        yield cause


def _paused_rollout(
    target: Target, workload: SeenWorkload, pod_causes: Sequence[Cause], *, behind: bool
) -> Iterator[Cause]:
    none = not target.inner and not target.pods
    if not (behind or none or pod_causes):
        return
    what = "its present template is not rolled out" if behind else "no change of its template is"
    if none:
        what = "it creates no pods"
    yield target.cause(
        CauseCode.ROLLOUT,
        f"{target.subject} is paused (spec.paused), so {what}",
        "resume it, once its template is right",
        fixes.merge(target.changed, {"spec": {"paused": False}}),
    )


def _slow_rollout(target: Target, workload: SeenWorkload) -> Cause | None:
    seconds, status = workload.spec.min_ready_seconds, workload.status
    if seconds < _SLOW or status.ready_replicas <= status.available_replicas:
        return None
    lack = count(status.ready_replicas - status.available_replicas, "pod")
    return target.cause(
        CauseCode.ROLLOUT,
        f"the rollout of {target.subject} waits {seconds} s after each new pod is ready "
        f"(minReadySeconds): {lack} of {status.ready_replicas} ready pods do not count yet",
        "lower spec.minReadySeconds: a readiness probe says when a server serves",
        fixes.merge(target.changed, {"spec": {"minReadySeconds": 10}}),
    )


def _late_rollout(target: Target, workload: SeenWorkload) -> Cause | None:
    progress = workload.status.of("Progressing")
    if progress is None or progress.reason != "ProgressDeadlineExceeded":
        return None
    return target.cause(
        CauseCode.ROLLOUT,
        f"the rollout of {target.subject} has made no progress{target.facts.ago(progress.since)} "
        f"({progress.reason}): {shorten(progress.message).rstrip('.')}",
        "see the events of its newest ReplicaSet and of its pods; or go back to the template "
        "before: kubectl rollout undo",
        fixes.describe(target.hpa.of),
        since=progress.since,
    )


def deadlock(target: Target, pods: Sequence[SeenPod], since: float | None) -> Cause | None:
    """Return that a rollout's new pod needs the GPU that an old pod holds until it is ready.

    Args:
        pods: those that have no node.
        since: epoch seconds since when.
    """
    workload = target.workload
    names = gpunodes.resources_of(target, pods)
    if workload is None or workload.kind != "Deployment" or not names:
        return None
    if workload.spec.strategy.type != "RollingUpdate" or _max_unavailable(workload) > 0:
        return None
    new = {pod.pod.labels.get("pod-template-hash") for pod in pods}
    old = [
        pod
        for pod in target.pods
        if pod.pod.node and pod.pod.gpus and pod.pod.labels.get("pod-template-hash") not in new
    ]
    progress = workload.status.of("Progressing")
    failed = progress is not None and progress.reason == "ProgressDeadlineExceeded"
    if not old or not (failed or target.facts.past(since, _STUCK)):
        return None
    late = " (ProgressDeadlineExceeded)" if failed else ""
    body = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
    return target.cause(
        CauseCode.ROLLOUT,
        f"the rollout of {target.subject} waits for itself{target.facts.ago(since)}{late}: "
        f"{target.some(pods)} needs a free {' or '.join(names)}, and {target.some(old)} keeps its "
        "GPU until the new pod is ready (maxUnavailable is 0)",
        "let the rollout end an old pod first: maxSurge 0, maxUnavailable 1",
        fixes.merge(target.changed, {"spec": {"strategy": body}}),
        pods,
        since,
    )


def _max_unavailable(workload: SeenWorkload) -> int:
    """Return ``maxUnavailable`` as a number of pods, rounded down as the controller does.

    If both limits are 0, it takes 1 (``ResolveFenceposts``).
    """
    rule, size = workload.spec.strategy.rolling_update, workload.spec.replicas
    surge = _resolve(rule.max_surge, size, up=True)
    gone = _resolve(rule.max_unavailable, size, up=False)
    return 1 if surge == gone == 0 else gone


def _resolve(amount: int | str, size: int, *, up: bool) -> int:
    text = str(amount)
    if not text.endswith("%"):
        return int(text) if text.isdigit() else 0
    share = size * int(text[:-1]) / 100 if text[:-1].isdigit() else 0.0
    return math.ceil(share) if up else math.floor(share)


# Pods of StatefulSets


def of_statefulset(target: Target, cause: Cause) -> Cause:
    """Return a cause of pods of a StatefulSet with what the StatefulSet makes of it."""
    workload = target.workload
    pods = [pod for pod in target.pods if pod.pod.ref.name in cause.pods]
    if workload is None or workload.kind != "StatefulSet" or not pods:
        return cause
    if all(_is_stale(workload, pod) for pod in pods):
        cause = _of_stale_pods(target, workload, cause, pods)
    lack = workload.spec.replicas - len(target.pods)
    if lack > 0 and workload.spec.pod_management_policy == "OrderedReady":
        verb = "is" if lack == 1 else "are"
        more = f"{count(lack, 'further pod')} {verb} not created before (OrderedReady)"
        cause = cause._replace(text=f"{cause.text}; {more}")
    return cause


def _is_stale(workload: SeenWorkload, pod: SeenPod) -> bool:
    """Return whether the template has changed since it created a pod that is not ready."""
    wanted, revision = workload.status.update_revision, pod.pod.labels.get(_REVISION, "")
    return bool(wanted and revision and revision != wanted and not pod.pod.ready)


def _of_stale_pods(
    target: Target, workload: SeenWorkload, cause: Cause, pods: Sequence[SeenPod]
) -> Cause:
    strategy = workload.spec.update_strategy
    partition = _resolve(strategy.rolling_update.partition, workload.spec.replicas, up=True)
    changed = f"{cause.text}; the template of {target.subject} has changed since, and"
    delete = fixes.on(pod_key(pods[0]), "delete")
    again = "delete the pod: it is created again from the present template"
    if strategy.type == "OnDelete":
        text = f"{changed} its updateStrategy OnDelete replaces a pod only when it is deleted"
        return cause._replace(text=text, fix=again, command=delete)
    if _ordinal(pods[0]) >= partition:
        text = f"{changed} a StatefulSet does not replace a pod that is not ready"
        return cause._replace(text=text, fix=again, command=delete)
    fix = "set spec.updateStrategy.rollingUpdate.partition to 0, and delete the pod"
    body = {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}}
    lasts = make_lasting(target.changed, fixes.merge(target.changed, body)._replace(words=fix))
    return cause._replace(
        text=f"{changed} pods below partition {partition} of its updateStrategy keep the old one",
        fix=lasts.advice(fix),
        command=f"{lasts.command} && {delete}" if lasts.command else "",
    )


def _ordinal(pod: SeenPod) -> int:
    text = pod.pod.ref.name.rpartition("-")[2]
    return int(text) if text.isdigit() else 0
