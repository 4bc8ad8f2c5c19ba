"""The real ``serve`` as a process."""

from __future__ import annotations

import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.e2e.certificates import KeyPair
from tests.e2e.cluster import Cluster
from tests.e2e.process import Process, free_port

QUICK: dict[str, Any] = {"window": "2s", "collect_interval": "1s", "age_limit": "4s"}
"""A short age limit: the exporters of the tests read their GPUs at each scrape."""


class Adapter:
    """``gpu-metrics-adapter serve`` with a configuration file; the certificate is its own."""

    def __init__(
        self, folder: Path, name: str, kubeconfig: Path, source: Mapping[str, Any], **more: Any
    ) -> None:
        self.port = free_port()
        self.certificates = folder / f"{name}-certs"
        self.config = folder / f"{name}.yaml"
        settings = {
            "server": {
                "host": "127.0.0.1",
                "port": self.port,
                "cert_dir": str(self.certificates),
                "drain": "0s",
            },
            "cluster": {"kubeconfig": str(kubeconfig)},
            "source": dict(source),
            "values": QUICK,
            "keda": {"enabled": False},
            "log": {"format": "json"},
            **more,
        }
        self.config.write_text(yaml.safe_dump(settings))
        # -P: run the installed package, regardless of the current directory.
        command: list[str | Path] = [sys.executable, "-P", "-m", "adapter"]
        command += ["serve", "--config", self.config]
        self.process = Process(command, folder / f"{name}.log")

    @property
    def ca(self) -> Path:
        """The certificate for the APIService's caBundle."""
        return self.certificates / "ca.crt"

    def start(self, seconds: float = 120.0) -> None:
        """Start it, and wait until it is ready."""
        self.process.start()
        self.process.wait_ready(self.ready, seconds)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Stop it; return the exit status."""
        return self.process.stop(how)

    def ready(self) -> bool:
        """Request ``/readyz`` without credentials."""
        if not self.ca.exists():
            return False
        try:
            client = Cluster(f"https://localhost:{self.port}", str(self.ca))
            try:
                return client.client.get("/readyz").status_code == 200
            finally:
                client.close()
        except httpx.TransportError:
            return False

    def client(
        self, pair: KeyPair | None = None, user: str = "tester", group: str = "system:masters"
    ) -> Cluster:
        """Return a client that sends direct requests, like the front proxy for this user."""
        headers = {"X-Remote-User": user, "X-Remote-Group": group}
        return Cluster(f"https://localhost:{self.port}", str(self.ca), pair=pair, headers=headers)
