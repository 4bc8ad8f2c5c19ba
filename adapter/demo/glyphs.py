"""Characters for bars and small graphs, for Unicode and ASCII terminals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from adapter.demo.fleet import Stage


class Glyphs(NamedTuple):
    """The characters of bars and graphs."""

    levels: str
    full: str
    empty: str
    none: str
    """Drawn for a missing value."""
    pods: Mapping[Stage, str]
    """A pod, by its stage."""

    def spark(self, values: Sequence[float | None], top: float, width: int) -> str:
        """Draw the last ``width`` values as a graph from 0 to ``top``."""
        steps = len(self.levels) - 1
        return "".join(
            self.none
            if value is None
            else self.levels[round(steps * min(max(value / top, 0.0), 1.0))]
            for value in values[max(0, len(values) - width) :]
        )

    def bar(self, share: float, width: int) -> str:
        """Draw a share from 0 to 1 as a bar; anything above 0 is visible."""
        filled = round(width * share)
        filled = max(1, filled) if share > 0.01 else filled
        return self.full * filled + self.empty * (width - filled)


_STAGES = (Stage.READY, Stage.STARTING, Stage.PENDING)
UNICODE = Glyphs("▁▂▃▄▅▆▇█", "█", "░", "·", dict(zip(_STAGES, "●◐○", strict=True)))
ASCII = Glyphs("_.,-=+*#", "#", ".", " ", dict(zip(_STAGES, "#+o", strict=True)))
"""For terminals whose encoding has no block characters."""
