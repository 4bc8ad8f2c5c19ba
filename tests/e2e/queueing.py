"""The servers that queue, a process for each pod of a workload, and the clients that ask them."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import sys
import threading
import time
from pathlib import Path
from typing import Self

from tests.e2e.cluster import PODS
from tests.e2e.process import Process, free_port
from tests.e2e.stage import Stage

SLOTS = 4
SECONDS = 0.2
"""A replica keeps up with 20 requests a second."""
CAPACITY = SLOTS / SECONDS


class QueueingWorkload:
    """A process for each running pod of a namespace, and clients. Use as a context manager.

    Args:
        stage: whose pods they are.
        namespace: of the pods, which opt in at ``port``.
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
                rows = self._stage.admin.get(PODS.format(ns=self._namespace))["items"]
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
