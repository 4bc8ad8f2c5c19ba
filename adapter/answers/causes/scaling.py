"""Causes around the HPA itself: its target, its pods, its controller, and who else scales.

Argo CD sets ``spec.replicas`` back to what git has, and the HPA scales again: "keeps scaling pods
between same nums" (argoproj/argo-cd issue 5105, apache/superset-kubernetes-operator pull request
152). ``metadata.managedFields`` names the last writer of the field; the HPA controller writes
through the subresource ``scale`` as ``kube-controller-manager``.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Final

from adapter.answers.causes import fixes
from adapter.answers.causes.cause import Cause, CauseCode
from adapter.answers.causes.facts import ClusterFacts, KubeKey, ScalerFacts
from adapter.answers.causes.target import Target
from adapter.figures import age, count
from adapter.pipeline.cluster.fixes import make_lasting
from adapter.pipeline.cluster.podobjects import SeenPod
from adapter.pipeline.cluster.workloadobjects import SpecWriter
from apiservice.labels.selector import Selector

_HPA_MANAGER: Final = "kube-controller-manager"
_SIZE: Final = re.compile(r"New size: (\d{1,9});")
_ARGO: Final = (
    "remove spec.replicas from the manifest in git, or add /spec/replicas to ignoreDifferences of "
    "the Application, with RespectIgnoreDifferences=true"
)
_HOUR: Final = 3600.0
_OFTEN: Final = 3
"""Times that the HPA sets one size in an hour, and no other, before somebody must reset it."""
_SYNCS: Final = 60.0
"""Seconds in which a controller that runs has synced an HPA: by default it does every 15 s."""
_LEASE: Final = 60.0
"""Seconds after which a lease that nobody renews is that of a stopped program: 15 s by default."""


def foreign_pods(target: Target, selector: Selector) -> Iterator[Cause]:
    """Yield the other workloads whose pods the target's selector matches.

    Args:
        selector: of the scale's pods, as the HPA controller reads it.
    """
    own_keys = {pod.key for pod in target.pods}
    if not own_keys:
        return  # the chain of owners is not known
    others: dict[KubeKey | None, list[SeenPod]] = {}
    for pod in target.facts.select_pods(target.hpa.namespace, selector):
        if pod.key not in own_keys:
            others.setdefault(target.facts.top(pod), []).append(pod)
    for owner, rows in others.items():
        whose = str(owner) if owner is not None else "no workload"
        fix = f"give {owner or 'these pods'} labels that the selector of {target.subject} excludes"
        command = fixes.describe(target.hpa.of)
        yield target.cause(
            CauseCode.FOREIGN_PODS,
            f"the selector of {target.subject} matches {target.some(rows)} of {whose} too, and the "
            "HPA counts them: its values and sizes are those of both",
            f"{fix}; a selector cannot be changed, so create the workload again with it",
            command,
            rows,
        )


def size_owners(target: Target) -> Iterator[Cause]:
    """Yield that another object sets the target's size: its owner, or a program that writes it.

    A Deployment sets the size of its ReplicaSets (openshift/origin-web-console issue 675).
    """
    workload = target.workload
    owners = workload.metadata.owner_references if workload is not None else ()
    owner = next(
        (row for row in owners if row.controller and target.hpa.kind == "ReplicaSet"), None
    )
    if owner is None:
        yield from replicas_reset(target)
        return
    hpa = target.hpa
    spec = {"apiVersion": owner.api_version, "kind": owner.kind, "name": owner.name}
    change = fixes.merge(hpa.changed, {"spec": {"scaleTargetRef": spec}})
    words = f"let the HPA scale {owner.kind} {owner.name}: set spec.scaleTargetRef to it"
    lasts = make_lasting(hpa.changed, change._replace(words=words))
    yield Cause(
        CauseCode.REPLICAS_RESET,
        hpa.subject,
        f"{owner.kind} {owner.name} owns {target.subject} and sets its size back each time the HPA "
        "has changed it",
        lasts.advice(words),
        lasts.command,
    )


def zeroing_cronjobs(target: Target) -> Iterator[Cause]:
    """Yield the CronJobs that scale the target, while it has 0 replicas.

    The HPA controller wakes no target that somebody else scaled to 0, so the job of the evening
    needs one of the morning (kubernetes/kubernetes issue 95695).
    """
    workload, hpa = target.workload, target.hpa
    if workload is None or workload.spec.replicas:
        return
    for job in target.facts.cronjobs:
        text = " ".join(job.words)
        if job.spec.suspend or "scale" not in text or not _names(text, hpa.target):
            continue
        key = KubeKey(hpa.namespace, "CronJob", job.metadata.name)
        writer = other_writer(workload.writers)
        time = writer.time if writer is not None and writer.replicas else None
        since = f", for {age(target.facts.now - time)}" if time is not None else ""
        yield target.cause(
            CauseCode.REPLICAS_RESET,
            f"{target.subject} has 0 replicas{since}, and {key} scales it ({job.spec.schedule}): "
            "the HPA wakes no target that somebody else scaled to 0",
            "see whether a job that scales it up again exists, and ran; else add one, or let this "
            "job set minReplicas and maxReplicas of the HPA instead",
            f"kubectl -n {shlex.quote(hpa.namespace)} get cronjobs",
            since=time,
            subject=str(key),
        )


def _names(text: str, name: str) -> bool:
    """Return whether a command line names an object: not as a part of a longer name."""
    return re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])", text) is not None


def replicas_reset(target: Target) -> Iterator[Cause]:
    """Yield who sets the target's size back each time the HPA has changed it."""
    facts, hpa = target.facts, target.hpa
    key = KubeKey(hpa.namespace, "HorizontalPodAutoscaler", hpa.name)
    sizes: dict[int, int] = {}
    first = last = None
    for event in facts.events_of(key, "SuccessfulRescale"):
        match = _SIZE.search(event.message)
        time = event.last
        if match is None or time is None or facts.past(time, _HOUR):
            continue
        size = int(match[1])
        sizes[size] = sizes.get(size, 0) + event.times
        last = max(last or time, time)
        first = min(first or time, event.first or time)
    if len(sizes) != 1 or target.workload is None:
        return
    ((size, times),) = sizes.items()
    replicas = target.workload.spec.replicas
    other = other_writer(target.workload.writers)
    now_reset = other is not None and other.replicas and replicas != size and times > 1
    if not now_reset and times < _OFTEN:
        return
    yield target.cause(
        CauseCode.REPLICAS_RESET,
        f"the HPA set {target.subject} to {size} replicas {times} times in "
        f"{age(facts.now - (first or facts.now))} (New size: {size}), and {_who(other)} sets "
        f"spec.replicas back{f' to {replicas}' if replicas != size else ''}",
        *_release(target, other),
        since=first,
    )


def other_writer(writers: Sequence[SpecWriter]) -> SpecWriter | None:
    """Return the writer of the size besides the HPA controller, or else who applies the object.

    The HPA controller takes the field from the other writer each time it sets the size.
    """
    others = [row for row in writers if row.manager != _HPA_MANAGER]
    return max(others, key=lambda row: (row.replicas, row.time or 0.0), default=None)


def _who(other: SpecWriter | None) -> str:
    if other is None:
        return "another program"
    return other.manager if other.replicas else f"probably {other.manager}, which applies it,"


def _release(target: Target, other: SpecWriter | None) -> tuple[str, str]:
    """Return how the other program leaves the size to the HPA, and a command that shows it."""
    shown = fixes.on(target.hpa.of, "get", "-o yaml --show-managed-fields")
    name = other.manager.lower() if other is not None else ""
    if "argo" in name:
        return _ARGO, shown
    if "kustomize-controller" in name or "helm" in name or "flux" in name:
        return "remove spec.replicas from the manifest in git, or from the chart's values", shown
    return "remove spec.replicas from what that program applies", shown


def wrong_namespace(facts: ClusterFacts, hpa: ScalerFacts) -> Iterator[Cause]:
    """Yield where the target is, if the HPA's own namespace has none."""
    places = sorted({key.namespace for key in facts.elsewhere if key[1:] == hpa.of[1:]})
    if not places:
        return
    where = " and ".join(places[:3])
    yield Cause(
        CauseCode.WRONG_NAMESPACE,
        hpa.subject,
        f"there is no {hpa.kind} {hpa.target} in namespace {hpa.namespace}, and there is one in "
        f"{where}: an HPA scales objects of its own namespace only",
        f"create the HPA in namespace {places[0]}, and delete this one"
        f"{f', where it is managed ({hpa.manager.source})' if hpa.manager is not None else ''}",
        _move_commands(hpa, places[0]) if hpa.manager is None else "",
    )


def _move_commands(hpa: ScalerFacts, namespace: str) -> str:
    """Return commands that create the HPA in another namespace and delete it in its own."""
    manifest = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": hpa.name, "namespace": namespace},
        "spec": hpa.spec,
    }
    text = shlex.quote(json.dumps(manifest, separators=(",", ":")))
    removal = fixes.on(KubeKey(hpa.namespace, "hpa", hpa.name), "delete")
    return f"echo {text} | kubectl apply -f - && {removal}"


def controller_stopped(
    facts: ClusterFacts, hpa: ScalerFacts, replicas: int | None
) -> Iterator[Cause]:
    """Yield that the HPA controller does not sync this HPA.

    Args:
        replicas: size of the target; None if it is not known.
    """
    lease = facts.controller_seen
    stale = lease is not None and facts.past(lease, _LEASE)
    silent = not hpa.synced and hpa.created is not None and facts.past(hpa.created, _SYNCS)
    written = hpa.spec_written or hpa.created
    outside = replicas not in (None, 0) and not hpa.low <= (replicas or 0) <= hpa.high
    key = KubeKey(hpa.namespace, "HorizontalPodAutoscaler", hpa.name)
    # Somebody else may set the size, or forbid the change: then the controller says so.
    acts = any(not facts.past(event.last, 2 * _SYNCS) for event in facts.about(key))
    ignored = outside and not acts and written is not None and facts.past(written, _SYNCS)
    if not (stale or silent or ignored):
        return
    if silent:
        text = f"it has not written a status since the HPA was created{facts.ago(hpa.created)}"
    elif ignored:
        text = (
            f"the target has {count(replicas or 0, 'replica')}, outside {hpa.low}..{hpa.high}, "
            f"and the spec was changed{facts.ago(written)}".replace(" for ", " ")
            + " ago"
        )
    else:
        text = "this HPA keeps its size"
    since = f"; its lease was renewed {age(facts.now - lease)} ago" if lease is not None else ""
    yield Cause(
        CauseCode.CONTROLLER_STOPPED,
        "kube-controller-manager",
        f"the HPA controller does not run, or does not get to this HPA: {text}{since}",
        "see whether kube-controller-manager runs, and its log; a managed cluster's provider has "
        "it",
        "kubectl -n kube-system get lease kube-controller-manager -o yaml",
        since=lease if stale else written,
    )
