"""Compare a replay of the HPA's own settings with what the controller really did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from adapter.hpa import ControllerOptions, HpaSpec, HpaState, decide
from adapter.tools.replay.syncs import WRITTEN, RecordedSync

SHOWN: Final = 20
"""Differences that are kept with their details."""


class Difference(NamedTuple):
    """A sync at which the replay decides otherwise."""

    time: float
    ours: int
    theirs: int


@dataclass(slots=True)
class Agreement:
    """How often the replay and the controller agree."""

    compared: int = 0
    """Syncs whose result the recording has."""
    equal: int = 0
    edges: int = 0
    """Those of ``equal`` at which a stabilization window, or the period of a policy, ends so close
    to the sync that the controller may have decided before or after its end."""
    checked: int = 0
    """Those of ``compared`` whose status has the values of the metrics."""
    exact: int = 0
    """Syncs at which the values of the metrics equal those in the status."""
    differences: list[Difference] = field(default_factory=list)
    """The first ones."""

    def note(self, time: float, ours: int, theirs: int) -> None:
        """Note the replicas after one sync."""
        self.compared += 1
        if ours == theirs:
            self.equal += 1
        elif len(self.differences) < SHOWN:
            self.differences.append(Difference(time, ours, theirs))


class _Seen(NamedTuple):
    """What the next known status shows of the syncs before it."""

    replicas: int | None
    """None if there is none, or if the recording has every status."""
    within: float


def compare(
    spec: HpaSpec, syncs: Sequence[RecordedSync], controller: ControllerOptions
) -> Agreement:
    """Decide at each sync from the recorded values, and compare with the recorded status.

    The replay starts with the recorded replicas, and then goes on with its own.
    """
    agreement = Agreement()
    state, replicas = HpaState(), None
    for sync, later in zip(syncs, _later_statuses(syncs), strict=True):
        if sync.first or replicas is None:
            state, replicas = HpaState(), sync.seen.replicas
        observation = replace(sync.seen, replicas=replicas)
        decision, after = decide(spec, state, observation, sync.time, controller)
        wanted = later.replicas if sync.desired is None else sync.desired
        if wanted is not None and decision.desired != wanted:
            # Syncs that changed nothing are known to within half a period.
            half = max(controller.sync_period / 2, sync.within, later.within)
            for shift in (-WRITTEN, WRITTEN, -half, half):
                now = sync.time + shift
                other, then = decide(spec, state, observation, now, controller)
                if other.desired == wanted:
                    decision, after = other, then
                    agreement.edges += sync.desired is not None
                    break
        state, replicas = after, decision.desired
        if sync.desired is not None:
            agreement.note(sync.time, replicas, sync.desired)
            agreement.checked += sync.exact is not None
            agreement.exact += bool(sync.exact)
    return agreement


def _later_statuses(syncs: Sequence[RecordedSync]) -> list[_Seen]:
    """Return the replicas of the next status for each sync whose own status is not known.

    A store has the statuses at its scrapes. The controller may have decided in between, and the
    next status shows the replicas after that.
    """
    statuses = []
    status = nothing = _Seen(None, 0.0)
    for sync in reversed(syncs):
        statuses.append(nothing if sync.desired is not None else status)
        if sync.desired is not None:
            status = _Seen(sync.seen.replicas, sync.within) if sync.within else nothing
        if sync.first:
            status = nothing
    return statuses[::-1]
