"""What one replica of a workload carries, learned from how its load was spread. Pure."""

from __future__ import annotations

from typing import Annotated, Final, NamedTuple

import msgspec

_HALF_LIFE: Final = 6 * 3600.0
"""Seconds after which what was seen has half its weight, as long as the recent history."""
_LEAST: Final = 1e-18
"""Below it, a sum is nothing: after weeks without load, decay leaves numbers that cannot be
divided."""
_Sum = Annotated[float, msgspec.Meta(ge=0, le=1e40)]


class ReplicaLoad(NamedTuple):
    """The mean load of a replica, in which busy times count more than idle ones.

    An HPA keeps the load of a replica at its target while there is work, and below it at
    ``minReplicas``. So the mean is weighted by the load.
    """

    weighted: _Sum = 0.0
    """Sum of load times load per replica, decayed."""
    weight: _Sum = 0.0
    """Sum of the load, decayed."""
    at: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    """Epoch seconds of the last observation."""

    def learn(self, load: float, replicas: int, now: float) -> ReplicaLoad:
        """Return it with one more observation.

        Args:
            load: of all replicas together, as a history keeps it
                (:func:`adapter.nodepool.learn.history.rounded`).
            replicas: more than 0.
        """
        part = self._remaining_share(now)
        return ReplicaLoad(
            self.weighted * part + load * load / replicas, self.weight * part + load, now
        )

    def better_of(self, other: ReplicaLoad) -> ReplicaLoad:
        """Return the one that rests on more load, as it counts by the later of their times.

        Of two that rest on the same, it is this one.
        """
        now = max(self.at, other.at)
        more = other.weight * other._remaining_share(now) > self.weight * self._remaining_share(now)
        return other if more else self

    @property
    def mean(self) -> float | None:
        """The load of one replica, above 0; None while there was no load."""
        had_load = min(self.weighted, self.weight) > _LEAST
        return self.weighted / self.weight if had_load else None

    def _remaining_share(self, now: float) -> float:
        """Return the part of its weight that it still has."""
        part: float = 0.5 ** (max(0.0, now - self.at) / _HALF_LIFE)
        return part
