"""ScaledObjects that have made no HPA: nothing scales their workloads, and no list of HPAs says so.

:mod:`adapter.answers.keda.trouble` says why. A list reads no events and no targets, so it knows
what the ScaledObject itself says. KEDA deletes the HPA of one that an annotation pauses, except for
a pause of one direction (keda ``controllers/keda/scaledobject_controller.go``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from adapter.answers.judgement.judge import CREATION
from adapter.answers.judgement.states import HpaJudgement, ScalingState
from adapter.answers.keda.manifest import SeenScaledObject
from adapter.answers.keda.trouble import ScaledFacts, causes_of_scaled


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
    advice: str = ""
    """What to do, in words; empty if there is nothing to do yet."""


def unmade_hpas(
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
    for owner in scaled:
        if (owner.namespace, owner.name) in owners or (owner.namespace, owner.hpa) in names:
            continue
        yield _judge_unmade(owner, now)


def _judge_unmade(scaled: SeenScaledObject, now: float) -> UnmadeHpa:
    since = scaled.created
    refused = scaled.paused or any(
        (row.type, row.status) == ("Ready", "False") for row in scaled.conditions
    )
    causes = causes_of_scaled(ScaledFacts(now, scaled))
    if not causes or (not refused and since is not None and now - since <= CREATION):
        text = "waiting for KEDA to make its HPA"
        return UnmadeHpa(scaled, HpaJudgement(ScalingState.WAITING, text, since=since))
    cause = causes[0]
    state = ScalingState.PAUSED if scaled.paused else ScalingState.STUCK
    if not scaled.conditions and not scaled.paused:
        state = ScalingState.STALE
    text = cause.text.removeprefix("is ")
    if not text.startswith(state):
        text = f"{state}: {text}"
    state_since = None if refused else since
    return UnmadeHpa(scaled, HpaJudgement(state, text, since=state_since), cause.fix)
