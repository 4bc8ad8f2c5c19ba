"""ScaledObjects that have made no HPA: nothing scales their workloads, and no list of HPAs says so.

KEDA makes the HPA only after its checks of the ScaledObject, so one with a mistake has none. It
deletes the HPA of one that an annotation pauses, except for a pause of one direction (keda
``controllers/keda/scaledobject_controller.go``). Its conditions have no time.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from adapter.answers.judgement.judge import CREATION, SYNC
from adapter.answers.judgement.states import HpaJudgement, ScalingState
from adapter.answers.keda.manifest import PAUSED, SeenScaledObject
from adapter.figures import age
from adapter.pipeline.cluster.fixes import Fix

_LONGEST: Final = 200
"""Characters of KEDA's message."""
_LOOK: Final = "see whether keda-operator runs, and its log"
_OPERATOR: Final = "kubectl get pods --all-namespaces -l app=keda-operator"
"""The label of KEDA's chart and of its release manifests."""


class MadeHpa(NamedTuple):
    """An HPA, and the ScaledObject that owns it."""

    namespace: str
    name: str
    scaled_object: str
    """Empty without one."""


class UnmadeHpa(NamedTuple):
    """A ScaledObject without an HPA, and why it has none."""

    scaled: SeenScaledObject
    judgement: HpaJudgement
    """As that of an HPA, so that a list can show both."""
    advice: str
    """What to do, in words."""
    command: str | Fix
    """Does it, or shows more; empty if there is nothing to do yet."""


def unmade(
    scaled: Iterable[SeenScaledObject], hpas: Iterable[MadeHpa], now: float
) -> Iterator[UnmadeHpa]:
    """Yield the ScaledObjects that have no HPA.

    Args:
        scaled: of the cluster.
        hpas: those of the same namespaces.
        now: epoch seconds.
    """
    names: set[tuple[str, str]] = set()
    owners: set[tuple[str, str]] = set()
    for hpa in hpas:
        names.add((hpa.namespace, hpa.name))
        owners.add((hpa.namespace, hpa.scaled_object))
    for each in scaled:
        made = each.takes_over or each.hpa
        if (each.namespace, each.name) not in owners and (each.namespace, made) not in names:
            yield _explained(each, now)


def _explained(scaled: SeenScaledObject, now: float) -> UnmadeHpa:
    if scaled.paused:
        text = (
            "paused: an annotation pauses its ScaledObject, and KEDA has deleted its HPA, so its "
            "workload keeps its size"
        )
        found = HpaJudgement(ScalingState.PAUSED, text, by="ScaledObject")
        words = f"remove the annotation {' or '.join(PAUSED)} when the pause is over"
        return UnmadeHpa(scaled, found, words, scaled.resume)
    ready = next((row for row in scaled.conditions if row.type == "Ready"), None)
    if ready is not None and ready.status == "False":
        why = " ".join(f"{ready.reason}: {ready.message}".split())[:_LONGEST]
        text = f"stuck: its ScaledObject is not ready, and has no HPA: {why}"
        found = HpaJudgement(ScalingState.STUCK, text, ready.reason)
        command = f"kubectl -n {shlex.quote(scaled.namespace)} describe scaledobject "
        words = "correct what the condition says; its events have more"
        return UnmadeHpa(scaled, found, words, f"{command}{shlex.quote(scaled.name)}")
    known = ready is not None and ready.status == "True"
    since = scaled.created
    if since is not None and now - since <= (CREATION if known else SYNC):
        text = "waiting for KEDA to make its HPA"
        return UnmadeHpa(scaled, HpaJudgement(ScalingState.WAITING, text, since=since), "", "")
    if known:
        text = "stuck: KEDA calls its ScaledObject ready, and its HPA does not exist"
        return UnmadeHpa(scaled, HpaJudgement(ScalingState.STUCK, text), _LOOK, _OPERATOR)
    long = f" for {age(now - since)}" if since is not None else ""
    text = f"stale: KEDA has not looked at its ScaledObject{long}, and has made no HPA"
    return UnmadeHpa(scaled, HpaJudgement(ScalingState.STALE, text, since=since), _LOOK, _OPERATOR)
