"""What surrounds one process fails: its clock, disk, log, files and turn on the processor.

Each adapter here has one of the faults, all at the same time, and clients that ask it directly,
as the front proxy does. On top of that the exporter hangs while the clock goes back.
"""

from __future__ import annotations

import os
import resource
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.e2e.adapterprocess import QUICK, Adapter
from tests.e2e.badpages import BadPage
from tests.e2e.faultnodes import faulty_nodes
from tests.e2e.faultyadapter import (
    Clock,
    FaultyAdapter,
    StuckReader,
    standard_error,
    tiny_disk,
)
from tests.e2e.process import free_port, wait_until
from tests.e2e.stage import SCRAPE, Stage
from tests.e2e.traffic import Asker, Calls, Lists, Traffic
from tests.e2e.truth import Truth

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

SPACE, NODE = "process", "node-process"
AHEAD = 3600
DISK = 64 * 1024
LIMIT = float(QUICK["age_limit"].rstrip("s"))
CALLED = ("stands-still", "no-files")
"""Whom KEDA asks too."""


class Seen(NamedTuple):
    """What came of it."""

    traffic: Traffic
    same: dict[str, bool]
    """Adapter -> it is the process that it was."""


@pytest.fixture(scope="module")
def seen(running_stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    stage, folder, truth = running_stage, tmp_path_factory.mktemp("process"), Truth(LIMIT)
    with ExitStack() as stack:
        stack.callback(setattr, stage.load, "used", stage.load.used)
        stage.load.used = truth.used
        exporter = stack.enter_context(faulty_nodes(stage, [NODE]))[NODE]
        stage.workload(SPACE, 2, 120, node=NODE)
        stack.callback(stage.clear)
        stage.wait_size(SPACE, 2)
        clock = Clock(folder / "clock")
        adapters, ports = _adapters(stage, folder, clock, stack)
        pids = {name: adapter.process.pid for name, adapter in adapters.items()}
        clients: dict[str, Asker] = {
            name: Lists(adapter.client(stage.plane.proxy_client), SPACE, truth, _ahead(name))
            for name, adapter in adapters.items()
        }
        clients |= {f"{n} keda": Calls(f"localhost:{p}", SPACE, [120]) for n, p in ports.items()}
        with Traffic(clients) as traffic:
            traffic.wait_pods(bool)
            frozen = [name for name in clients if name.startswith("stands-still")]
            others = [name for name in clients if name not in frozen]
            clock.set(AHEAD)
            _fill(adapters["disk-full"].certificates)
            with _all_files_used(adapters["no-files"]):
                os.kill(pids["stands-still"], signal.SIGSTOP)
                # Longer than a value may be old.
                traffic.wait_more(int(LIMIT / 0.2) + 5, *others)
                os.kill(pids["stands-still"], signal.SIGCONT)
                traffic.wait_pods(bool)
                exporter.bad = BadPage.HANGS
                clock.set(0)
                traffic.wait_pods(_none)
            exporter.bad = None
            traffic.wait_pods(bool)
            traffic.wait_more()
        same = {name: adapter.process.running() for name, adapter in adapters.items()}
        yield Seen(traffic, same)


def _adapters(
    stage: Stage, folder: Path, clock: Clock, stack: ExitStack
) -> tuple[dict[str, Adapter], dict[str, int]]:
    """An adapter for each fault, and the ports of those that KEDA asks."""
    stuck = StuckReader(folder / "stuck")
    stack.callback(stuck.close)
    surroundings: dict[str, dict[str, Any]] = {
        "stands-still": {},
        "clock-steps": {"environment": clock.environment},
        "disk-full": {"prefix": tiny_disk(folder / "disk-full-certs", DISK)},
        "log-full": {"prefix": standard_error("/dev/full")},
        "log-not-read": {"prefix": standard_error(stuck.path)},
        "no-files": {},
    }
    ports = {name: free_port() for name in CALLED}
    made: dict[str, Adapter] = {}
    for name, how in surroundings.items():
        port = ports.get(name)
        keda = {"enabled": port is not None, "host": "127.0.0.1", "port": port or 0}
        faulty = FaultyAdapter(folder, name, stage.kubeconfig(), SCRAPE, keda=keda, **how)
        made[name] = faulty
        stack.callback(faulty.stop)
        faulty.process.start()
    disk = made["disk-full"]
    # The disk is in a namespace of its own.
    disk.certificates = Path(f"/proc/{disk.process.pid}/root{disk.certificates}")
    for adapter in made.values():
        adapter.process.wait_ready(adapter.ready)
    return made, ports


def _ahead(name: str) -> float:
    return AHEAD if name == "clock-steps" else 0.0


def _none(pods: frozenset[str]) -> bool:
    return not pods


def _fill(folder: Path) -> None:
    """Leave no room on the folder's disk."""
    with (folder / "junk").open("wb", 0) as junk, suppress(OSError):
        while True:
            junk.write(bytes(4096))
    assert os.statvfs(folder).f_bavail == 0


@contextmanager
def _all_files_used(adapter: Adapter) -> Iterator[None]:
    """It may open a few files more, and strangers take all of them."""
    pid = adapter.process.pid
    usual, most = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    limit = len(list(Path(f"/proc/{pid}/fd").iterdir())) + 4
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (limit, most))
    with ExitStack() as stack:
        for _ in range(3 * limit):
            line = socket.create_connection(("127.0.0.1", adapter.port))
            stack.callback(line.close)
        yield
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (usual, most))


FAULTS = ("stands-still", "clock-steps", "disk-full", "log-full", "log-not-read", "no-files")


@pytest.mark.parametrize("fault", FAULTS)
def test_a_process_whose(seen: Seen, fault: str) -> None:
    """Every request is answered, with values that are true and young enough, and it goes on."""
    names = [name for name in seen.traffic.clients if name.startswith(fault)]
    assert not seen.traffic.failed(*names)
    assert not seen.traffic.wrong(*names)
    assert seen.same[fault]


def test_a_full_disk_for_the_certificate_ends_the_process_with_a_message(
    stage: Stage, tmp_path: Path
) -> None:
    """The chart's own certificate comes in a Secret: no disk is needed for that."""
    folder = tmp_path / "none-certs"
    adapter = FaultyAdapter(
        tmp_path, "none", stage.kubeconfig(), SCRAPE, prefix=tiny_disk(folder, 4096)
    )
    adapter.process.start()
    wait_until(lambda: not adapter.process.running(), "it ends")
    assert adapter.stop() == 1
    message = f"a self-signed certificate cannot be kept in {folder}: No space left on device"
    assert message in adapter.process.tail()
