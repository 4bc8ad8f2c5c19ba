"""The options of the demo."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

from adapter.demo import story

FASTEST = 60.0
"""Beyond this speed, ``serve`` would have to scrape more than twelve times a second."""
CALM_FASTEST = 30.0
"""The highest speed chosen by default: a shorter run then shows less of the story."""


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """The command's flags."""

    seconds: float = 60.0
    """Real seconds to run for, above 0."""
    speed: float | None = None
    """Simulated seconds per real second, from 1 to 60. None: the whole story in ``seconds``."""
    seed: int = 7
    """Seed of the load; the same seed gives the same requests."""
    plain: bool = False
    """Lines of text even on a terminal."""
    port: int = 0
    """TCP port of ``serve`` on loopback; 0 takes a free one."""
    keep: bool = False
    """Leave the temporary folder (certificates, configuration, log) when done."""
    command: tuple[str, ...] = (sys.executable, "-P", "-m", "adapter")
    """The command that runs the adapter's command line."""

    def __post_init__(self) -> None:
        if not 0 < self.seconds < math.inf:
            raise ValueError(f"--seconds {self.seconds:g}: give a number above 0")
        if self.speed is not None and not 1 <= self.speed <= FASTEST:
            raise ValueError(f"--speed {self.speed:g}: give a number from 1 to {FASTEST:g}")
        if not 0 <= self.port <= 65535:
            raise ValueError(f"--port {self.port}: give a number from 0 to 65535")

    @property
    def effective_speed(self) -> float:
        """``speed``, or the speed at which the story fits into ``seconds``."""
        if self.speed is not None:
            return self.speed
        return min(CALM_FASTEST, max(1.0, story.LENGTH / self.seconds))
