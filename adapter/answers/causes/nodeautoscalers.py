"""What node autoscalers say of pods without a node, and of the nodes that they order for them.

It stands in events: the cluster autoscaler's ``NotTriggerScaleUp``, a normal event
(kubernetes/autoscaler issues 3268 and 5692), ``FailedScaleUp`` with the answer of the cloud, and
Karpenter's ``FailedScheduling``.

Karpenter writes an event about a pod that names the NodeClaim for it (``Nominated``: ``Pod should
schedule on: nodeclaim/NAME``; kubernetes-sigs/karpenter ``pkg/controllers/provisioning/scheduling/
events.go``).
Why that node does not come stands elsewhere: in the warnings about the NodeClaim
(``InsufficientCapacityError``, ``NodeClassNotReady``; ``pkg/controllers/nodeclaim/lifecycle/
events.go``) and in its conditions Launched, Registered and Initialized. From 1.15 on Karpenter
writes ``InsufficientCapacityError`` about the pods too, for those who may not read NodeClaims. A
NodeClaim without capacity is deleted at once and its pool tries again, so a claim's name changes
while its pool's stays.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from adapter.answers.causes.facts import ClusterFacts, pod_key
from adapter.answers.causes.placesigns import BACKOFF
from adapter.answers.causes.signs import sign_of
from adapter.answers.causes.target import shorten
from adapter.figures import age
from adapter.pipeline.cluster.objects import SeenEvent, SeenNodeClaim
from adapter.pipeline.cluster.podobjects import SeenPod

_PREFIX: Final = " trigger scale-up: "
_NO_CAPACITY: Final = "InsufficientCapacityError"
_AUTOSCALERS: Final = ("NotTriggerScaleUp", "FailedScaleUp", "FailedScheduling", _NO_CAPACITY)
"""Reasons of the events in which node autoscalers say what they did about a pod."""
NOMINATED: Final = "Nominated"
"""Reason of the event that names a pod's NodeClaim."""
KIND: Final = "NodeClaim"
_NAME: Final = re.compile(r"nodeclaim/([a-z0-9][a-z0-9.-]{0,252})")
_REFUSED: Final = (_NO_CAPACITY, "NodeClassNotReady")
"""Reasons of warnings about a NodeClaim whose machine does not come."""
_FRESH: Final = 1800.0
"""Seconds for which a warning about a NodeClaim counts."""
_STEPS: Final = {
    "Launched": "is not launched",
    "Registered": "has not joined the cluster",
    "Initialized": "is not initialized",
}
"""Conditions of a NodeClaim in their order, and what it means if one is not True."""
_PATIENCE: Final = 300.0
"""Seconds that a machine may take from one step to the next."""


def nominated_claims(events: Iterable[SeenEvent]) -> list[str]:
    """Return the NodeClaims that events of pods name, the newest first."""
    rows = [event for event in events if event.reason == NOMINATED]
    rows.sort(key=lambda event: -(event.last or 0.0))
    names = (name for row in rows for name in _NAME.findall(row.message))
    return list(dict.fromkeys(names))


def last_verdict(facts: ClusterFacts, pods: Sequence[SeenPod]) -> str:
    """Return what a node autoscaler last said of these pods; empty if it said nothing.

    Why an ordered node does not come counts more than that it was ordered, and what the cloud
    answered more than that the autoscaler waits after it.
    """
    if ordered := _of_claims(facts, pods):
        return ordered
    rows = [
        row
        for pod in pods
        for row in facts.events_of(pod_key(pod), *_AUTOSCALERS)
        if row.reason != "FailedScheduling" or "nodepool" in row.message.lower()
    ]
    last = max(
        rows,
        key=lambda row: (sign_of([BACKOFF], row.message) is None, row.last or 0.0),
        default=None,
    )
    if last is None:
        return ""
    if last.reason == _NO_CAPACITY:
        return _warning_text(last)
    return shorten(last.message.rpartition(_PREFIX)[2]).rstrip(".")


def troubles(
    claims: Iterable[SeenNodeClaim], events: Iterable[SeenEvent], now: float
) -> Iterator[tuple[str, str, str]]:
    """Yield each NodeClaim whose machine does not come, as ``nodeclaim NAME``, with why, and a
    command that shows more.

    Of the claims of one pool that the cloud refused, which are gone at once, the last one stands.
    """
    last: dict[str, SeenEvent] = {}
    for event in sorted(events, key=lambda row: row.last or 0.0):
        about, fresh = event.involved_object, event.last is not None and now - event.last <= _FRESH
        if about.kind == KIND and event.type != "Normal" and fresh and event.reason in _REFUSED:
            last[about.name.rpartition("-")[0]] = event
    for event in last.values():
        text = _warning_text(event)
        fields = f"involvedObject.kind={KIND},reason={event.reason}"
        command = f"kubectl -n default get events --field-selector {fields}"
        yield f"nodeclaim {event.involved_object.name}", text, command
    refused = {event.involved_object.name for event in last.values()}
    for claim in claims:
        name = claim.metadata.name
        if name not in refused and (text := _late_step(now, claim)):
            command = f"kubectl describe nodeclaim {shlex.quote(name)}"
            yield f"nodeclaim {name}", text.removeprefix(f"NodeClaim {name} "), command


def _of_claims(facts: ClusterFacts, pods: Sequence[SeenPod]) -> str:
    """Return why the nodes that Karpenter orders for these pods do not come; empty if it says
    nothing."""
    claims = nominated_claims(
        event for pod in pods for event in facts.events_of(pod_key(pod), NOMINATED)
    )
    if not claims:
        return ""
    warnings = sorted(_warnings(facts, claims), key=lambda event: event.last or 0.0)
    if warnings:
        return _warning_text(warnings[-1])
    by_name = {claim.metadata.name: claim for claim in facts.claims}
    return next(filter(None, (_late_step(facts.now, by_name.get(name)) for name in claims)), "")


def _warning_text(event: SeenEvent) -> str:
    return f"{event.reason}: {shorten(event.message)}".rstrip(".")


def _warnings(facts: ClusterFacts, claims: Sequence[str]) -> Iterator[SeenEvent]:
    pools = {claim.rpartition("-")[0] for claim in claims}
    for event in facts.events:
        about = event.involved_object
        if about.kind != KIND or event.type == "Normal" or facts.past(event.last, _FRESH):
            continue
        if about.name in claims or about.name.rpartition("-")[0] in pools:
            yield event


def _late_step(now: float, claim: SeenNodeClaim | None) -> str:
    """Return the step at which the machine of a NodeClaim stays; empty if it comes along."""
    if claim is None:
        return ""
    for kind, words in _STEPS.items():
        row = claim.status.of(kind)
        if row is None or row.status == "True":
            continue
        early = row.since is not None and now - row.since < _PATIENCE
        if row.status != "False" and early:
            return ""
        lasts = "" if row.since is None else f" for {age(now - row.since)}"
        why = row.message if row.message and row.message != row.reason else row.reason
        return f"NodeClaim {claim.metadata.name} {words}{lasts}: {shorten(why)}".rstrip(".: ")
    return ""
