"""What one replica of a workload carries, learned from how its load was spread. Pure."""

from __future__ import annotations

from typing import Final, NamedTuple

_HALF_LIFE: Final = 6 * 3600.0
"""Seconds after which what was seen has half its weight, as long as the recent history."""


class ReplicaLoad(NamedTuple):
    """The mean load of a replica, in which busy times count more than idle ones.

    An HPA keeps the load of a replica at its target while there is work, and below it at
    ``minReplicas``. So the mean is weighted by the load.
    """

    weighted: float = 0.0
    """Sum of load times load per replica, decayed."""
    weight: float = 0.0
    """Sum of the load, decayed."""
    at: float = 0.0
    """Epoch seconds of the last observation."""

    def learn(self, load: float, replicas: int, now: float) -> ReplicaLoad:
        """Return it with one more observation.

        Args:
            load: of all replicas together.
            replicas: more than 0.
        """
        kept = 0.5 ** (max(0.0, now - self.at) / _HALF_LIFE)
        return ReplicaLoad(
            self.weighted * kept + load * load / replicas, self.weight * kept + load, now
        )

    @property
    def mean(self) -> float | None:
        """The load of one replica; None while there was no load."""
        return self.weighted / self.weight if self.weight > 0 else None
