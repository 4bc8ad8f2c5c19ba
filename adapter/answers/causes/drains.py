"""What keeps a node from being emptied: by Karpenter, the cluster autoscaler, or ``kubectl drain``.

Karpenter says so in events about the node (``DisruptionBlocked``: ``Pdb prevents pod evictions
(PodDisruptionBudget=NAMESPACE/NAME)``, ``FailedDraining``), the cluster autoscaler in
``ScaleDownFailed``, which it writes only once it has begun. What it does not try is in no event, so
that the budgets and annotations are looked at as well.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from adapter.answers.causes.cause import Cause, CauseCode
from adapter.answers.causes.target import shorten
from adapter.figures import age, count
from adapter.pipeline.cluster.changes import ChangedObject, ObjectChange, set_fields
from adapter.pipeline.cluster.evictions import KARPENTERS, KEEPING_NODE, SeenBudget
from adapter.pipeline.cluster.fixes import make_lasting
from adapter.pipeline.cluster.nodestarts import leaving_words
from adapter.pipeline.cluster.objects import SeenEvent, SeenNode, SeenNodeClaim
from adapter.pipeline.cluster.podobjects import DO_NOT_DISRUPT, SAFE_TO_EVICT, SeenPod

REASONS: Final = {
    "DisruptionBlocked": "Karpenter",
    "FailedDraining": "Karpenter",
    "ScaleDownFailed": "the cluster autoscaler",
}
"""Reason of an event about a node that is kept -> who writes it."""
_FRESH: Final = 3600.0
"""Seconds for which such an event counts. Karpenter repeats it every few minutes."""
_KEEP: Final = ("evict", "do-not-disrupt", "failed to drain", "failed to delete")
"""Parts of messages that name what keeps a node. ``DisruptionBlocked`` also says that a node is
nominated for a pod, not initialized, or already going."""
_PATIENCE: Final = 300.0
"""Seconds between the first and the last time: a drain takes the grace periods of its pods, and
Karpenter reports ``FailedDraining`` meanwhile (kubernetes-sigs/karpenter issue 3185)."""
_SHOWN: Final = 3


def blocked_nodes(events: Iterable[SeenEvent], now: float) -> dict[str, str]:
    """Return node -> what an autoscaler last said keeps the node, of the last hour."""
    by_node: dict[str, SeenEvent] = {}
    for event in sorted(events, key=lambda row: row.last or 0.0):
        about = event.involved_object
        keeps = any(part in event.message.lower() for part in _KEEP)
        fresh = event.last is not None and now - event.last <= _FRESH
        first, last = event.first or 0.0, event.last or 0.0
        early = event.reason == "FailedDraining" and last - first < _PATIENCE
        if event.reason in REASONS and about.kind == "Node" and fresh and keeps and not early:
            by_node[about.name] = event
    return {
        name: f"{REASONS[event.reason]} cannot remove it: {shorten(event.message).rstrip('.')}"
        for name, event in by_node.items()
    }


def why_leaving(node: SeenNode, claims: Iterable[SeenNodeClaim], now: float) -> str:
    """Return why a node is to be emptied, after its name; empty if nobody wants to."""
    if node.metadata.deletion_timestamp:
        return "is being deleted"
    for taint in node.taints:
        if words := leaving_words(taint):
            return f"has the taint {taint}: {words}"
    for claim in claims:
        row = claim.status.of("Drifted") if claim.status.node_name == node.name else None
        if row is not None and row.status == "True":
            lasts = "" if row.since is None else f" for {age(now - row.since)}"
            return (
                f"differs from its NodePool{lasts} (Drifted: {row.reason}), and is to be replaced"
            )
    return "is cordoned" if node.spec.unschedulable else ""


def keepers(
    node: SeenNode, pods: Sequence[SeenPod], budgets: Iterable[SeenBudget], *, structural: bool
) -> Iterator[Cause]:
    """Yield what keeps a node from being emptied; each text follows the node's name.

    Args:
        node: the node.
        pods: those of the node.
        budgets: of their namespaces.
        structural: only what never ends by itself, and that nobody has asked for: a budget that
            allows no eviction while all of its pods are healthy.
    """
    staying = [pod for pod in pods if _counts(pod)]
    for budget in budgets:
        protected = _protected_pods(budget, staying)
        if protected and (budget.never_opens or not structural):
            yield _of_budget(budget, protected)
    if structural:
        return
    ours = any(label in node.metadata.labels for label in KARPENTERS)
    yield from _of_node(node, ours)
    key = DO_NOT_DISRUPT if ours else SAFE_TO_EVICT
    if noted := [pod for pod in staying if key in pod.keeping]:
        yield _of_annotation(key, noted)
    if not ours and (bare := [pod for pod in staying if pod.pod.owner is None]):
        yield _of_bare_pods(bare)


def _counts(pod: SeenPod) -> bool:
    """Return whether the pod has to go before the node does: not one of a DaemonSet, or static."""
    owner = pod.pod.owner
    stays = owner is not None and owner.kind in ("DaemonSet", "Node")
    return not (stays or pod.pod.finished or pod.pod.deleting or pod.pod.placeholder)


def _protected_pods(budget: SeenBudget, pods: Iterable[SeenPod]) -> list[SeenPod]:
    selector = budget.selector
    if selector is None or not budget.closed:
        return []
    return [
        pod
        for pod in pods
        if pod.pod.ref.namespace == budget.metadata.namespace
        if selector.matches(pod.pod.labels) and budget.protects(ready=pod.pod.ready)
    ]


def _of_budget(budget: SeenBudget, pods: Sequence[SeenPod]) -> Cause:
    status, meta = budget.status, budget.metadata
    text = (
        f"is kept by PodDisruptionBudget {budget.key} ({budget.rule}): it allows no eviction of "
        f"{_names(pods)}"
    )
    of = ChangedObject("PodDisruptionBudget", meta.namespace, meta.name, meta.manager)
    if budget.never_opens:
        change = set_fields(of, {"spec.minAvailable": None, "spec.maxUnavailable": 1})
        fix = make_lasting(
            of, ObjectChange("set maxUnavailable to 1 for minAvailable", change.command)
        )
        words = f"let the budget allow one eviction at a time ({fix.text}), or run more replicas"
        return _cause(budget.key, f"{text}, also while all are ready", words, fix.command, pods)
    text += f": {status.current_healthy} are ready, and {status.desired_healthy} have to be"
    words = "see why the other pods of the budget are not ready"
    command = of.kubectl("describe", "")
    return _cause(budget.key, text, words, command, pods)


def _of_node(node: SeenNode, ours: bool) -> Iterator[Cause]:
    for key, word in KEEPING_NODE.items():
        if node.metadata.annotations.get(key) == word and (key == DO_NOT_DISRUPT) == ours:
            command = f"kubectl annotate node {shlex.quote(node.name)} {key}-"
            text = f"is kept by its own annotation {key}: {word}"
            fix = "remove the annotation, if the node may go"
            yield _cause(node.name, text, fix, command, ())


def _of_annotation(key: str, pods: Sequence[SeenPod]) -> Cause:
    word = '"true"' if key == DO_NOT_DISRUPT else '"false"'
    namespace, name = pods[0].pod.ref
    text = f"is kept by the annotation {key}: {word} of {_names(pods)}"
    fix = (
        "wait for the pods to end; if they may be moved, remove the annotation from the pod "
        "template, and from the pods that run"
    )
    command = f"kubectl -n {shlex.quote(namespace)} annotate pod {shlex.quote(name)} {key}-"
    return _cause(pods[0].key, text, fix, command, pods)


def _of_bare_pods(pods: Sequence[SeenPod]) -> Cause:
    namespace, name = pods[0].pod.ref
    text = f"is kept by {_names(pods)}: nothing would create {_it(pods)} again"
    fix = "delete the pod, create it by a Deployment or Job, or mark it as safe to evict"
    note = f"{SAFE_TO_EVICT}=true"
    command = f"kubectl -n {shlex.quote(namespace)} annotate pod {shlex.quote(name)} {note}"
    return _cause(pods[0].key, text, fix, f"{command} --overwrite", pods)


def _it(pods: Sequence[SeenPod]) -> str:
    return "it" if len(pods) == 1 else "them"


def _names(pods: Sequence[SeenPod]) -> str:
    some = ", ".join(pod.key for pod in pods[:_SHOWN])
    more = ", …" if len(pods) > _SHOWN else ""
    return f"{count(len(pods), 'pod')} ({some}{more})"


def _cause(subject: str, text: str, fix: str, command: str, pods: Sequence[SeenPod]) -> Cause:
    names = tuple(pod.pod.ref.name for pod in pods)
    return Cause(CauseCode.NODE_KEPT, subject, text, fix, command, names)
