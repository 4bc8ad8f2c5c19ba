"""Attackers without any credential who open connections: many, silent ones, fast."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tests.attack.siege import Siege
from tests.attack.strangers import (
    GET,
    SOURCES,
    connect,
    idle_strangers,
    many_files,
    strange,
)
from tests.needs import OPEN_FILES, needs

ROOT = Path(__file__).parents[2]


@needs(OPEN_FILES)
def test_connections_that_never_shake_hands(siege: Callable[..., Siege]) -> None:
    """4,000 bare TCP connections, a third of them with a ClientHello that is never finished."""
    attacked = siege()
    before = attacked.process.memory_info().rss
    with many_files(5000):
        lines: list[socket.socket] = []
        try:
            for n in range(4000):
                with suppress(OSError):
                    lines.append(line := connect(attacked.port, SOURCES[n % len(SOURCES)]))
                    if n % 3 == 0:
                        line.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
            attacked.observe(seconds=3)
        finally:
            for line in lines:
                line.close()
    seen = attacked.verdict()
    assert seen.peak - before < 64 << 20


@needs(OPEN_FILES)
def test_unknown_clients_that_keep_idle_connections(siege: Callable[..., Siege]) -> None:
    """1,500 clients ask ``/healthz`` once each and keep their connection."""
    attacked = siege(server={"handshakes_per_second": 2000})
    with idle_strangers(attacked.port, 1500) as lines:
        assert len(lines) > 1000
        attacked.observe(seconds=3)
        # The API server gets new connections, and every other newcomer its first answer.
        for _ in range(20):
            with attacked.serving.client() as client:
                assert client.get("/apis/custom.metrics.k8s.io/v1beta2").status_code == 200
        newcomer = strange(attacked.port, "127.0.9.9")
        assert newcomer is not None
        newcomer.sendall(GET)
        assert newcomer.recv(100).startswith(b"HTTP/1.1 200")
        newcomer.close()
    attacked.verdict()


def test_handshakes_as_fast_as_possible(siege: Callable[..., Siege]) -> None:
    """One address opens and drops connections in a loop, for five seconds."""
    attacked = siege()
    ends = time.monotonic() + 5
    tried = made = 0
    while time.monotonic() < ends:
        tried += 1
        line = strange(attacked.port, SOURCES[0])
        if line is not None:
            made += 1
            line.close()
    attacked.verdict()
    # 50 a second for one address, and 100 at once; a generous bound for a slow machine.
    assert made <= 50 * 8 + 100
    assert tried >= made


def test_connections_that_fill_the_probe_listener(siege: Callable[..., Siege]) -> None:
    """200 connections at a time to the probe listener, silent, for three seconds."""
    attacked = siege()
    port = attacked.serving.wait_for("listening for probes")["port"]
    ends = time.monotonic() + 3
    while time.monotonic() < ends:
        lines = []
        for n in range(200):
            with suppress(OSError):
                lines.append(connect(port, SOURCES[n % 50]))
        for line in lines:
            line.close()
    assert attacked.verdict().probes


def test_heads_that_arrive_byte_by_byte(siege: Callable[..., Siege]) -> None:
    """500 clients send a byte a second; each is cut after ten seconds and comes back at once."""
    attacked = siege()
    before = attacked.process.memory_info().rss
    module = [sys.executable, "-m", "tests.attack.slowheads"]
    attack = subprocess.Popen([*module, str(attacked.port), "500", "25"], cwd=ROOT)
    try:
        attacked.observe(seconds=25)
        assert attack.wait(60) == 0
    finally:
        attack.kill()
        attack.wait()
    with attacked.serving.client() as client:
        cut = re.search(r'limit="slow-request"} (\d+)', client.get("/metrics").text)
    assert cut is not None
    assert int(cut[1]) > 0
    assert attacked.verdict().peak - before < 64 << 20


@needs(OPEN_FILES)
def test_unknown_clients_that_send_heads_of_many_lines(siege: Callable[..., Siege]) -> None:
    """400 clients send 1,900 header lines each, and never the end of the head."""
    attacked = siege(server={"handshakes_per_second": 2000})
    before = attacked.process.memory_info().rss
    head = b"GET / HTTP/1.1\r\nHost: h\r\n" + b"".join(b"a%04d: x\r\n" % n for n in range(1900))
    with idle_strangers(attacked.port, 400) as lines:
        for line in lines:
            line.settimeout(10)
            with suppress(OSError):
                line.sendall(head)
        attacked.observe(seconds=3)
    seen = attacked.verdict()
    assert seen.peak - before < 96 << 20
