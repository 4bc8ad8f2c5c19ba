"""Faults of the API server itself, which ``doctor`` finds before an installation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.apiproxy import version_proxy
from tests.e2e.controlplane import ControlPlane
from tests.e2e.doctorcommand import checked, doctor, found_by
from tests.e2e.process import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

TRUST = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane whose API server was started without the aggregation layer's flags."""
    folder = tmp_path_factory.mktemp("bare")
    with ControlPlane(folder, controllers=("namespace-controller",), aggregation=False) as plane:
        wait_until(lambda: plane.admin.get(TRUST).get("data"), "the API server has published")
        yield plane


def test_an_api_server_without_the_aggregation_layer_is_found(bare: ControlPlane) -> None:
    report = checked(bare.kubeconfig)
    findings = found_by(report)
    assert findings["GMA002"] == [
        "has no requestheader-client-ca-file, so no metrics API can be served"
    ]
    assert set(findings) == {"GMA002", "GMA012"}, "there is no node either"
    assert {row["id"]: row["status"] for row in report["checks"]}["GMA001"] == "fine"


@pytest.mark.parametrize(
    ("version", "status", "words"),
    [
        ("v1.26.15", "error", "the API server is Kubernetes 1.26"),
        ("v1.27.0+k3s1", "fine", ""),
        ("unknown", "unknown", "/version of the API server has gitVersion 'unknown'"),
        (None, "unknown", "/version of the API server has no gitVersion"),
    ],
)
def test_an_old_version_is_found(
    bare: ControlPlane, version: str | None, status: str, words: str
) -> None:
    """No other version of the program is here: a proxy changes the answer of the real one."""
    change: dict[str, Any] = {"gitVersion": version}
    with version_proxy(bare, change) as kubeconfig:
        (row,) = [row for row in checked(kubeconfig)["checks"] if row["id"] == "GMA001"]
        text = " ".join(doctor("--kubeconfig", kubeconfig).stdout.split())
    assert row["status"] == status
    assert words in text
