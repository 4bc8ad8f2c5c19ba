"""The servers that queue, a process for each pod of a workload, and the clients that ask them."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Self

from adapter.hpa import quantity
from adapter.pipeline.cluster.optin import PREFIX
from tests.e2e.apiservice import ensure_namespace
from tests.e2e.cluster import DEPLOYMENTS, HPAS, PODS, Object
from tests.e2e.process import Process, free_port
from tests.e2e.stage import Stage, deployment

SLOTS = 4
SECONDS = 0.2
"""A replica keeps up with 20 requests a second."""
CAPACITY = SLOTS / SECONDS


class QueueingWorkload:
    """A process for each running pod of a namespace, and clients. Use as a context manager.

    Args:
        stage: whose pods they are.
        namespace: of the Deployment `inference`, whose pods opt in at ``port``.
        folder: of the logs.
    """

    def __init__(self, stage: Stage, namespace: str, folder: Path) -> None:
        self.port = free_port()
        self.rate = 0.0
        """Requests a second, of all clients."""
        self.first_bytes: list[tuple[float, float]] = []
        """When a client got its first byte (epoch seconds), and after how many seconds."""
        self.lost = 0
        """Requests without an answer: their server was scaled in."""
        self._stage, self._namespace, self._folder = stage, namespace, folder
        self._servers: dict[str, Process] = {}
        """Address -> process."""
        self._ended = threading.Event()
        self._threads = [
            threading.Thread(target=self._follow),
            threading.Thread(target=lambda: asyncio.run(self._ask())),
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()
        for server in self._servers.values():
            server.stop()

    def since(self, seconds: float) -> list[float]:
        """Return the times to the first byte of the last seconds, ascending."""
        start = time.time() - seconds
        return sorted(waited for at, waited in list(self.first_bytes) if at > start)

    def _follow(self) -> None:
        """Start a process for each new pod, and end those of pods that are gone."""
        while not self._ended.wait(0.2):
            with contextlib.suppress(OSError):
                path = PODS.format(ns=self._namespace) + "?labelSelector=app%3Dinference"
                rows = self._stage.admin.get(path)["items"]
                addresses = {
                    row["status"]["podIP"]
                    for row in rows
                    if row["status"].get("podIP") and "deletionTimestamp" not in row["metadata"]
                }
                for address in addresses - self._servers.keys():
                    command = [sys.executable, "-m", "tests.e2e.queueserver"]
                    words = [address, str(self.port), str(SLOTS), str(SECONDS)]
                    log = self._folder / f"server-{address}.log"
                    server = Process([*command, *words], log)
                    server.start()
                    self._servers = {**self._servers, address: server}
                for address in self._servers.keys() - addresses:
                    self._servers[address].stop()
                    self._servers = {a: s for a, s in self._servers.items() if a != address}

    async def _ask(self) -> None:
        """Send requests at the rate, whether or not earlier ones have an answer."""
        turn = itertools.count()
        async with asyncio.TaskGroup() as tasks:
            due = time.monotonic()
            while not self._ended.is_set():
                servers = list(self._servers)
                if not self.rate or not servers:
                    due = time.monotonic()
                    await asyncio.sleep(0.05)
                    continue
                tasks.create_task(self._request(servers[next(turn) % len(servers)]))
                due += 1 / self.rate
                await asyncio.sleep(max(0.0, due - time.monotonic()))

    async def _request(self, address: str) -> None:
        began = time.monotonic()
        try:
            reader, writer = await asyncio.open_connection(address, self.port)
            try:
                writer.write(b"POST /v1/completions HTTP/1.1\r\nHost: llm\r\n\r\n")
                if not await reader.read(1):
                    raise ConnectionError("no answer")
                self.first_bytes.append((time.time(), time.monotonic() - began))
                await reader.read()
            finally:
                writer.close()
        except OSError:
            self.lost += 1


@contextlib.contextmanager
def scaled(stage: Stage, namespace: str, hpa: Object, folder: Path) -> Iterator[QueueingWorkload]:
    """One replica of servers that queue, the HPA that scales it, and no client."""
    ensure_namespace(stage.admin, namespace)
    with QueueingWorkload(stage, namespace, folder) as workload:
        made = deployment(namespace, 1)
        template = made["spec"]["template"]
        words = {"scrape": "true", "port": str(workload.port)}
        template["metadata"]["annotations"] = {
            f"{PREFIX}{key}": word for key, word in words.items()
        }
        template["spec"]["containers"][0].pop("resources")
        stage.admin.create(made)
        stage.admin.create(hpa)
        yield workload
        stage.admin.delete(f"{HPAS.format(ns=namespace)}/inference")
        stage.admin.delete(f"{DEPLOYMENTS.format(ns=namespace)}/inference")


def autoscaler_of(namespace: str, metrics: list[Object], most: int, held: int) -> Object:
    """An HPA of the servers; ``held`` are the seconds of its scale-in window."""
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "inference", "namespace": namespace},
        "spec": {
            "scaleTargetRef": {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "name": "inference",
            },
            "minReplicas": 1,
            "maxReplicas": most,
            "metrics": metrics,
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": held}},
        },
    }


def metrics_message(stage: Stage, namespace: str) -> str:
    """What the controller says of the HPA's metrics."""
    rows = stage.hpa(namespace).get("status", {}).get("conditions") or ()
    return " ".join(row["message"] for row in rows if row["type"] == "ScalingActive")


def numbers(values: Mapping[str, str]) -> dict[str, float]:
    """Pod -> its value, from quantities."""
    return {name: float(quantity.parse(text)) for name, text in values.items()}
