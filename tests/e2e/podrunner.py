"""The life of one pod of our image: start, probes, restarts, and graceful termination.

Init containers run one after the other. Sidecars, the containers after the first, start and end
with the first. The status shows the first container only.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx

from tests.e2e.cluster import PODS, Cluster, Object, RefusedError
from tests.e2e.podcontainer import Container
from tests.e2e.podprobe import Probe
from tests.e2e.podsandbox import Sandbox
from tests.e2e.podstatus import Life, status
from tests.e2e.podvolumes import Lookup, NotYetError, Volumes

_TICK = 0.05
_LOOK = 10
"""Ticks between checks of the volumes for changes."""
_MORTAL = ("startup", "liveness")
"""The probes whose failure ends a container."""
_BACK_OFF = 10.0
"""Seconds before the second restart, doubled for each further restart, like the kubelet. The first
restart is immediate."""


class PodRunner:
    """Runs in a thread until the pod is deleted."""

    def __init__(
        self, admin: Cluster, pod: Object, address: str, folder: Path, lookup: Lookup
    ) -> None:
        meta = pod["metadata"]
        self.namespace, self.name, self.uid = meta["namespace"], meta["name"], meta["uid"]
        self.labels: dict[str, str] = meta.get("labels") or {}
        self.address = address
        self.log = folder / f"{self.namespace}_{self.name}.log"
        self.life = Life()
        self._admin, self._pod, self._lookup = admin, pod, lookup
        self._volumes = Volumes(folder / self.uid, pod, lookup, self._token)
        self._path = f"{PODS.format(ns=self.namespace)}/{self.name}"
        self._container: Container | None = None
        self._beside: list[Container] = []
        self._deletion = threading.Event()
        self._grace = 0.0
        self._since = time.time()
        self._published: Life | None = None
        self._thread = threading.Thread(target=self._run, name=f"pod {self.name}", daemon=True)
        self._thread.start()

    def delete(self, grace: float) -> None:
        """Start its termination. It can be called again with a shorter period."""
        self._grace = grace if not self._deletion.is_set() else min(grace, self._grace)
        self._deletion.set()

    def join(self) -> None:
        """Wait for its end."""
        self._thread.join(60)

    @property
    def ended(self) -> bool:
        """Whether all its processes have ended."""
        return not self._thread.is_alive()

    @property
    def ending(self) -> bool:
        """Whether its termination has started."""
        return self._deletion.is_set()

    @property
    def pid(self) -> int | None:
        """Process 1 of the running container; None without one."""
        container = self._container
        return container.pid if container and container.ended() is None else None

    def kill(self, sign: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal to the container's process 1."""
        if self._container is not None:
            self._container.signal(sign)

    def renew_tokens(self) -> None:
        """Replace the tokens of its account."""
        self._volumes.renew_tokens()

    def _run(self) -> None:
        sandbox = Sandbox(self.address, host=self._pod["spec"].get("hostNetwork", False))
        try:
            self._live(sandbox)
            self._set(running=False, ready=False, over=True)
            while not self._deletion.wait(_TICK * _LOOK):
                self._publish()
        finally:
            for container in (*self._beside, *([self._container] if self._container else [])):
                container.kill()
            sandbox.close()
        self._publish()
        self._leave()

    def _leave(self) -> None:
        """Report its end to the API server; repeat until the server answers."""
        for _ in range(5):
            with contextlib.suppress(httpx.TransportError):
                self._admin.delete(self._path)
                return
            time.sleep(1)

    def _live(self, sandbox: Sandbox) -> None:
        policy = self._pod["spec"].get("restartPolicy", "Always")
        first, *others = self._pod["spec"]["containers"]
        for spec in self._pod["spec"].get("initContainers", ()):
            while (before := self._start(sandbox, spec)) and self._end(before):
                self._deletion.wait(1)
        while not self._deletion.is_set():
            container = self._start(sandbox, first)
            if container is None:
                return
            self._beside = [sidecar for spec in others if (sidecar := self._start(sandbox, spec))]
            self._container = container
            self._attend(container)
            code = container.ended() or 0
            for sidecar in self._beside:
                sidecar.kill()
            self._set(running=False, ready=False, started=False, code=code)
            if policy == "Never" or (policy == "OnFailure" and code == 0):
                return
            if self._deletion.is_set():
                return
            restarts = self.life.restarts
            self._set(restarts=restarts + 1, waiting="CrashLoopBackOff")
            self._publish()
            if restarts:
                self._deletion.wait(_BACK_OFF * 2 ** (restarts - 1))

    def _end(self, container: Container) -> int:
        """Return how an init container ended; 0 if the pod is deleted."""
        while (code := container.ended()) is None and not self._deletion.wait(_TICK):
            pass
        container.kill()
        return code or 0

    def _start(self, sandbox: Sandbox, spec: Mapping[str, Any]) -> Container | None:
        """Start a container when everything it needs exists."""
        while not self._deletion.is_set():
            try:
                self._volumes.write()
                container = Container(
                    self._pod, spec, sandbox, self._volumes, self._lookup, self.log
                )
            except (NotYetError, RefusedError, httpx.TransportError) as error:
                self._set(waiting=f"waits for {error}"[:200])
                self._publish()
                self._deletion.wait(0.2)
                continue
            self._set(running=True, code=None)
            return container
        return None

    def _attend(self, container: Container) -> None:
        """Probe it until it exits or is terminated."""
        spec = container.spec
        probes: dict[str, Probe] = {}
        if "startupProbe" in spec:
            probes["startup"] = self._probe(spec, "startup", None)
        signalled: float | None = None
        ticks = 0
        while container.ended() is None:
            self._started(spec, probes)
            self._publish()
            mortal = [probes[name] for name in _MORTAL if name in probes]
            dead = any(probe.believed is False for probe in mortal)
            if signalled is None and (dead or self._deletion.is_set()):
                signalled = time.monotonic()
                container.signal(signal.SIGTERM)
                for probe in mortal:
                    probe.stop()
            if signalled is not None and time.monotonic() > signalled + self._patience():
                container.kill()
            ticks += 1
            if ticks % _LOOK == 0:
                with contextlib.suppress(NotYetError, RefusedError, httpx.TransportError):
                    self._volumes.write()
            time.sleep(_TICK)
        for probe in probes.values():
            probe.stop()

    def _patience(self) -> float:
        """Seconds from the first signal to the last."""
        if self._deletion.is_set():
            return self._grace
        return float(self._pod["spec"].get("terminationGracePeriodSeconds", 30))

    def _started(self, spec: Mapping[str, Any], probes: dict[str, Probe]) -> None:
        """Start the other probes when it has started, and update its readiness."""
        startup = probes.get("startup")
        if not self.life.started and (startup is None or startup.believed):
            if startup is not None:
                probes.pop("startup").stop()
            for name, believed in (("liveness", True), ("readiness", False)):
                if f"{name}Probe" in spec:
                    probes[name] = self._probe(spec, name, believed)
            self._set(started=True)
        readiness = probes.get("readiness")
        willing = readiness is None or readiness.believed is True
        self._set(ready=self.life.started and willing)

    def _probe(self, spec: Mapping[str, Any], name: str, believed: bool | None) -> Probe:
        rows = spec.get("ports", ())
        ports = {row["name"]: row["containerPort"] for row in rows if "name" in row}
        return Probe(spec[f"{name}Probe"], self.address, ports, believed=believed)

    def _set(self, **changed: Any) -> None:
        before, self.life = self.life, self.life._replace(**changed)
        if before.ready != self.life.ready:
            self._since = time.time()

    def _publish(self) -> None:
        """Write the status if it has changed; try again later without an answer."""
        if self.life == self._published:
            return
        life = self.life
        wanted = status(self._pod, self.address, life, self._since, time.time())
        try:
            self._admin.patch(f"{self._path}/status", {"status": wanted})
        except RefusedError as error:
            if error.code != 404:
                return
            self.delete(0)
        except httpx.TransportError:
            return
        self._published = life

    def _token(self, source: Mapping[str, Any]) -> str:
        """Request a token that is bound to this pod."""
        bound = {"apiVersion": "v1", "kind": "Pod", "name": self.name, "uid": self.uid}
        seconds = max(source.get("expirationSeconds", 3600), 600)
        spec: Object = {"expirationSeconds": seconds, "boundObjectRef": bound}
        if "audience" in source:
            spec["audiences"] = [source["audience"]]
        account = self._pod["spec"].get("serviceAccountName", "default")
        answer = self._admin.request(
            "POST",
            f"/api/v1/namespaces/{self.namespace}/serviceaccounts/{account}/token",
            {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec},
        )
        return str(answer["status"]["token"])
