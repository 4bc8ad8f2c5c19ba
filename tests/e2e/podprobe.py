"""Probes of a container, like those of the kubelet."""

from __future__ import annotations

import http.client
import ssl
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Consecutive equal results that change the verdict."""

    success: int = 1
    failure: int = 3


class Verdict:
    """The verdict of one probe; pure.

    Args:
        believed: the verdict before the first result; None is undecided.
    """

    def __init__(self, thresholds: Thresholds, *, believed: bool | None) -> None:
        self._thresholds = thresholds
        self._last: bool | None = None
        self._row = 0
        self.believed = believed

    def add(self, result: bool) -> None:
        """Count a result."""
        self._row = self._row + 1 if result == self._last else 1
        self._last = result
        needed = self._thresholds.success if result else self._thresholds.failure
        if self._row >= needed:
            self.believed = result


class Probe:
    """Probes repeatedly in a thread until stopped.

    Args:
        spec: the probe of the container; only ``httpGet`` is supported.
        ports: the container's ports by name.
        believed: the initial verdict.
    """

    def __init__(
        self,
        spec: Mapping[str, Any],
        address: str,
        ports: Mapping[str, int],
        *,
        believed: bool | None,
    ) -> None:
        if "httpGet" not in spec:
            raise NotImplementedError(f"a probe of {sorted(spec)}")
        self._spec = spec
        self._address, self._ports = address, ports
        thresholds = Thresholds(spec.get("successThreshold", 1), spec.get("failureThreshold", 3))
        self._verdict = Verdict(thresholds, believed=believed)
        self._stopped = threading.Event()
        threading.Thread(target=self._run, name=f"probe {address}", daemon=True).start()

    @property
    def believed(self) -> bool | None:
        """Whether it succeeds, according to its thresholds."""
        return self._verdict.believed

    def stop(self) -> None:
        """Stop probing."""
        self._stopped.set()

    def _run(self) -> None:
        self._stopped.wait(self._spec.get("initialDelaySeconds", 0))
        while not self._stopped.is_set():
            self._verdict.add(self._ask())
            self._stopped.wait(self._spec.get("periodSeconds", 10))

    def _ask(self) -> bool:
        spec = self._spec["httpGet"]
        port = self._ports.get(spec["port"], spec["port"])
        timeout = self._spec.get("timeoutSeconds", 1)
        try:
            status = _status(spec, spec.get("host", self._address), port, timeout)
        except (OSError, http.client.HTTPException):
            return False
        return 200 <= status < 400


def _status(spec: Mapping[str, Any], host: str, port: int, timeout: float) -> int:
    connection: http.client.HTTPConnection
    if spec.get("scheme", "HTTP") == "HTTPS":
        # The kubelet does not verify the certificate either.
        unverified = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        unverified.check_hostname = False
        unverified.verify_mode = ssl.CERT_NONE
        connection = http.client.HTTPSConnection(host, port, timeout=timeout, context=unverified)
    else:
        connection = http.client.HTTPConnection(host, port, timeout=timeout)
    headers = {"User-Agent": "kube-probe"}
    headers |= {row["name"]: row["value"] for row in spec.get("httpHeaders", ())}
    try:
        connection.request("GET", spec.get("path", "/"), headers=headers)
        return connection.getresponse().status
    finally:
        connection.close()
