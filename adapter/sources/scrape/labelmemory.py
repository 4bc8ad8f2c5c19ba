"""Divide the memory for the label sets of pages among namespaces."""

from __future__ import annotations

from collections import Counter
from typing import Final

_RESERVE: Final = 32
"""Fraction (1/32) kept for namespaces that use less than their share."""


class LabelMemory:
    """Bytes of label sets that are kept, or reserved for a page that is being read.

    A small part is for namespaces that use less than their share. If they have used it, the
    pages of the other namespaces shrink until it is free again. So no namespace can prevent that
    the pages of another are read.

    Args:
        page: maximum bytes of one page.
    """

    def __init__(self, size: int, page: int) -> None:
        self._size = size
        self._page = page
        self._reserve = size // _RESERVE
        self._of: Counter[str] = Counter()
        """Namespace -> bytes."""
        self.used = 0
        """Bytes in use."""

    def reserve(self, namespace: str, held: int) -> int:
        """Reserve bytes for the next page of a target whose last page uses ``held`` bytes.

        The returned amount includes ``held``.
        """
        free = self._size - self.used
        if self._of[namespace] > self._size // (len(self._of) + 1):
            most = max(held + free - self._reserve, held // 2)
        else:
            most = held + free
        reserved = max(0, min(self._page, most))
        self._move(namespace, reserved - held)
        return reserved

    def release(self, namespace: str, reserved: int, held: int = 0) -> None:
        """Release the part of the reserved bytes that the page does not use."""
        self._move(namespace, held - reserved)

    def _move(self, namespace: str, size: int) -> None:
        self.used += size
        self._of[namespace] += size
        if not self._of[namespace]:
            del self._of[namespace]
