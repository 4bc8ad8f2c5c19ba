"""Pods by their uid, for samples that name nothing else."""

from __future__ import annotations

from adapter.pipeline.cluster.index import PodIndex
from adapter.pipeline.cluster.pod import Pod
from apiservice.labels.selector import EVERYTHING


class PodUids:
    """The pods of an index by uid, kept up to date until closed."""

    def __init__(self, index: PodIndex) -> None:
        self._pods = {pod.uid: pod for pod in index.select(None, EVERYTHING) if pod.uid}
        self._stop = index.listen(self._note_change)

    def get(self, uid: str) -> Pod | None:
        """The pod of that uid."""
        return self._pods.get(uid)

    def close(self) -> None:
        """Stop listening for changes."""
        self._stop()
        self._pods.clear()

    def _note_change(self, before: Pod | None, after: Pod | None) -> None:
        if before is not None and (after is None or after.uid != before.uid):
            self._pods.pop(before.uid, None)
        if after is not None and after.uid:
            self._pods[after.uid] = after
