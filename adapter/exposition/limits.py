"""What one page may cost, in time and in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

OVER_BUDGET: Final = "over_budget"
"""Counts samples for which there is no memory."""
SET_BYTES: Final = 1024
"""What a label set takes at most beside its text and labels."""
TEXT_BYTES: Final = 5
"""What a byte of its text takes at most. The text is kept, and one character beyond the Basic
Multilingual Plane makes each character of its string take four bytes."""
LABEL_BYTES: Final = 128
"""What a label takes at most beside its text."""


@dataclass(frozen=True, slots=True)
class PageLimits:
    """What one page may cost; beyond ``lines`` and ``work`` it is abandoned as a whole."""

    lines: int = 1 << 18
    """Lines of any kind, empty ones included."""
    samples: int = 1 << 16
    """Samples of the catalogue: three times what 16 GPUs with 48 replicas each have."""
    work: int = 1 << 18
    """Closer looks: two at a bad, escaped or stamped line, two at a new label set and one at every
    fourth of its labels. One takes about half a microsecond."""
    held: int = 32 << 20
    """Bytes of label sets that are remembered; samples with further ones are left out."""
    large: int = 1 << 18
    """Bytes of a page that waits for other large pages; a usual one is read in some 3 ms."""


EXPORTER: Final = PageLimits()
"""For pages of exporters: 16 GPUs with 48 replicas each hold 6 MB of label sets."""
SERVER: Final = PageLimits(
    lines=1 << 15, samples=1 << 12, work=1 << 13, held=1 << 20, large=1 << 16
)
"""For pages that pods serve about themselves: whoever may create a pod may write one."""
