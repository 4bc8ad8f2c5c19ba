"""Limits on lines, labels and memory of one page; :mod:`adapter.pipeline.sources.body` limits
bytes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

OVER_BUDGET: Final = "over_budget"
"""Reject reason of samples for which the memory budget is used up."""
SET_BYTES: Final = 1024
"""Upper bound of the bytes of a label set besides its text and labels."""
TEXT_BYTES: Final = 5
"""Upper bound of the bytes of memory per byte of text.

The text is kept. One character beyond the Basic Multilingual Plane makes each character of its
string take four bytes.
"""
LABEL_BYTES: Final = 128
"""Upper bound of the bytes of a label besides its text."""


@dataclass(frozen=True, slots=True)
class PageLimits:
    """Limits for one page. A page beyond ``lines`` or ``work`` is rejected as a whole."""

    lines: int = 1 << 18
    """Lines of any kind, including empty ones."""
    samples: int = 1 << 16
    """Samples whose series are in the catalogue: 3 x what 16 GPUs with 48 replicas each have."""
    work: int = 1 << 18
    """Units of slow parsing, of about half a microsecond each.

    A line that is malformed, escaped or has a timestamp costs two, a new label set costs two, and
    every fourth of its labels costs one.
    """
    held: int = 32 << 20
    """Bytes of label sets that are kept. Samples with further label sets are left out."""
    large: int = 1 << 18
    """Bytes from which a page waits for other large pages. Parsing a usual page takes 3 ms."""
    layouts: bool = True
    """The layouts of pages that are not large are kept, about 50 bytes for a sample."""

    def times(self, factor: float) -> PageLimits:
        """Return the limits of a page that may be so many times as large; never lower ones."""
        grown = max(1.0, factor)
        return replace(
            self,
            lines=int(self.lines * grown),
            samples=int(self.samples * grown),
            work=int(self.work * grown),
        )


EXPORTER: Final = PageLimits()
"""For exporters' pages: the label sets of 16 GPUs with 48 replicas each take 6 MB."""
SERVER: Final = PageLimits(
    lines=1 << 15, samples=1 << 12, work=1 << 13, held=1 << 20, large=1 << 16, layouts=False
)
"""For server pages: anyone who may create a pod may write one."""
