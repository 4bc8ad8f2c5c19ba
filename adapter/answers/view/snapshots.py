"""What the providers of the view API read from."""

from __future__ import annotations

import weakref
from typing import Generic, Protocol, TypeVar

from adapter.pipeline.cluster.index import PodIndex
from adapter.pipeline.store.snapshot import Snapshot
from apiservice.errors import Unavailable

K = TypeVar("K")
V = TypeVar("V")


class CurrentValues(Protocol):
    """The current values."""

    @property
    def snapshot(self) -> Snapshot:
        """Return the values at one time."""


def check(pods: PodIndex) -> None:
    """Reject a request while it is not known which pods exist.

    Raises:
        Unavailable: the pods have never been listed.
    """
    if not pods.synced:
        raise Unavailable("the pods have not been listed yet; /readyz/pods says why")


class PerSnapshot(Generic[K, V]):
    """Results that hold for one snapshot; dropped when another one is asked about."""

    def __init__(self) -> None:
        self._snapshot: weakref.ref[Snapshot] | None = None
        self._found: dict[K, V] = {}

    def of(self, snapshot: Snapshot) -> dict[K, V]:
        """Return the results of this snapshot, to read and to add to."""
        if self._snapshot is None or self._snapshot() is not snapshot:
            self._snapshot, self._found = weakref.ref(snapshot), {}
        return self._found
