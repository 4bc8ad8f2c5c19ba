"""KEDA's own operator scales on what the adapter answers: out, in, to zero and back.

The door of every workload here is another Deployment, ``gateway``: at zero replicas a workload
has no GPU that could be busy, so that something else must say that there is work.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from tests.e2e.adapterprocess import Adapter
from tests.e2e.apiservice import ensure_namespace
from tests.e2e.cluster import DEPLOYMENTS, HPAS, Object, RefusedError, condition
from tests.e2e.exporter import Health
from tests.e2e.keda import SCALED, Keda, scaled_object, trigger
from tests.e2e.migration import keda_triggers
from tests.e2e.process import free_port, wait_until
from tests.e2e.prometheus import Prometheus
from tests.e2e.stage import SCRAPE, Stage, deployment

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

ASKED = 'gma_keda_calls_total{code="OK",method="IsActive"}'
STREAMS = 'gma_keda_streams{method="StreamIsActive"}'


class Scaler(NamedTuple):
    """An adapter that KEDA asks, beside the stage's own, so that it can be stopped alone."""

    adapter: Adapter
    address: str
    keda: Keda


@pytest.fixture(scope="module")
def scaler(running_stage: Stage) -> Iterator[Scaler]:
    """KEDA and the adapter that it asks."""
    port = free_port()
    listener = {"enabled": True, "host": "127.0.0.1", "port": port, "scaled_objects": True}
    with Keda(running_stage.folder, running_stage.plane) as keda:
        config = running_stage.kubeconfig()
        adapter = Adapter(running_stage.folder, "scaler", config, SCRAPE, keda=listener)
        adapter.start()
        try:
            yield Scaler(adapter, f"localhost:{port}", keda)
        finally:
            adapter.stop()


@pytest.fixture
def made(stage: Stage, scaler: Scaler) -> Iterator[Callable[..., None]]:
    """Makes a workload with its ScaledObject; both are deleted after the test."""
    spaces: list[str] = []

    def make(namespace: str, replicas: int, triggers: list[Object], **more: Any) -> None:
        spaces.append(namespace)
        ensure_namespace(stage.admin, namespace)
        stage.admin.create(deployment(namespace, replicas))
        stage.admin.create(scaled_object(namespace, triggers, **more))

    yield make
    for namespace in spaces:
        stage.admin.delete(f"{SCALED.format(ns=namespace)}/inference")
        wait_forgotten(stage, namespace)
        for name in ("inference", "gateway"):
            stage.admin.delete(f"{DEPLOYMENTS.format(ns=namespace)}/{name}")


def gateway(stage: Stage, scaler: Scaler, namespace: str) -> None:
    """The workload's door: one pod with a GPU, which is known to be idle."""
    stage.load.pin(namespace, "gateway", 0)
    ensure_namespace(stage.admin, namespace)
    door = deployment(namespace, 1)
    labels = {"app": "gateway"}
    door["metadata"] |= {"name": "gateway", "labels": labels}
    door["spec"]["selector"]["matchLabels"] = labels
    door["spec"]["template"]["metadata"]["labels"] = labels
    stage.admin.create(door)
    path = f"/apis/custom.metrics.k8s.io/v1beta2/namespaces/{namespace}/pods/*/gpu_utilization"
    client = scaler.adapter.client(stage.plane.proxy_client)
    try:
        # KEDA's first poll comes at once, and the next may be five minutes later.
        wait_until(lambda: client.get(path)["items"], "the gateway has a value")
    finally:
        client.close()


def busy(address: str, **more: str) -> Object:
    """Keeps the workload's own GPUs at 70 percent."""
    metadata = {"metric": "gpu_utilization", "target": "70", "podSelector": "app=inference"}
    return trigger(address, **{**metadata, **more})


def called(address: str, kind: str = "external") -> Object:
    """Starts the workload when its door is busy; never asks for more than one replica."""
    return trigger(
        address,
        kind=kind,
        metric="gpu_utilization",
        podSelector="app=gateway",
        aggregate="max",
        target="1000",
        activation="20",
    )


def wait_size(stage: Stage, namespace: str, size: int, seconds: float = 60) -> None:
    path = f"{DEPLOYMENTS.format(ns=namespace)}/inference"

    def there() -> bool:
        pods = [pod for pod in stage.pods() if ("app", "inference") in pod.labels]
        running = sum(pod.namespace == namespace for pod in pods)
        return bool(running == size == stage.admin.get(path)["spec"]["replicas"])

    wait_until(there, f"{namespace} has {size}; had {stage.sizes.get(namespace)}", seconds)


def wait_condition(stage: Stage, namespace: str, kind: str, status: str) -> Object:
    path = f"{SCALED.format(ns=namespace)}/inference"
    return stage.admin.wait(
        path, lambda obj: condition(obj, kind)[0] == status, f"{namespace}: {kind} is {status}"
    )


def wait_forgotten(stage: Stage, namespace: str) -> None:
    """Wait until KEDA has let go of the ScaledObject, and so asks about it no more."""

    def gone() -> bool:
        try:
            stage.admin.get(f"{SCALED.format(ns=namespace)}/inference")
        except RefusedError as error:
            return error.code == 404
        return False

    wait_until(gone, f"{namespace}: the ScaledObject is gone")


def own_metric(stage: Stage, scaler: Scaler, series: str) -> float:
    """One of the adapter's own metrics; 0 while it has no such series."""
    client = scaler.adapter.client(stage.plane.proxy_client)
    try:
        lines = client.get("/metrics").splitlines()
    finally:
        client.close()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(f"{series} "))


def test_external_scales_out_in_to_zero_and_back(
    stage: Stage, scaler: Scaler, made: Callable[..., None]
) -> None:
    """280 percent of work settle at four pods of 70 each, as with the Pods metric."""
    gateway(stage, scaler, "keda-out")
    made("keda-out", 0, [busy(scaler.address), called(scaler.address)])
    wait_condition(stage, "keda-out", "Ready", "True")
    wait_condition(stage, "keda-out", "Active", "False")
    stage.load.set("keda-out", 280)
    stage.load.pin("keda-out", "gateway", 90)
    wait_size(stage, "keda-out", 4)
    stage.load.set("keda-out", 60)
    wait_size(stage, "keda-out", 1)
    stage.load.set("keda-out", 0)
    stage.load.pin("keda-out", "gateway", 0)
    wait_size(stage, "keda-out", 0)
    stage.load.set("keda-out", 140)
    stage.load.pin("keda-out", "gateway", 90)
    wait_size(stage, "keda-out", 2)


def test_a_mean_scales_a_value_to_the_same_size(
    stage: Stage, scaler: Scaler, made: Callable[..., None]
) -> None:
    """``metricType: Value`` with ``aggregate: mean``; the pods are those of the target."""
    stage.load.set("keda-value", 210)
    mean = busy(scaler.address, aggregate="mean")
    del mean["metadata"]["podSelector"]
    made("keda-value", 1, [mean | {"metricType": "Value"}], low=1)
    wait_size(stage, "keda-value", 3)


def test_push_starts_a_workload_between_polls(
    stage: Stage, scaler: Scaler, made: Callable[..., None]
) -> None:
    """With five minutes between polls, only the stream can say in time that there is work."""
    gateway(stage, scaler, "keda-push")
    pushed = [busy(scaler.address), called(scaler.address, "external-push")]
    before = own_metric(stage, scaler, ASKED)
    made("keda-push", 0, pushed, pollingInterval=300)
    wait_condition(stage, "keda-push", "Ready", "True")
    # Not by the ScaledObject's status: the first poll may read it from before the metrics were
    # named in it, and then says of no trigger whether it is active, until the next poll.
    wait_until(
        lambda: own_metric(stage, scaler, ASKED) >= before + len(pushed), "every trigger was polled"
    )
    wait_until(lambda: own_metric(stage, scaler, STREAMS) == 1, "the stream is open")
    stage.load.set("keda-push", 140)
    stage.load.pin("keda-push", "gateway", 90)
    wait_size(stage, "keda-push", 2)
    stage.load.set("keda-push", 0)
    stage.load.pin("keda-push", "gateway", 0)
    wait_size(stage, "keda-push", 1)
    # Only polls deactivate.
    path = f"{SCALED.format(ns='keda-push')}/inference"
    stage.admin.patch(path, {"spec": {"pollingInterval": 1}})
    wait_size(stage, "keda-push", 0)


def test_a_reopened_stream_still_starts_a_workload(
    stage: Stage, scaler: Scaler, made: Callable[..., None]
) -> None:
    """The adapter is killed; nothing but the stream could say in time that there is work."""
    gateway(stage, scaler, "keda-cut")
    pushed = [busy(scaler.address), called(scaler.address, "external-push")]
    before = own_metric(stage, scaler, ASKED)
    made("keda-cut", 0, pushed, pollingInterval=300)
    wait_condition(stage, "keda-cut", "Ready", "True")
    wait_until(
        lambda: own_metric(stage, scaler, ASKED) >= before + len(pushed), "every trigger was polled"
    )
    wait_until(lambda: own_metric(stage, scaler, STREAMS) == 1, "the stream is open")
    scaler.adapter.stop(signal.SIGKILL)
    scaler.adapter.start()
    wait_until(lambda: own_metric(stage, scaler, STREAMS) == 1, "the stream is open again", 120)
    stage.load.set("keda-cut", 140)
    stage.load.pin("keda-cut", "gateway", 90)
    wait_size(stage, "keda-cut", 2)


def test_the_fallback_applies_while_readings_are_missing(
    stage: Stage, scaler: Scaler, made: Callable[..., None]
) -> None:
    stage.load.set("keda-fallback", 120)
    fallback = {"failureThreshold": 2, "replicas": 5}
    made("keda-fallback", 1, [busy(scaler.address)], low=1, fallback=fallback)
    wait_size(stage, "keda-fallback", 2)
    try:
        for exporter in stage.exporters.values():
            exporter.health = Health.SENTINEL
        wait_size(stage, "keda-fallback", 5)
        wait_condition(stage, "keda-fallback", "Fallback", "True")
        rows = stage.admin.get("/api/v1/namespaces/keda-fallback/events")["items"]
        texts = [row.get("message", "") for row in rows if row["reason"] == "KEDAScalerFailed"]
        assert any("pods have no value: inference-" in text for text in texts), texts
    finally:
        for exporter in stage.exporters.values():
            exporter.health = Health.WELL
    wait_size(stage, "keda-fallback", 2)
    wait_condition(stage, "keda-fallback", "Fallback", "False")


def test_replicas_do_not_change_while_the_adapter_is_stopped(
    stage: Stage, scaler: Scaler, made: Callable[..., None]
) -> None:
    """No fallback comes while GetMetricSpec fails too (kedacore/keda#8056): nothing moves."""
    stage.load.set("keda-stop", 210)
    fallback = {"failureThreshold": 2, "replicas": 5}
    made("keda-stop", 1, [busy(scaler.address)], low=1, fallback=fallback)
    wait_size(stage, "keda-stop", 3)
    assert scaler.adapter.stop() == 0
    try:
        stage.load.set("keda-stop", 10)
        stage.wait_active(
            "keda-stop", "False", "FailedGetExternalMetric", name="keda-hpa-inference"
        )
        stage.wait_failures("keda-stop", 3, reason="FailedGetExternalMetric")
        assert stage.sizes["keda-stop"][-1] == 3
    finally:
        scaler.adapter.start()
    wait_size(stage, "keda-stop", 1)


def test_an_invalid_trigger_is_reported_on_its_scaled_object(
    stage: Stage, scaler: Scaler, made: Callable[..., None]
) -> None:
    """Nothing is scaled on it; KEDA logs our words and marks the ScaledObject."""
    made("keda-wrong", 1, [busy(scaler.address, target="lots")], low=1)
    wait_condition(stage, "keda-wrong", "Ready", "False")
    wait_until(
        lambda: "target: 'lots' is not a number" in scaler.keda.operator.log.read_text(),
        "the operator's log names the key",
    )
    assert stage.sizes["keda-wrong"] == [1]


def test_migration_from_a_prometheus_trigger_keeps_the_replicas(
    stage: Stage, scaler: Scaler, made: Callable[..., None]
) -> None:
    """The page on migration: the HPA gets the same value before and after."""
    stage.load.pin("keda-moves", "inference", 63)
    ports = {node: exporter.port for node, exporter in stage.exporters.items()}
    store = Prometheus(stage.folder, "keda-moves", ports, honor_labels=False)
    before, after = keda_triggers("keda-moves", store.url, scaler.address)
    path = f"{SCALED.format(ns='keda-moves')}/inference"
    store.start()
    try:
        # Not fewer until the store has a row of every pod: it would make a sum of some.
        made("keda-moves", 3, [before], low=3)
        wait_for_average(stage, "keda-moves", "s0-prometheus", "63")
        stage.admin.patch(path, {"spec": {"minReplicaCount": 1, "triggers": [after]}})
        wait_for_average(stage, "keda-moves", "s0-gpu_utilization", "63")
    finally:
        store.stop()
    assert stage.sizes["keda-moves"] == [3]


def wait_for_average(stage: Stage, namespace: str, metric: str, average: str) -> None:
    """Wait until KEDA's HPA reads this value per replica."""

    def reads(hpa: Object) -> bool:
        rows = hpa.get("status", {}).get("currentMetrics") or ()
        return any(
            row.get("external", {}).get("metric", {}).get("name") == metric
            and row["external"]["current"].get("averageValue") == average
            for row in rows
        )

    path = f"{HPAS.format(ns=namespace)}/keda-hpa-inference"
    wait_until(lambda: _exists(stage, path), f"{namespace} has an HPA")
    stage.admin.wait(path, reads, f"{metric} of {namespace} is {average}")


def _exists(stage: Stage, path: str) -> bool:
    try:
        return bool(stage.admin.get(path))
    except RefusedError:
        return False
