"""Pods whose own server's page was seen, remembered for as long as the pod lives.

A server that falls silent is forgotten with its page. Without this memory nobody would expect a
value of its pod any more, and a sum over several pods would be short and pass for whole.
"""

from __future__ import annotations

from collections.abc import Iterable

from adapter.attribution.nodecontext import Pods
from adapter.cluster.pod import PodRef

_SLACK = 1024
"""Pods that are noted before those that are gone are dropped."""


class Servers:
    """Belongs to one thread. Holds at most one entry for each pod, and some of pods that are gone.

    Args:
        pods: the pods on hand.
    """

    def __init__(self, pods: Pods) -> None:
        self._pods = pods
        self._uids: dict[PodRef, str] = {}
        self._next = _SLACK

    def __len__(self) -> int:
        return len(self._uids)

    def note(self, refs: Iterable[PodRef]) -> None:
        """These serve a page of their own."""
        for ref in refs:
            pod = self._pods.get(*ref)
            if pod is not None:
                self._uids[ref] = pod.uid
        if len(self._uids) > self._next:
            self._uids = {ref: uid for ref, uid in self._uids.items() if self._lives(ref, uid)}
            self._next = 2 * len(self._uids) + _SLACK

    def __contains__(self, ref: object) -> bool:
        return isinstance(ref, PodRef) and self._lives(ref, self._uids.get(ref))

    def _lives(self, ref: PodRef, uid: str | None) -> bool:
        pod = self._pods.get(*ref) if uid is not None else None
        return pod is not None and pod.uid == uid
