"""etcd, the API server and certificates under a steady load of HPA-like requests."""

from __future__ import annotations

import base64
import os
import shutil
import signal
import ssl
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from adapter.config.settings.server import ServerSettings
from apiservice.tls.selfsigned import SelfSigned
from tests.attack.strangers import idle_strangers
from tests.e2e.adapterprocess import QUICK
from tests.e2e.apiservice import CUSTOM
from tests.e2e.cluster import Cluster
from tests.e2e.process import wait_until
from tests.e2e.stage import Stage
from tests.e2e.traffic import Lists, Traffic, controller, hpa
from tests.e2e.truth import Truth

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

SPACE = "cluster-faults"
DIRECTLY = "directly"
THROUGH = "through the API server"
APISERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
NAMES = ServerSettings().cert_names


class Seen(NamedTuple):
    """What came of it."""

    traffic: Traffic
    phases: dict[str, tuple[float, float]]
    """Fault -> when it began and when it was over, by the monotonic clock."""
    sizes: list[int]
    same: bool


class Phases:
    """Faults in turn."""

    def __init__(self, stage: Stage, traffic: Traffic, folder: Path) -> None:
        self._stage, self._traffic, self._folder = stage, traffic, folder
        self.times: dict[str, tuple[float, float]] = {}

    def run(self) -> None:
        """One after the other; each ends with answers to everybody."""
        for name in FAULTS:
            begun = time.monotonic()
            getattr(self, "_" + name.replace("-", "_"))()
            self._traffic.wait_pods(2)
            self._traffic.wait_more()
            self.times[name] = (begun, time.monotonic())

    def _etcd_hangs(self) -> None:
        etcd = self._stage.plane.etcd.pid
        os.kill(etcd, signal.SIGSTOP)
        try:
            self._traffic.wait_more(25)
            self._traffic.wait_pods(2)
        finally:
            os.kill(etcd, signal.SIGCONT)

    def _etcd_is_slow(self) -> None:
        """It works for a tenth of the time, in turns of 20 ms."""
        etcd = self._stage.plane.etcd.pid
        until = time.monotonic() + 4
        while time.monotonic() < until:
            os.kill(etcd, signal.SIGSTOP)
            time.sleep(0.18)
            os.kill(etcd, signal.SIGCONT)
            time.sleep(0.02)

    def _certificate_rotates(self) -> None:
        """Another of the same CA."""
        folder = self._folder / "leaf"
        folder.mkdir()
        for name in ("ca.crt", "ca.key"):
            shutil.copy(self._stage.adapter.certificates / name, folder)
        SelfSigned(folder, NAMES).ensure(time.time())
        self._serve(folder)

    def _ca_rotates(self) -> None:
        """Both are trusted before a certificate of the new one is served."""
        folder = next_authority(self._folder)
        old, new = self._stage.adapter.ca.read_bytes(), (folder / "ca.crt").read_bytes()
        self._trust(old + new)
        self._serve(folder)
        self._trust(new)

    def _api_server_is_killed(self) -> None:
        """Values are kept and served to direct requests."""
        self._stage.plane.apiserver.stop(signal.SIGKILL)
        self._traffic.wait_more(10, DIRECTLY)
        self._traffic.wait_pods(2, DIRECTLY)
        self._stage.plane.start_apiserver()

    def _strangers_hold_connections(self) -> None:
        """Anonymous clients take every place that they can, while the API server needs new ones."""
        path = f"/apis/custom.metrics.k8s.io/v1beta2/namespaces/{SPACE}/pods/*/gpu_utilization"

        client = hpa(self._stage.plane)

        def ask(_: int) -> int:
            return len(client.get(path)["items"])

        with idle_strangers(self._stage.adapter.port, 1500) as lines:
            assert len(lines) > 500
            # More at once than the API server has connections: it has to open others.
            with ThreadPoolExecutor(40) as pool:
                assert set(pool.map(ask, range(200))) == {2}
            client.close()
            self._traffic.wait_more(10)
            for group, version, _ in CUSTOM:
                service = self._stage.admin.get(f"{APISERVICES}/{version}.{group}")
                conditions = {row["type"]: row["status"] for row in service["status"]["conditions"]}
                assert conditions["Available"] == "True"

    def _serve(self, folder: Path) -> None:
        """Put another pair where the adapter has its own, and wait until that is served."""
        wanted = (folder / "tls.crt").read_text()
        for name in ("ca.key", "ca.crt", "tls.key", "tls.crt"):
            (folder / name).replace(self._stage.adapter.certificates / name)
        address = ("localhost", self._stage.adapter.port)
        wait_until(lambda: ssl.get_server_certificate(address) == wanted, "the new one is served")
        self._traffic.wait_more()

    def _trust(self, bundle: bytes) -> None:
        text = base64.b64encode(bundle).decode()
        for group, version, _ in CUSTOM:
            path = f"{APISERVICES}/{version}.{group}"
            self._stage.admin.patch(path, {"spec": {"caBundle": text}})
        # No event shows when the API server has loaded it.
        self._traffic.wait_more(15)


FAULTS = (
    "etcd-hangs",
    "etcd-is-slow",
    "strangers-hold-connections",
    "certificate-rotates",
    "ca-rotates",
    "api-server-is-killed",
)
NOT_OURS = {"api-server-is-killed"}
"""During this time, requests through the API server get no values."""


def next_authority(folder: Path) -> Path:
    """A CA and a pair of it, made when first asked for."""
    made = folder / "next"
    SelfSigned(made, NAMES).ensure(time.time())
    return made


@pytest.fixture(scope="module")
def seen(running_stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    stage, folder = running_stage, tmp_path_factory.mktemp("cluster")
    truth = Truth(float(QUICK["age_limit"].rstrip("s")))
    with ExitStack() as stack:
        stack.callback(setattr, stage.load, "used", stage.load.used)
        stage.load.used = truth.used
        stage.workload(SPACE, 2, 120)
        stack.callback(stage.clear)
        stage.wait_size(SPACE, 2)
        trusted = folder / "trusted.crt"
        new = next_authority(folder) / "ca.crt"
        trusted.write_bytes(stage.adapter.ca.read_bytes() + new.read_bytes())
        direct = Cluster(
            f"https://localhost:{stage.adapter.port}",
            str(trusted),
            pair=stage.plane.proxy_client,
            headers={"X-Remote-User": "tester", "X-Remote-Group": "system:masters"},
        )
        clients = {
            THROUGH: controller(stage.plane, SPACE, truth),
            DIRECTLY: Lists(direct, SPACE, truth),
        }
        pid = stage.adapter.process.pid
        with Traffic(clients) as traffic:
            traffic.wait_pods(2)
            phases = Phases(stage, traffic, folder)
            phases.run()
        same = stage.adapter.process.running() and stage.adapter.process.pid == pid
        yield Seen(traffic, phases.times, list(stage.sizes[SPACE]), same)


@pytest.mark.parametrize("fault", FAULTS)
def test_while_the(seen: Seen, fault: str) -> None:
    """Every request is answered; the API server's own absence is its own."""
    for name, client in seen.traffic.clients.items():
        if fault in NOT_OURS and name == THROUGH:
            continue
        begun, ended = seen.phases[fault]
        during = [answer for answer in client.answers if begun <= answer.begun <= ended]
        assert during
        assert [answer.failure for answer in during if answer.failure] == []


def test_no_client_got_a_wrong_value_and_nothing_was_scaled(seen: Seen) -> None:
    assert not seen.traffic.wrong()
    assert seen.sizes == [2]
    assert seen.same
