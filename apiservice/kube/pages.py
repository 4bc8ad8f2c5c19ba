"""The end of a list that is read in pages, also from a broken server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

_MOST_OBJECTS: Final = 300_000
"""Objects of one list. Kubernetes supports clusters of up to 150,000 pods (kubernetes.io,
"Considerations for large clusters")."""
_MOST_PAGES: Final = 3_000
"""Pages of one list: five times as many as these objects fill at 500 each."""


class EndlessListError(Exception):
    """The server sends pages without an end."""


class Pages:
    """Says whether a list has another page.

    A server that pages well sends each object once, in the order of its key, and no page without
    an object but the last: kube-apiserver goes on reading until a page is full
    (``apiserver/pkg/storage/etcd3/store.go``, ``GetList``).
    """

    def __init__(self) -> None:
        self._pages = 0
        self._objects = 0
        self._firsts: set[int] = set()
        """The hash of the first object of each page."""

    def more(self, token: str, objects: Sequence[object]) -> bool:
        """Return whether another page follows one with this token and these objects.

        Raises:
            EndlessListError: a page is empty or repeats an earlier one, or they are too many.
        """
        if not token:
            return False
        self._pages += 1
        self._objects += len(objects)
        if not objects:
            raise self._endless("a page is empty, and is not the last")
        head = objects[0]
        first = hash(bytes(head) if isinstance(head, msgspec.Raw) else repr(head))
        if first in self._firsts:
            raise self._endless("a page repeats an earlier one")
        self._firsts.add(first)
        if self._objects > _MOST_OBJECTS or self._pages > _MOST_PAGES:
            raise self._endless("it goes on")
        return True

    def _endless(self, why: str) -> EndlessListError:
        return EndlessListError(f"the list does not end after {self._objects} objects: {why}")
