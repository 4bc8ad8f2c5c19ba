"""Remember the pods whose server page was seen, for the lifetime of the pods.

The store forgets a server that no longer answers. Without this memory, its pod would no longer be
expected to have a value, and a sum over several pods would be too low without an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from adapter.pipeline.attribution.nodecontext import Pods
from adapter.pipeline.cluster.pod import PodRef

_SLACK = 1024
"""Pods recorded before those that no longer exist are removed."""


class Servers:
    """The remembered pods: at most one entry per pod, and some pods that no longer exist.

    Not thread-safe.

    Args:
        pods: the known pods.
    """

    def __init__(self, pods: Pods) -> None:
        self._pods = pods
        self._uids: dict[PodRef, str] = {}
        self._next = _SLACK

    def __len__(self) -> int:
        return len(self._uids)

    def note(self, refs: Iterable[PodRef]) -> None:
        """Record pods whose server page was seen."""
        for ref in refs:
            pod = self._pods.get(*ref)
            if pod is not None:
                self._uids[ref] = pod.uid
        if len(self._uids) > self._next:
            self._uids = {ref: uid for ref, uid in self._uids.items() if self._lives(ref, uid)}
            self._next = 2 * len(self._uids) + _SLACK

    def __iter__(self) -> Iterator[PodRef]:
        """Yield the remembered pods, also those that no longer exist."""
        yield from tuple(self._uids)

    def __contains__(self, ref: object) -> bool:
        return isinstance(ref, PodRef) and self._lives(ref, self._uids.get(ref))

    def _lives(self, ref: PodRef, uid: str | None) -> bool:
        pod = self._pods.get(*ref) if uid is not None else None
        return pod is not None and pod.uid == uid
