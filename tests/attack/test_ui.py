"""Another account of the machine, without the key, and the page of ``ui``."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from itertools import repeat
from pathlib import Path

import psutil
import pytest

from tests.adapter.clientapi import api_server
from tests.adapter.tools.ui.cluster import gpu, hpa, pod, serve, workload
from tests.adapter.tools.ui.page import Page, running
from tests.attack.strangers import connect

CONNECTIONS = 100
LINE = b"x-a: " + b"y" * 1_000 + b"\r\n"
HEAD = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n"
MOST = 16 << 30
"""Bytes of a header line that never ends."""
KEPT = 40 << 20
"""Bytes that the process may grow by while it gets 100 MB of heads."""


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    with api_server(tmp_path) as (server, kubeconfig):
        serve(server, [gpu("g0")], [pod("llm-0")], [workload("llm")], [hpa()])
        with running(kubeconfig) as opened:
            opened.until("verdict")
            yield opened


def sent(page: Page, content: Iterator[bytes]) -> int:
    """Send on a connection of its own until the page ends it; returns the bytes it took."""
    count = 0
    with connect(page.port, "127.0.0.1") as line, suppress(OSError):
        line.sendall(HEAD)
        for piece in content:
            line.sendall(piece)
            count += len(piece)
    return count


def test_heads_of_another_account_are_not_kept(page: Page) -> None:
    """100 connections send 1 MB of header lines each, and never the end of the head."""
    process = psutil.Process(page.process.pid)
    before = process.memory_info().rss
    with ExitStack() as stack:
        for _ in range(CONNECTIONS):
            line = stack.enter_context(connect(page.port, "127.0.0.1"))
            with suppress(OSError):
                line.sendall(HEAD + LINE * 1_000)
        assert process.memory_info().rss - before < KEPT
        assert page.get("/").status_code == 200


def test_a_header_of_a_hundred_mebibytes_does_not_stop_the_page(page: Page) -> None:
    """Such a header blocked for 72 s. What follows a head that is refused is read for a second."""
    taken: list[int] = []
    pieces = repeat(b"a" * (1 << 16), MOST >> 16)
    thread = threading.Thread(target=lambda: taken.append(sent(page, pieces)))
    thread.start()
    statuses = {page.get("/").status_code for _ in range(5)}
    thread.join(60)
    assert statuses == {200}
    assert taken, "the connection was not closed"
    assert taken[0] < MOST, "the page took the header without an end"


def test_idle_connections_of_another_account_do_not_lock_the_owner_out(page: Page) -> None:
    """Some send nothing, some half of a head; the owner's stream goes on, and a new tab opens."""
    events = page.events()
    next(events)
    with ExitStack() as stack:
        lines: list[socket.socket] = []
        for number in range(4 * CONNECTIONS):
            lines.append(stack.enter_context(connect(page.port, "127.0.0.1")))
            if number % 2:
                with suppress(OSError):
                    lines[-1].sendall(HEAD)
        assert [page.get("/").status_code for _ in range(10)] == [200] * 10
        assert page.until("verdict")
        assert next(events).name, "the stream that was open before"
