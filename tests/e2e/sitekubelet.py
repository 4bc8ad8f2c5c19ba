"""Scheduler and kubelet of a site: pods of known images really run, others are simulated."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.e2e.cluster import Cluster, Object, Watch
from tests.e2e.kubelet import Kubelet
from tests.e2e.podcontainer import image_of
from tests.e2e.podrunner import PodRunner
from tests.e2e.podsandbox import next_address
from tests.e2e.privatenetwork import GATEWAY


class SiteKubelet(Kubelet):
    """Follows every pod of the cluster until stopped.

    Args:
        folder: for logs and volumes.
    """

    def __init__(self, admin: Cluster, nodes: Sequence[str], folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._objects: dict[tuple[str, str, str], Object] = {}
        self._runners: dict[str, PodRunner] = {}
        self._reserved: dict[tuple[str, str], str] = {}
        self._guard = threading.Lock()
        self._watches = [
            Watch(admin, f"/api/v1/{kind.lower()}s", self._followed(kind))
            for kind in ("ConfigMap", "Secret")
        ]
        super().__init__(admin, nodes)

    def stop(self) -> None:
        """Stop following, and kill every pod."""
        super().stop()
        for watch in self._watches:
            watch.stop()
        for runner in self.ours():
            runner.delete(0)
        for runner in self.ours():
            runner.join()

    def ours(self) -> list[PodRunner]:
        """Return the running and terminating pods that are processes, oldest first."""
        with self._guard:
            return [runner for runner in self._runners.values() if not runner.ended]

    def reserve(self, namespace: str, name: str, address: str = "") -> str:
        """Return the address of the next pod: the given one, or one that no pod has used."""
        return self._reserved.setdefault((namespace, name), address or next_address())

    def _address(self, pod: Object) -> str:
        if pod["spec"].get("hostNetwork"):
            return GATEWAY
        meta = pod["metadata"]
        return self._reserved.pop((meta["namespace"], meta["name"]), None) or next_address()

    def _changed(self, kind: str, pod: Object) -> None:
        uid = pod["metadata"]["uid"]
        if kind == "DELETED":
            with self._guard:
                runner = self._runners.pop(uid, None)
            if runner is not None:
                runner.delete(0)
        super()._changed(kind, pod)

    def _step(self, pod: Object, path: str) -> None:
        meta, spec = pod["metadata"], pod["spec"]
        if not spec.get("nodeName") or image_of(pod) is None:
            super()._step(pod, path)
            return
        with self._guard:
            runner = self._runners.get(meta["uid"])
            if runner is None and "deletionTimestamp" not in meta:
                if pod["status"].get("phase") == "Pending":
                    self._run(pod)
                return
        if runner is None:
            super()._step(pod, path)
        elif "deletionTimestamp" in meta:
            runner.delete(meta.get("deletionGracePeriodSeconds") or 0)

    def _run(self, pod: Object) -> None:
        namespace = pod["metadata"]["namespace"]
        self._runners[pod["metadata"]["uid"]] = PodRunner(
            self._admin,
            pod,
            self._address(pod),
            self._folder,
            lambda kind, name: self._objects.get((kind, namespace, name)),
        )

    def _followed(self, kind: str) -> Callable[[str, Object], None]:
        def changed(what: str, obj: Object) -> None:
            key = (kind, obj["metadata"]["namespace"], obj["metadata"]["name"])
            if what == "DELETED":
                self._objects.pop(key, None)
            else:
                self._objects[key] = obj | {"kind": kind}

        return changed
