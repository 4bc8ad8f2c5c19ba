"""dcgm-exporter pages in, a real HPA that scales: out, in, and not on absent values."""

from __future__ import annotations

import pytest

from tests.e2e.adapterprocess import Adapter
from tests.e2e.cluster import Cluster, Object, condition
from tests.e2e.exporter import Health
from tests.e2e.process import wait_until
from tests.e2e.prometheus import Prometheus
from tests.e2e.stage import METRIC, Stage

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


def test_busy_scales_out_and_idle_scales_in(stage: Stage) -> None:
    """280 percent of work settle at four pods of 70 each; 60 percent need one pod."""
    stage.workload("busy", replicas=1, demand=280)
    stage.wait_size("busy", 4)
    stage.wait_active("busy", "True", "ValidMetricFound")
    stage.load.set("busy", 60)
    stage.wait_size("busy", 1)
    assert condition(stage.hpa("busy"), "ScalingActive") == ("True", "ValidMetricFound")


def test_the_vendor_neutral_name_scales_too(stage: Stage) -> None:
    """gpu_utilization is the same percentage under a name that no vendor owns."""
    stage.workload("neutral", replicas=1, demand=140, metric="gpu_utilization")
    stage.wait_size("neutral", 2)


def test_the_value_equals_that_of_the_exporter(stage: Stage) -> None:
    """What the page says about a pod is what the API says about it."""
    stage.workload("exact", replicas=2, demand=74, low=2)
    stage.wait_size("exact", 2)
    wait_until(
        lambda: _values(stage, "exact") == ["37", "37"],
        "both pods are at 37",
    )
    assert sorted(stage.values("exact", "gpu_memory_used_bytes").values()) == ["21474836480"] * 2


@pytest.mark.parametrize(
    "failure",
    [None, *(health for health in Health if health is not Health.WELL)],
    ids=lambda health: health.name.lower() if health else "dead",
)
def test_without_values_the_hpa_keeps_its_replicas(stage: Stage, failure: Health | None) -> None:
    """The exporters fail while the work goes away: no scale-in until they are back."""
    namespace = f"outage-{failure.name.lower() if failure else 'dead'}"
    stage.workload(namespace, replicas=3, demand=210)
    stage.wait_size(namespace, 3)
    stage.wait_active(namespace, "True")
    try:
        for exporter in stage.exporters.values():
            if failure is None:
                exporter.stop()
            else:
                exporter.health = failure
        stage.wait_active(namespace, "False", "FailedGetPodsMetric")
        stage.load.set(namespace, 10)
        stage.wait_failures(namespace, 3)
        assert stage.sizes[namespace] == [3]
    finally:
        for exporter in stage.exporters.values():
            exporter.health = Health.WELL
            if failure is None:
                exporter.start()
    stage.wait_active(namespace, "True", "ValidMetricFound")
    stage.wait_size(namespace, 1)


def test_a_dead_node_affects_only_its_own_pods(stage: Stage) -> None:
    """The pods of the other node keep their values."""
    stage.workload("half", replicas=4, demand=240, low=4)
    stage.wait_size("half", 4)
    wait_until(lambda: len(stage.values("half")) == 4, "all four have a value")
    others = {pod.name for pod in stage.pods() if pod.namespace == "half" and pod.node == "node-b"}
    stage.exporters["node-a"].stop()
    try:
        wait_until(lambda: set(stage.values("half")) == others, "only node-b's pods have values")
    finally:
        stage.exporters["node-a"].start()
    wait_until(lambda: len(stage.values("half")) == 4, "all four have a value again")


@pytest.mark.parametrize("honor", [False, True], ids=["honor-labels-false", "honor-labels-true"])
def test_prometheus_gives_the_same_values(stage: Stage, honor: bool) -> None:
    """A pod's value equals the one scraped directly, regardless of Prometheus' labels."""
    namespace = f"prometheus-{str(honor).lower()}"
    stage.workload(namespace, replicas=3, demand=111, low=3)
    stage.wait_size(namespace, 3)
    wait_until(lambda: _values(stage, namespace) == ["37"] * 3, "all pods are at 37")
    ports = {node: exporter.port for node, exporter in stage.exporters.items()}
    server = Prometheus(stage.folder, namespace, ports, honor_labels=honor)
    queries = {"url": server.url, "interval": "500ms", "scrape_interval": "1s"}
    source = {"kind": "prometheus", "prometheus": queries}
    adapter = Adapter(stage.folder, f"adapter-{namespace}", stage.kubeconfig(), source)
    server.start()
    try:
        # The difference that the setting makes to a row of a pod, and to an idle GPU's.
        moved = f'{METRIC}{{exported_namespace="{namespace}"}}'
        kept = f'{METRIC}{{namespace="{namespace}"}}'
        wait_until(lambda: server.count(kept if honor else moved) == 3, "it has scraped")
        assert server.count(moved if honor else kept) == 0
        assert server.count(f'{METRIC}{{pod="dcgm-exporter-node-a",exported_pod=""}}') > 0
        adapter.start()
        client = adapter.client(stage.plane.proxy_client)
        for metric in (METRIC, "gpu_utilization", "gpu_memory_used_bytes", "gpu_count"):
            _wait_values(client, namespace, metric, stage.values(namespace, metric))
        # The exporter's own pod holds no GPU: it is never credited with the idle ones.
        assert _direct(client, "gpu-operator", METRIC) == {}
        client.close()
    finally:
        adapter.stop()
        server.stop()


def _wait_values(client: Cluster, namespace: str, metric: str, wanted: dict[str, str]) -> None:
    assert len(wanted) == 3
    wait_until(
        lambda: _direct(client, namespace, metric) == wanted,
        f"{metric} is {wanted}",
    )


def _values(stage: Stage, namespace: str) -> list[str]:
    return sorted(stage.values(namespace).values())


def _direct(client: Cluster, namespace: str, metric: str) -> dict[str, str]:
    path = f"/apis/custom.metrics.k8s.io/v1beta2/namespaces/{namespace}/pods/%2A/{metric}"
    answer = client.client.get(path)
    items: list[Object] = answer.json().get("items", [])
    return {item["describedObject"]["name"]: item["value"] for item in items}
