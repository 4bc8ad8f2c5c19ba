"""The options of the demo."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

from adapter.demo import story

_SHORT, _LONG = 60.0, 3600.0
"""Real seconds of a run without a page, and with one."""
_ROUND = 120.0
"""Real seconds in which the story is played once for a page."""
FASTEST = 60.0
"""Beyond this speed, ``serve`` would have to scrape more than twelve times a second."""
CALM_FASTEST = 30.0
"""The highest speed chosen by default: a shorter run then shows less of the story."""


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """The command's flags."""

    seconds: float | None = None
    """Real seconds to run for, above 0. None: a minute, or an hour with a page to look at."""
    speed: float | None = None
    """Simulated seconds per real second, from 1 to 60. None: the whole story in ``seconds``, or in
    two minutes with a page and without ``seconds``."""
    seed: int = 7
    """Seed of the load; the same seed gives the same requests."""
    plain: bool = False
    """Lines of text even on a terminal."""
    port: int = 0
    """TCP port of ``serve`` on loopback; 0 takes a free one."""
    ui: bool = False
    """Also show the page of ``ui``."""
    browser: bool = True
    """Open a browser for the page, if the machine has a display."""
    keep: bool = False
    """Leave the temporary folder (certificates, configuration, log) when done."""
    command: tuple[str, ...] = (sys.executable, "-P", "-m", "adapter")
    """The command that runs the adapter's command line."""

    def __post_init__(self) -> None:
        if not 0 < self.effective_seconds < math.inf:
            raise ValueError(f"--seconds {self.effective_seconds:g}: give a number above 0")
        if self.speed is not None and not 1 <= self.speed <= FASTEST:
            raise ValueError(f"--speed {self.speed:g}: give a number from 1 to {FASTEST:g}")
        if not 0 <= self.port <= 65535:
            raise ValueError(f"--port {self.port}: give a number from 0 to 65535")

    @property
    def effective_seconds(self) -> float:
        """``seconds``, or the default."""
        if self.seconds is not None:
            return self.seconds
        return _LONG if self.ui else _SHORT

    @property
    def effective_speed(self) -> float:
        """``speed``, or the speed at which the story fits into ``seconds``."""
        if self.speed is not None:
            return self.speed
        if self.ui and self.seconds is None:
            return story.LENGTH / _ROUND
        return min(CALM_FASTEST, max(1.0, story.LENGTH / self.effective_seconds))
