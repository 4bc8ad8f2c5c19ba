"""The page as a process of its own, and as a server in the test's event loop."""

from __future__ import annotations

import asyncio
import json
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from adapter.tools.ui.app import application
from adapter.tools.ui.connection import ClusterConnection
from adapter.tools.ui.explanations import Explanations
from adapter.tools.ui.files import page_files
from adapter.tools.ui.options import UiOptions
from adapter.tools.ui.parts import PageParts
from adapter.tools.ui.security import Access, Guard
from adapter.tools.ui.server import LIMITS, listen, serve_app
from adapter.tools.ui.stream import Streams
from apiservice.http.server import Server
from tests.adapter.commandline import clean_environ

PATIENCE = 60.0
_ADDRESS = re.compile(r"(http://127\.0\.0\.1:(\d+))/\?token=(\S+)")


class Event(NamedTuple):
    """One server-sent event."""

    name: str
    id: str
    data: Any


class Page:
    """A running page."""

    def __init__(self, process: subprocess.Popen[str], address: re.Match[str]) -> None:
        self.process = process
        self.url, port, self.token = address.groups()
        self.port = int(port)
        self.cookie = {f"gma_ui_{port}": self.token}

    def client(self, **cookies: str) -> httpx.Client:
        """A browser that has opened the address, or that has these cookies."""
        return httpx.Client(
            base_url=self.url, cookies=cookies or self.cookie, trust_env=False, timeout=PATIENCE
        )

    def get(self, path: str, **headers: str) -> httpx.Response:
        """A request of a browser that has opened the address."""
        with self.client() as client:
            return client.get(path, headers=headers)

    def until(self, name: str, holds: Any = lambda _: True, last: str = "") -> Any:
        """The data of the first event of a name that a test waits for."""
        for event in self.events(last):
            if event.name == name and holds(event.data):
                return event.data
        raise AssertionError(f"the stream ended without {name}")

    def events(self, last: str = "") -> Iterator[Event]:
        """The events of a new stream."""
        headers = {"Last-Event-ID": last} if last else {}
        deadline = time.monotonic() + PATIENCE
        with self.client() as client, client.stream("GET", "/api/events", headers=headers) as got:
            assert got.status_code == 200, got.read()
            for event in events(_lines(got.iter_bytes())):
                assert time.monotonic() < deadline
                yield event

    def stop(self, sign: signal.Signals = signal.SIGINT) -> int:
        """End it as Ctrl-C does, and return its status."""
        self.process.send_signal(sign)
        return self.process.wait(PATIENCE)


def _lines(chunks: Iterator[bytes]) -> Iterator[str]:
    """The lines of a stream: only CR and LF end one, as for a browser."""
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        yield from (line.decode() for line in lines)


def events(lines: Iterator[str]) -> Iterator[Event]:
    """The events of a stream's lines."""
    fields: dict[str, str] = {}
    for line in lines:
        key, _, value = line.partition(": ")
        if line:
            fields[key] = value
        elif "event" in fields:
            yield Event(fields["event"], fields["id"], json.loads(fields["data"]))
            fields = {}


@contextmanager
def running(kubeconfig: Path, *arguments: str) -> Iterator[Page]:
    """The command in its own process, while the block runs. It may write nothing to stderr."""
    command = [sys.executable, "-m", "adapter", "ui", "--kubeconfig", str(kubeconfig)]
    process = subprocess.Popen(
        [*command, "--no-browser", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=clean_environ(),
        cwd=Path(__file__).parents[4],
    )
    try:
        yield Page(process, _address(process))
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        _, problems = process.communicate(timeout=PATIENCE)
    assert not problems, problems


def _address(process: subprocess.Popen[str]) -> re.Match[str]:
    lines: queue.Queue[str] = queue.Queue()
    assert process.stdout is not None
    output = process.stdout

    def read() -> None:
        while line := output.readline():
            lines.put(line)
            if line.startswith("Ctrl-C"):
                break
        lines.put("")

    thread = threading.Thread(target=read)
    thread.start()
    try:
        while line := lines.get(timeout=PATIENCE):
            if address := _ADDRESS.search(line):
                return address
    finally:
        thread.join()
    raise AssertionError(process.communicate()[1])


class Served(NamedTuple):
    """The application in this event loop, without a collector."""

    parts: PageParts
    streams: Streams
    explanations: Explanations
    access: Access
    server: Server
    url: str

    def client(self) -> httpx.AsyncClient:
        """A browser that has opened the address."""
        return httpx.AsyncClient(
            base_url=self.url,
            cookies={self.access.cookie: self.access.token},
            trust_env=False,
            timeout=PATIENCE,
        )


async def eventually(holds: Callable[[], bool]) -> None:
    """Return once this holds."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)


@asynccontextmanager
async def serving(
    kubeconfig: Path | None = None,
    *,
    alive: float = 15.0,
    **limits: Any,
) -> AsyncIterator[Served]:
    """Serve while the block runs."""
    connection = ClusterConnection(UiOptions(kubeconfig))
    if kubeconfig is not None:
        await connection.open()
    parts = PageParts()
    streams = Streams(parts, alive=alive)
    explanations = Explanations(connection)
    with listen(0) as listener:
        access = Access(listener.getsockname()[1])
        app = Guard(application(streams, explanations, page_files()), access)
        async with serve_app(app, listener, replace(LIMITS, **limits)) as server:
            try:
                yield Served(
                    parts, streams, explanations, access, server, f"http://127.0.0.1:{access.port}"
                )
            finally:
                parts.close()
    if kubeconfig is not None:
        await connection.close()
