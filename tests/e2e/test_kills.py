"""`maintain` killed in the middle of a rotation, before a real kube-apiserver."""

from __future__ import annotations

import base64
import itertools
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from adapter.tools.maintain.objects import RENEW
from adapter.tools.maintain.trust import issuer_of, read_bundle
from tests.e2e.apiproxy import Forward, api_proxy
from tests.e2e.apiservice import CUSTOM, NAMESPACE, SERVICE, ensure_namespace
from tests.e2e.cluster import Cluster
from tests.e2e.controlplane import ControlPlane

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"
CERTIFICATE, AUTHORITY = f"{SERVICE}-certificate", f"{SERVICE}-ca"
NAMES = tuple(f"{version}.{group}" for group, version, _ in CUSTOM)
REGISTRATIONS = "/apis/apiregistration.k8s.io/v1/apiservices"


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    plane = ControlPlane(tmp_path_factory.mktemp("kills"), ())
    try:
        plane.etcd.start()
        plane.start_apiserver()
        ensure_namespace(plane.admin, NAMESPACE)
        yield plane
    finally:
        plane.admin.close()
        for process in (plane.apiserver, plane.etcd):
            process.stop(signal.SIGKILL)


def install(admin: Cluster) -> None:
    """Create what the chart creates, instead of what is there."""
    service = {"namespace": NAMESPACE, "name": SERVICE, "port": 443}
    for name in (CERTIFICATE, AUTHORITY):
        admin.delete(f"{SECRETS}/{name}")
        meta = {"namespace": NAMESPACE, "name": name}
        admin.create({"apiVersion": "v1", "kind": "Secret", "metadata": meta})
    for (group, version, priority), name in zip(CUSTOM, NAMES, strict=True):
        admin.delete(f"{REGISTRATIONS}/{name}")
        spec = {"group": group, "version": version, "groupPriorityMinimum": 100}
        spec |= {"versionPriority": priority, "service": service}
        head = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService"}
        admin.create({**head, "metadata": {"name": name}, "spec": spec})


class Mortal:
    """The command, which is killed at one of its writes, if it has so many.

    Args:
        at: the write, from 1; 0 is never.
        written: whether the API server has carried out this write.
    """

    def __init__(self, plane: ControlPlane, at: int = 0, *, written: bool = False) -> None:
        self._plane, self._at, self._written = plane, at, written
        self._started = threading.Event()
        self.writes = 0

    def run(self) -> tuple[int, str]:
        """Run it to its end; returns its exit status and what it logged."""
        with api_proxy(self._plane, self._around) as kubeconfig:
            command = [sys.executable, "-P", "-m", "adapter", "maintain", "certificates"]
            command += ["--namespace", NAMESPACE, "--service", SERVICE, "--wait", "0"]
            command += ["--secret", CERTIFICATE, "--ca-secret", AUTHORITY]
            command += [part for name in NAMES for part in ("--apiservice", name)]
            command += ["--kubeconfig", str(kubeconfig)]
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            self._started.set()
            output, _ = self._process.communicate(timeout=240)
        return self._process.returncode, output

    def _around(self, method: str, path: str, forward: Forward) -> bytes:
        if method == "GET":
            return forward().content
        self.writes += 1
        dies = self.writes == self._at
        content = b"" if dies and not self._written else forward().content
        if dies:
            self._started.wait(60)
            self._process.kill()
            self._process.wait(60)
        return content


def data(admin: Cluster, name: str, key: str) -> bytes:
    return base64.b64decode((admin.get(f"{SECRETS}/{name}").get("data") or {}).get(key, ""))


def healed(admin: Cluster) -> None:
    """Assert that the API server trusts the certificate that is served, everywhere."""
    (leaf,) = read_bundle(data(admin, CERTIFICATE, "tls.crt"))
    for name in NAMES:
        bundle = admin.get(f"{REGISTRATIONS}/{name}")["spec"].get("caBundle", "")
        assert issuer_of(leaf, read_bundle(base64.b64decode(bundle))), name


@pytest.mark.parametrize(
    "written",
    [
        pytest.param(False, id="before the write"),
        pytest.param(True, id="after it", marks=pytest.mark.long),
    ],
)
def test_a_rotation_that_is_killed_at_any_write_is_healed_by_the_next_run(
    plane: ControlPlane, written: bool
) -> None:
    """The first issue, and a new CA, beside which the old certificate is trusted throughout."""
    lives = list[bool]()
    for number in itertools.count(1):
        install(plane.admin)
        first, _ = Mortal(plane, number, written=written).run()
        code, output = Mortal(plane).run()
        assert code == 0, output
        healed(plane.admin)
        before = data(plane.admin, AUTHORITY, "ca.crt")
        note = {"metadata": {"annotations": {RENEW: "now"}}}
        plane.admin.patch(f"{SECRETS}/{AUTHORITY}", note)
        second, _ = Mortal(plane, number, written=written).run()
        healed(plane.admin)
        code, output = Mortal(plane).run()
        assert code == 0, output
        healed(plane.admin)
        assert data(plane.admin, AUTHORITY, "ca.crt") != before, "the new CA is there"
        assert Mortal(plane).run() == (0, ""), "a further run changes nothing"
        assert {first, second} <= {0, -signal.SIGKILL}
        lives.append(first == second == 0)
        if lives[-1]:
            break
    assert len(lives) > 3, "CA, caBundles, certificate"
