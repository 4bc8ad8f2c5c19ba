"""HPAs on our own external metrics API, where nobody else has it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.apiservice import EXTERNAL, register_group, wait_available
from tests.e2e.cluster import HPAS, Object, RefusedError
from tests.e2e.exporter import Health
from tests.e2e.process import wait_until
from tests.e2e.stage import Stage, autoscaler

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

API = "/apis/external.metrics.k8s.io/v1beta1"
APISERVICE = "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.external.metrics.k8s.io"


@pytest.fixture
def external(stage: Stage) -> Iterator[Stage]:
    """The stage, with the external metrics API registered as the adapter's."""
    register_group(stage.admin, stage.adapter.port, stage.adapter.ca.read_bytes(), EXTERNAL)
    wait_available(stage.admin, EXTERNAL)
    yield stage
    stage.admin.delete(APISERVICE)


def scale_on(stage: Stage, namespace: str, replicas: int, demand: float, **target: Object) -> None:
    """A workload whose HPA reads an external metric of its own pods."""
    stage.workload(namespace, replicas, demand)
    hpa = autoscaler(namespace)
    hpa["spec"]["metrics"] = [{"type": "External", "external": target}]
    path = f"{HPAS.format(ns=namespace)}/inference"
    stage.admin.patch(path, {"spec": {"metrics": hpa["spec"]["metrics"]}})


def metric(name: str = "gpu_utilization", **labels: str) -> Object:
    return {"name": name, "selector": {"matchLabels": {"app": "inference", **labels}}}


def test_the_sum_over_the_pods_scales_out_and_in(external: Stage) -> None:
    """AverageValue over one series a pod is what a Pods metric is; names reach us lower-cased."""
    target: Object = {"type": "AverageValue", "averageValue": "70"}
    scale_on(external, "ext", 1, 280, metric=metric("DCGM_FI_DEV_GPU_UTIL"), target=target)
    external.wait_size("ext", 4)
    external.wait_active("ext", "True", "ValidMetricFound")
    external.load.set("ext", 60)
    external.wait_size("ext", 1)


def test_a_mean_over_the_pods_scales_with_a_value_target(external: Stage) -> None:
    target: Object = {"type": "Value", "value": "70"}
    scale_on(external, "ext-mean", 1, 140, metric=metric(aggregate="mean"), target=target)
    external.wait_size("ext-mean", 2)


def test_without_readings_the_hpa_keeps_its_replicas_and_gets_the_pods_without_them(
    external: Stage,
) -> None:
    target: Object = {"type": "AverageValue", "averageValue": "70"}
    scale_on(external, "ext-gone", 3, 210, metric=metric(), target=target)
    external.wait_size("ext-gone", 3)
    external.wait_active("ext-gone", "True")
    try:
        for exporter in external.exporters.values():
            exporter.health = Health.BROKEN
        external.wait_active("ext-gone", "False", "FailedGetExternalMetric")
        external.load.set("ext-gone", 10)

        def names_all() -> bool:
            """The pods' last samples grow too old one by one, so at first fewer are named."""
            conditions = external.hpa("ext-gone")["status"]["conditions"]
            (message,) = (row["message"] for row in conditions if row["type"] == "ScalingActive")
            return "3 of 3 pods have no value: inference-" in message

        wait_until(names_all, "the condition names all pods")
        assert external.sizes["ext-gone"] == [3]
    finally:
        for exporter in external.exporters.values():
            exporter.health = Health.WELL
    external.wait_size("ext-gone", 1)


def test_series_are_selected_by_pod_and_device_labels(external: Stage) -> None:
    external.workload("ext-labels", replicas=2, demand=74, low=2)
    external.wait_size("ext-labels", 2)
    where = f"{API}/namespaces/ext-labels/gpu_utilization?labelSelector="

    def series(selector: str) -> list[Object]:
        rows: list[Object] = external.admin.get(where + selector)["items"]
        return rows

    def all_there() -> bool:
        try:
            return len(series("workload%3Dinference")) == 2
        except RefusedError:
            return False

    wait_until(all_there, "both pods have a series")
    (one,) = series(f"device%3D{series('')[0]['metricLabels']['device']}")
    assert one["metricLabels"]["workload_kind"] == "Deployment"
    assert series("app%3Dnobody") == []
    listed = external.admin.get(API)["resources"]
    assert {"gpu_utilization", "dcgm_fi_dev_gpu_util"} <= {row["name"] for row in listed}


def test_the_owner_of_the_api_is_named_in_the_log_and_in_the_metrics(external: Stage) -> None:
    """The adapter has the right to look, and says what it sees when that changes."""
    client = external.adapter.client(external.plane.proxy_client)

    def foreign(value: str) -> bool:
        return f"gma_external_other_adapter {value}" in client.get("/metrics")

    try:
        wait_until(lambda: foreign("0.0"), "it is known to be ours")
        spec = {"service": {"namespace": "keda", "name": "keda-metrics-apiserver"}}
        external.admin.patch(APISERVICE, {"spec": spec})
        wait_until(lambda: foreign("1.0"), "it is known to be KEDA's")
    finally:
        client.close()
    log = external.adapter.process.log.read_text()
    assert "requests external metrics from another Service" in log
