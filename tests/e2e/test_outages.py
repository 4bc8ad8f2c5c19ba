"""What stops and comes back: the API server, the adapter, namespaces."""

from __future__ import annotations

import signal

import pytest

from tests.e2e.apiservice import CUSTOM, ensure_namespace, wait_available
from tests.e2e.cluster import condition
from tests.e2e.process import wait_until
from tests.e2e.stage import Stage

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

APISERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"


def test_every_version_is_available(stage: Stage) -> None:
    """The API server's own probes pass for both versions."""
    for group, version, _ in CUSTOM:
        apiservice = stage.admin.get(f"{APISERVICES}/{version}.{group}")
        assert condition(apiservice, "Available") == ("True", "Passed")


def test_namespaces_can_be_deleted(stage: Stage) -> None:
    """An aggregated API whose discovery is broken would keep them Terminating."""
    ensure_namespace(stage.admin, "short-lived")
    stage.admin.delete("/api/v1/namespaces/short-lived")
    wait_until(
        lambda: stage.admin.client.get("/api/v1/namespaces/short-lived").status_code == 404,
        "the namespace is gone",
    )


def test_the_api_server_restarts(stage: Stage) -> None:
    """The adapter stays as it is, and sees pods that came after."""
    stage.workload("restart", replicas=2, demand=140, low=2)
    stage.wait_size("restart", 2)
    stage.wait_active("restart", "True")
    pid = stage.adapter.process.pid
    stage.plane.restart_apiserver()
    wait_available(stage.admin)
    stage.load.set("restart", 280)
    stage.wait_size("restart", 4)
    wait_until(lambda: len(stage.values("restart")) == 4, "the new pods have values")
    assert stage.adapter.process.pid == pid
    assert stage.adapter.process.running()


def test_values_are_served_while_the_api_server_is_unavailable(stage: Stage) -> None:
    """Clients with a cached authorization get answers while the API server is unavailable."""
    stage.workload("away", replicas=2, demand=140, low=2)
    stage.wait_size("away", 2)
    wait_until(lambda: len(stage.values("away")) == 2, "both pods have values")
    client = stage.adapter.client(stage.plane.proxy_client)
    path = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/away/pods/%2A/gpu_utilization"
    stage.plane.apiserver.stop(signal.SIGKILL)
    try:
        assert len(client.get(path)["items"]) == 2
    finally:
        stage.plane.start_apiserver()
        client.close()
    wait_available(stage.admin)


def test_the_adapter_recovers_after_a_kill(stage: Stage) -> None:
    """Meanwhile the HPA holds; afterwards nothing has to be repaired by hand."""
    stage.workload("killed", replicas=3, demand=210)
    stage.wait_size("killed", 3)
    stage.wait_active("killed", "True")
    stage.adapter.stop(signal.SIGKILL)
    stage.load.set("killed", 10)
    stage.wait_active("killed", "False", "FailedGetPodsMetric")
    stage.wait_failures("killed", 2)
    assert stage.sizes["killed"] == [3]
    stage.adapter.start()
    wait_available(stage.admin)
    stage.wait_active("killed", "True", "ValidMetricFound")
    stage.wait_size("killed", 1)


def test_the_adapter_shuts_down_gracefully(stage: Stage) -> None:
    """SIGTERM ends it with status 0, and the same certificate is served after a restart."""
    before = stage.adapter.ca.read_bytes()
    assert stage.adapter.stop(signal.SIGTERM) == 0
    stage.adapter.start()
    assert stage.adapter.ca.read_bytes() == before
    wait_available(stage.admin)
