"""Memory for the label sets of pages, shared among namespaces."""

from __future__ import annotations

from collections import Counter
from typing import Final

_RESERVE: Final = 32
"""The part that is kept for namespaces that use less than their share."""


class LabelMemory:
    """Bytes of label sets that are remembered, or lent to a page that is being read.

    A small part is for namespaces that use less than their share. Where they have taken it, the
    pages of the others shrink until it is free again. So no namespace can keep another one from
    being read.

    Args:
        size: bytes in all.
        page: the most bytes of one page.
    """

    def __init__(self, size: int, page: int) -> None:
        self._size = size
        self._page = page
        self._reserve = size // _RESERVE
        self._of: Counter[str] = Counter()
        """Namespace -> bytes."""
        self.used = 0
        """Bytes in use."""

    def lend(self, namespace: str, held: int) -> int:
        """Lend bytes for the next page of a target whose last page holds ``held``.

        What is lent includes ``held``.
        """
        free = self._size - self.used
        if self._of[namespace] > self._size // (len(self._of) + 1):
            most = max(held + free - self._reserve, held // 2)
        else:
            most = held + free
        lent = max(0, min(self._page, most))
        self._move(namespace, lent - held)
        return lent

    def give_back(self, namespace: str, lent: int, held: int = 0) -> None:
        """Give back what the page does not hold of what was lent."""
        self._move(namespace, held - lent)

    def _move(self, namespace: str, size: int) -> None:
        self.used += size
        self._of[namespace] += size
        if not self._of[namespace]:
            del self._of[namespace]
