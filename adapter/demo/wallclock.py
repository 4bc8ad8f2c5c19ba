"""The time of day at which a second of the simulation is played.

Objects and samples that a user sees carry real times, so that an age of ten seconds is ten seconds
of the user. The simulation runs several times as fast.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from apiservice.wire import instant


@dataclass(slots=True)
class WallClock:
    """Converts seconds of the simulation to epoch seconds."""

    speed: float
    """Simulated seconds per real second."""
    origin: float = field(default_factory=time.time)
    """Epoch seconds of the simulation's 0."""

    def at(self, simulated: float) -> float:
        """Return the epoch seconds of a second of the simulation."""
        return self.origin + simulated / self.speed

    def text(self, simulated: float) -> str:
        """Return the same as RFC 3339, in whole seconds."""
        return instant.write(self.at(simulated))
