"""Certificates of a minute: the adapter's, the API server's, and the CA of the aggregation layer.

While they are replaced in time, no request of an HPA or of kubectl fails. Then they are not, and
what fails is what an expired certificate means; the process says so, and goes on with the next
ones. It is never restarted.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.adapterprocess import Adapter
from tests.e2e.apiservice import CUSTOM, DNS, register_group, unregister_group, wait_available
from tests.e2e.certificates import Authority, KeyPair
from tests.e2e.cluster import Cluster
from tests.e2e.process import wait_until
from tests.e2e.stage import METRIC, SCRAPE, Stage
from tests.e2e.test_access import kubectl
from tests.e2e.traffic import Answer, Asker, Traffic, controller
from tests.e2e.truth import Truth

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(600)]

SPACE, NODE = "expiry", "node-a"
CONFIG = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
SHORT = 60.0
"""Seconds that a certificate is valid here."""
TRUSTED = "request-header settings read"
ALL = {"serving", "front-proxy", "front-proxy-ca"}
HONEST = (
    "Unauthorized",
    "certificate has expired",
    "unable to handle the request",
    "EOF",
    "service unavailable",
)
"""What a client of the API server may get after the end of a certificate."""


class Kubectl:
    """A person who runs kubectl; an :class:`Asker`."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def ask(self) -> Answer:
        begun = time.monotonic()
        path = f"/apis/{CUSTOM[0][0]}/v1beta2/namespaces/{SPACE}/pods/*/{METRIC}"
        done = kubectl(self._stage, "get", "--raw", path)
        return Answer(begun, done.stderr.strip()[:300] if done.returncode else "")

    def close(self) -> None:
        pass


class Certificates:
    """What the adapter serves with, what the API server shows it, and the CAs of both."""

    def __init__(self, stage: Stage, folder: Path) -> None:
        self._plane = stage.plane
        self._folder = folder
        self._issued = 0
        self.serving_ca = Authority(folder, "serving-ca")
        self.serving = self.serving_ca.issue("adapter", server=True, dns=DNS, life=SHORT)
        self._front = stage.plane.front_proxy

    def authority(self, life: float) -> None:
        """Trust another CA of the same name beside those before; it issues from now on."""
        self._issued += 1
        folder = self._folder / f"ca-{self._issued}"
        folder.mkdir()
        self._front = Authority(folder, "front-proxy-ca", life)
        bundle = self._plane.front_proxy.cert
        bundle.write_bytes(self._front.pem + bundle.read_bytes())

    def only(self) -> None:
        """Trust the newest CA alone: the API server itself only adds to its ConfigMap."""
        self._plane.front_proxy.cert.write_bytes(self._front.pem)
        data = {"requestheader-client-ca-file": self._front.pem.decode()}
        self._plane.admin.patch(CONFIG, {"data": data})

    def serve(self, life: float) -> None:
        """Replace the adapter's certificate."""
        _replace(self.serving_ca.issue("next", server=True, dns=DNS, life=life), self.serving)

    def present(self, life: float) -> None:
        """Replace the API server's certificate."""
        _replace(self._front.issue("front-proxy-client", life=life), self._plane.proxy_client)


def _replace(new: KeyPair, old: KeyPair) -> None:
    old.key.write_bytes(new.key.read_bytes())
    old.cert.write_bytes(new.cert.read_bytes())


class Observed:
    """The adapter as its metrics, its log and its readiness show it, on one open connection: TLS
    checks dates at a handshake alone."""

    def __init__(self, stage: Stage, adapter: Adapter) -> None:
        url, pair = f"https://localhost:{adapter.port}", stage.plane.admin_pair
        self.client = Cluster(url, str(adapter.ca), pair=pair)
        self._log = adapter.process.log

    def left(self) -> dict[str, float]:
        """Certificate -> seconds until it ends, by the metric."""
        start = 'gma_certificate_expiry_timestamp_seconds{certificate="'
        lines = self.client.get("/metrics").splitlines()
        rows = (line.removeprefix(start).split('"} ') for line in lines if line.startswith(start))
        return {name: float(value) - time.time() for name, value in rows}

    def said(self, event: str) -> set[str]:
        """The certificates of which the log says this."""
        return {row["certificate"] for row in self.lines(event)}

    def lines(self, event: str) -> list[dict[str, Any]]:
        """The lines of the log about an event."""
        rows = (json.loads(line) for line in self._log.read_text().splitlines())
        return [row for row in rows if row.get("event") == event]


@pytest.fixture
def adapter(running_stage: Stage, tmp_path: Path) -> Iterator[tuple[Adapter, Certificates]]:
    """An adapter with a certificate from files, registered instead of the stage's own."""
    stage, certificates = running_stage, Certificates(running_stage, tmp_path)
    made = Adapter(tmp_path, "expiry", stage.kubeconfig(), SCRAPE)
    made.certificates.mkdir()
    made.ca.write_bytes(certificates.serving_ca.pem)
    settings: dict[str, Any] = yaml.safe_load(made.config.read_text())
    del settings["server"]["cert_dir"]
    files = {"cert_file": certificates.serving.cert, "key_file": certificates.serving.key}
    settings["server"] |= {name: str(path) for name, path in files.items()}
    made.config.write_text(yaml.safe_dump(settings))
    with ExitStack() as stack:
        stack.callback(made.stop)
        made.start()
        unregister_group(stage.admin, CUSTOM)
        register_group(stage.admin, made.port, made.ca.read_bytes(), CUSTOM)
        stack.callback(_restore, stage)
        yield made, certificates


def _restore(stage: Stage) -> None:
    unregister_group(stage.admin, CUSTOM)
    register_group(stage.admin, stage.adapter.port, stage.adapter.ca.read_bytes(), CUSTOM)
    wait_available(stage.admin)


def test_certificates_that_end_within_a_minute(
    stage: Stage, adapter: tuple[Adapter, Certificates]
) -> None:
    process, certificates = adapter
    pid, truth = process.process.pid, Truth(60)
    clients: dict[str, Asker] = {
        "hpa": controller(stage.plane, SPACE, truth),
        "kubectl": Kubectl(stage),
    }
    with ExitStack() as stack:
        observed = Observed(stage, process)
        stack.callback(observed.client.close)
        stack.callback(setattr, stage.load, "used", stage.load.used)
        stage.load.used = truth.used
        stage.workload(SPACE, 2, 120, node=NODE, low=2)
        stage.wait_size(SPACE, 2)
        wait_available(stage.admin)
        traffic = stack.enter_context(Traffic(clients))
        traffic.wait_pods(2, "hpa")
        _renewed_in_time(observed, certificates, traffic)
        ended = time.monotonic() + min(observed.left().values())
        _not_renewed(observed, traffic)
        certificates.serve(life=86400)
        certificates.present(life=86400)
        traffic.wait_pods(2, "hpa")
        stage.wait_active(SPACE, "True")
        recovered = time.monotonic()
        traffic.wait_more(10)
    assert (process.process.pid, process.process.running()) == (pid, True)
    assert not traffic.wrong()
    for client in traffic.clients.values():
        failed = [answer for answer in client.answers if answer.failure]
        assert failed, "an expired certificate ends nothing: the test shows nothing"
        for answer in failed:
            assert ended - 1 < answer.begun < recovered, answer
            assert any(words in answer.failure for words in HONEST), answer


def _renewed_in_time(seen: Observed, certificates: Certificates, traffic: Traffic) -> None:
    """Each is replaced once before its end, the CA too; nothing fails, also past those ends."""
    trusted = len(seen.lines(TRUSTED))
    certificates.authority(life=SHORT + 10)
    wait_until(lambda: len(seen.lines(TRUSTED)) > trusted, "the new CA is trusted")
    certificates.serve(SHORT)
    certificates.present(SHORT)
    wait_until(lambda: seen.left()["front-proxy"] < SHORT, "the API server shows the new one")

    def alone() -> bool:
        certificates.only()
        return seen.left()["front-proxy-ca"] < 2 * SHORT

    wait_until(alone, "the first CA is trusted no more", every=1.0)
    traffic.wait_more()
    wait_until(lambda: seen.said("certificate expires soon") >= ALL, "the log warns of each")

    last = time.monotonic() + max(seen.left()[name] for name in ALL)
    certificates.authority(life=86400)
    wait_until(lambda: seen.left()["front-proxy-ca"] > 2 * SHORT, "the next CA is trusted")
    life = last - time.monotonic() + 15
    certificates.serve(life)
    certificates.present(life)
    wait_until(
        lambda: time.monotonic() > last + 2 and min(seen.left().values()) > 0,
        "only the next ones are in use, and all of before have ended",
    )
    traffic.wait_more()
    assert not traffic.failed()
    assert not seen.said("certificate has expired")


def _not_renewed(seen: Observed, traffic: Traffic) -> None:
    """They end; requests fail, and the process says why."""
    wait_until(lambda: min(seen.left().values()) < 0, "the first has ended")
    wait_until(lambda: {"hpa", "kubectl"} <= _failing(traffic), "requests fail")
    wait_until(
        lambda: seen.said("certificate has expired") >= {"serving", "front-proxy"},
        "the log says which has expired",
    )
    ready = seen.client.client.get("/readyz/serving-certificate")
    assert ready.status_code == 500
    assert "error: expired on " in ready.text


def _failing(traffic: Traffic) -> set[str]:
    return {line.split(":")[0] for line in traffic.failed()}
