"""Answers of `serve` while its exporter or the pods are unavailable, and afterwards."""

from __future__ import annotations

from typing import Any

from tests.adapter.server.serve.conftest import Running
from tests.adapter.server.serve.test_views import GROUP
from tests.adapter.serving import eventually, ready, values

EXTERNAL = "/apis/external.metrics.k8s.io/v1beta1"
SETTINGS = {
    "values": {"age_limit": "1s"},
    "cluster": {"stale_after": "1s"},
    "external": {"enabled": True},
    "view": {"enabled": False},
}


def test_a_failing_exporter_is_an_absent_value_and_never_zero(running: Running) -> None:
    client, exporter = running.client, running.lab.exporter
    exporter.status = 500
    seen = set()

    def gone() -> bool:
        served = values(client)
        seen.update(served)
        return served == []

    eventually(gone)
    assert seen <= {"80"}
    assert ready(client), "readiness is about us, not about exporters"
    exporter.status = 200
    eventually(lambda: values(client) == ["80"])


def test_readiness_ends_when_the_pods_are_unknown_for_too_long(running: Running) -> None:
    client, folder = running.client, running.lab.folder
    eventually(lambda: ready(client))
    away = (folder / "pods.yaml").rename(folder / "away.yaml")
    eventually(lambda: not ready(client))
    assert "[-]pods failed" in client.get("/readyz?verbose").text
    away.rename(folder / "pods.yaml")
    eventually(lambda: ready(client))


def test_external_metrics_are_served_if_enabled(running: Running) -> None:
    # client-go lower-cases the name.
    path = f"{EXTERNAL}/namespaces/ns/dcgm_fi_dev_gpu_util?labelSelector=app%3Dinf"
    items: list[Any] = []

    def served() -> bool:
        items[:] = running.client.get(path).raise_for_status().json()["items"]
        return bool(items)

    eventually(served)
    (item,) = items
    assert (item["value"], item["metricLabels"]["pod"]) == ("80", "p0")
    listed = running.client.get(EXTERNAL).raise_for_status().json()["resources"]
    assert {"gpu_utilization", "dcgm_fi_dev_gpu_util"} <= {row["name"] for row in listed}


def test_without_the_view_api_its_group_is_unknown(running: Running) -> None:
    assert running.client.get(f"{GROUP}/gpus").status_code == 404
