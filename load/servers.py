"""The programs that scenarios start: the fleet, and the servers beside one another."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml

from load.fleet import NAMESPACE, SERVICE_SIZE, nodes, pod_list
from load.page import UTIL
from load.pki import FRONT_PROXY, GROUPS, USER, Pki
from load.process import PYTHON, Child, run_child, wait_until

_START = 240.0
"""Seconds that a server may take until it answers with values."""
GROUP = "/apis/custom.metrics.k8s.io/v1beta2"


def target(service: int = 0, metric: str = UTIL) -> str:
    """The HPA controller's request for the pods of one service."""
    path = f"{GROUP}/namespaces/{NAMESPACE}/pods/%2A/{metric}"
    return f"{path}?labelSelector=app%3Dsvc-{service:03d}"


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass(frozen=True, slots=True)
class Exporters:
    """A running fleet."""

    child: Child
    port: int
    pods: int

    def url(self, node: str) -> str:
        """The page of one node's exporter."""
        return f"http://127.0.0.1:{self.port}/{node}/metrics"

    def control(self, path: str) -> dict[str, float]:
        """Ask the fleet itself: ``count``, ``util/NODE/VALUE``."""
        answer = httpx.get(f"http://127.0.0.1:{self.port}/control/{path}")
        answer.raise_for_status()
        parsed: dict[str, float] = answer.json()
        return parsed


@contextmanager
def fleet(pods: int, folder: Path, cores: Sequence[int] | None = None) -> Iterator[Exporters]:
    """Exporters for ``pods`` one-GPU pods."""
    ready = folder / f"fleet-{pods}.port"
    ready.unlink(missing_ok=True)
    command = [PYTHON, "-m", "load.fleet", "--pods", str(pods), "--ready", str(ready)]
    with run_child("exporters", command, folder, cores=cores) as child:
        wait_until(child, "ready", ready.exists)
        yield Exporters(child, int(ready.read_text()), pods)


@dataclass(frozen=True, slots=True)
class Server:
    """A server that answers the metric API on loopback."""

    child: Child
    port: int
    pki: Pki

    def client(self) -> httpx.Client:
        """Asks as the HPA controller does, through the front proxy."""
        headers = [("X-Remote-User", USER), *(("X-Remote-Group", group) for group in GROUPS)]
        context: ssl.SSLContext = self.pki.client_context()
        return httpx.Client(
            base_url=f"https://localhost:{self.port}", verify=context, headers=headers, timeout=30
        )


def is_listening(port: int) -> bool:
    """Somebody accepts connections on loopback."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def answers(server: Server, path: str, items: int) -> bool:
    """``path`` is answered with ``items`` items."""
    if not is_listening(server.port):
        return False
    with server.client() as client:
        try:
            answer = client.get(path)
        except httpx.HTTPError:
            return False
        return answer.status_code == 200 and len(answer.json()["items"]) == items


def _configuration(pki: Pki, port: int, exporters: Exporters, interval: float) -> dict[str, Any]:
    """What every ``serve`` here has in common: its listener, and the fleet to scrape."""
    return {
        "server": {
            "host": "127.0.0.1",
            "port": port,
            "cert_file": str(pki.cert),
            "key_file": str(pki.key),
            "drain": 0,
        },
        "keda": {"enabled": False},
        "source": {
            "kind": "scrape",
            "scrape": {
                "interval": interval,
                "discover": False,
                "targets": [
                    {"url": exporters.url(node), "node": node} for node in nodes(exporters.pods)
                ],
            },
        },
    }


def standalone_sections(pki: Pki) -> dict[str, Any]:
    """Sections of the configuration without an API server that knows users."""
    return {
        "authentication": {
            "configmap": False,
            "requestheader_ca_file": str(pki.ca),
            "requestheader_allowed_names": [FRONT_PROXY],
            "token_review": False,
        },
        "authorization": {"subject_access_review": False, "allow_users": [USER]},
    }


@contextmanager
def serve(
    pki: Pki,
    exporters: Exporters,
    folder: Path,
    *,
    interval: float = 5,
    cores: Sequence[int] | None = None,
    changes: Mapping[str, Any] | None = None,
) -> Iterator[Server]:
    """The real ``serve`` over the fleet, once it answers for the first service's pods.

    Args:
        changes: sections of the configuration to replace or add keys to.
    """
    pods_file = folder / f"pods-{exporters.pods}.json"
    pods_file.write_text(json.dumps(pod_list(exporters.pods)))
    port = free_port()
    content = _configuration(pki, port, exporters, interval) | standalone_sections(pki)
    content["cluster"] = {"pods_file": str(pods_file)}
    for section, keys in (changes or {}).items():
        content.setdefault(section, {}).update(keys)
    with _adapter(content, pki, folder, exporters.pods, cores) as server:
        yield server


@contextmanager
def serve_cluster(
    pki: Pki,
    exporters: Exporters,
    folder: Path,
    kubeconfig: Path,
    *,
    interval: float = 5,
    cores: Sequence[int] | None = None,
    changes: Mapping[str, Any] | None = None,
) -> Iterator[Server]:
    """The real ``serve`` over the fleet and an API server, as it runs in a cluster.

    Args:
        changes: sections of the configuration to replace.
    """
    content = _configuration(pki, free_port(), exporters, interval) | {
        "cluster": {"kubeconfig": str(kubeconfig)},
        **(changes or {}),
    }
    with _adapter(content, pki, folder, exporters.pods, cores) as server:
        yield server


@contextmanager
def _adapter(
    content: Mapping[str, Any], pki: Pki, folder: Path, pods: int, cores: Sequence[int] | None
) -> Iterator[Server]:
    file = folder / "serve.yaml"
    file.write_text(yaml.safe_dump(dict(content)))
    command = [PYTHON, "-m", "adapter", "serve", "--config", str(file)]
    with run_child("adapter", command, folder, cores=cores) as child:
        server = Server(child, content["server"]["port"], pki)
        expected = min(SERVICE_SIZE, pods)
        ready = f"{expected} values"
        wait_until(child, ready, lambda: answers(server, target(), expected), _START)
        yield server


@contextmanager
def static(
    pki: Pki, body: bytes, folder: Path, cores: Sequence[int] | None = None
) -> Iterator[Server]:
    """The same server and TLS in front of an application that sends ``body`` and no more."""
    file = folder / "body.json"
    file.write_bytes(body)
    port = free_port()
    command = [PYTHON, "-m", "load.static", "--port", str(port), "--body", str(file)]
    with run_child("static", [*command, *_files(pki)], folder, cores=cores) as child:
        wait_until(child, "port", lambda: is_listening(port))
        yield Server(child, port, pki)


@contextmanager
def naive(
    pki: Pki, pods: int, folder: Path, cores: Sequence[int] | None = None
) -> Iterator[Server]:
    """The FastAPI and pydantic version."""
    port = free_port()
    command = [PYTHON, "-m", "load.naive", "--port", str(port), "--pods", str(pods)]
    with run_child("naive", [*command, *_files(pki)], folder, cores=cores) as child:
        wait_until(child, "port", lambda: is_listening(port))
        yield Server(child, port, pki)


def _files(pki: Pki) -> list[str]:
    return ["--cert", str(pki.cert), "--key", str(pki.key), "--ca", str(pki.ca)]
