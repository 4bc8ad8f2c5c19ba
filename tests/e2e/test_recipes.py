"""Manifests of ``generate`` scale real workloads by the pages of their servers and gateways.

The recipes in docs/recipes show the same manifests: tests/docs compares them. Here, kube-apiserver
accepts each, and the HPA controller, or KEDA's operator, scales by it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from adapter.pipeline.catalog.serverkinds import KINDS
from adapter.pipeline.cluster.optin import PREFIX
from adapter.tools.generate.presets import PRESETS
from tests.adapter.commandline import invoke
from tests.e2e.adapterprocess import Adapter
from tests.e2e.apiservice import ensure_namespace
from tests.e2e.cluster import DEPLOYMENTS, HPAS, Object, RefusedError
from tests.e2e.keda import SCALED, Keda
from tests.e2e.process import free_port, wait_until
from tests.e2e.serverpages import GATEWAY, PAGES, Service, served
from tests.e2e.serverside import apply
from tests.e2e.stage import SCRAPE, Stage, deployment

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

GPU_LOADED = [name for name in PRESETS if PRESETS[name].metrics[0].name == "gpu_utilization"]
BY_GATEWAY = "recipe-gateway"
FROM_ZERO = "recipe-zero"
HPA_ZERO = "recipe-hpa-zero"


def generated(*arguments: str) -> Object:
    """Run the command as a user does, and parse what it prints."""
    ended = invoke("generate", *arguments)
    assert ended.code == 0, ended.output
    manifest: Object = yaml.safe_load(ended.output)
    return manifest


def _opted_in(made: Object, kind: str, gpus: bool) -> Object:
    server = KINDS[kind]
    template = made["spec"]["template"]
    words = {"scrape": "true", "port": str(server.port), "path": server.path}
    template["metadata"]["annotations"] = {f"{PREFIX}{key}": word for key, word in words.items()}
    if not gpus:
        template["spec"]["containers"][0].pop("resources")
    return made


def _picker(namespace: str) -> Object:
    made = _opted_in(deployment(namespace, 1), "endpoint-picker", gpus=False)
    labels = {"app": GATEWAY}
    made["metadata"] |= {"name": GATEWAY, "labels": labels}
    made["spec"]["selector"]["matchLabels"] = labels
    made["spec"]["template"]["metadata"]["labels"] = labels
    return made


def _service(namespace: str) -> Object:
    spec = {"selector": {"app": GATEWAY}, "ports": [{"port": 9002}]}
    meta = {"name": GATEWAY, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec}


@pytest.fixture(scope="module")
def services(running_stage: Stage) -> Iterator[dict[str, Service]]:
    """Every kind of server in its own namespace, each with an HPA of ``generate``."""
    stage, by_namespace = running_stage, {}
    for kind, page in PAGES.items():
        by_namespace[f"recipe-{kind}"] = Service(page, demand=60 if kind != "llamacpp" else 8)
    by_namespace["recipe-llamacpp"].room = 4
    by_namespace[BY_GATEWAY] = Service(PAGES["vllm"], demand=60, room=16, gateway=True)
    by_namespace[FROM_ZERO] = Service(PAGES["vllm"], room=16, gateway=True)
    by_namespace[HPA_ZERO] = Service(PAGES["vllm"], room=16, gateway=True)
    ports = {kind.port for kind in KINDS.values()}
    with served(stage, by_namespace, *ports):
        for namespace in [*by_namespace, "recipe-gpu"]:
            ensure_namespace(stage.admin, namespace)
        for kind in PRESETS:
            namespace = f"recipe-{kind}"
            made = deployment(namespace, 1)
            if kind in GPU_LOADED:
                stage.load.set(namespace, 180)
            if kind in PAGES:
                made = _opted_in(made, kind, gpus=kind in GPU_LOADED)
            stage.admin.create(made)
        stage.admin.create(_opted_in(deployment(BY_GATEWAY, 1), "vllm", gpus=False))
        stage.admin.create(_picker(BY_GATEWAY))
        stage.admin.create(_service(BY_GATEWAY))
        for kind in PRESETS:
            _autoscaler(stage, f"recipe-{kind}", "--for", kind)
        _autoscaler(stage, BY_GATEWAY, "--for", "vllm", "--gateway", GATEWAY)
        yield by_namespace
        for namespace in [*by_namespace, "recipe-gpu"]:
            stage.admin.delete(f"{HPAS.format(ns=namespace)}/inference")
            for name in ("inference", GATEWAY):
                stage.admin.delete(f"{DEPLOYMENTS.format(ns=namespace)}/{name}")


def _autoscaler(stage: Stage, namespace: str, *arguments: str) -> None:
    made = generated("hpa", "--workload", "inference", "-n", namespace, *arguments)
    apply(stage.admin, made, "")


def size(stage: Stage, namespace: str) -> int:
    path = f"{DEPLOYMENTS.format(ns=namespace)}/inference"
    return int(stage.admin.get(path)["spec"]["replicas"])


def wait_size(stage: Stage, namespace: str, wanted: int) -> None:
    def there() -> bool:
        running = sum(
            pod.namespace == namespace and ("app", "inference") in pod.labels
            for pod in stage.pods()
        )
        return running == wanted == size(stage, namespace)

    what = f"{namespace} has {wanted}; had {stage.sizes.get(namespace)}"
    wait_until(there, what, 120)


@pytest.mark.parametrize("kind", PRESETS)
def test_the_hpa_of_generate_scales_by_the_pages_of_the_servers(
    running_stage: Stage, services: dict[str, Service], kind: str
) -> None:
    """At first, one replica has more requests than it has room for, or a busy GPU."""
    namespace = f"recipe-{kind}"
    wait_size(running_stage, namespace, 3)
    running_stage.wait_active(namespace, "True")

    def room_for_all() -> bool:
        waiting = running_stage.values(namespace, "inference_requests_waiting")
        return list(waiting.values()) == ["0", "0", "0"]

    if kind in PAGES:
        wait_until(room_for_all, f"{namespace}: no request waits")
    assert size(running_stage, namespace) == 3


def test_the_queue_at_the_gateway_counts_as_an_object_metric(
    running_stage: Stage, services: dict[str, Service]
) -> None:
    """The servers' own queues are empty: the picker lets no more requests in than fit."""
    stage = running_stage
    wait_size(stage, BY_GATEWAY, 3)
    path = f"/apis/custom.metrics.k8s.io/v1beta2/namespaces/{BY_GATEWAY}/services/{GATEWAY}"
    (item,) = stage.admin.get(f"{path}/inference_gateway_requests_waiting")["items"]
    assert item["value"] == "12"
    services[BY_GATEWAY].demand = 30

    def empty() -> bool:
        try:
            (item,) = stage.admin.get(f"{path}/inference_gateway_requests_waiting")["items"]
        except RefusedError:  # once, when the last sample of the queue is too old
            return False
        return bool(item["value"] == "0")

    wait_until(empty, "the picker has removed the series of its queue, which reads as 0")
    assert size(stage, BY_GATEWAY) == 3, "kept for the ten minutes of the manifest"


def test_an_hpa_alone_stops_and_starts_a_workload_by_the_queue_at_the_gateway(
    running_stage: Stage, services: dict[str, Service]
) -> None:
    """Kubernetes has the feature gate HPAScaleToZero on by default from 1.37 on."""
    stage, service = running_stage, services[HPA_ZERO]
    stage.admin.create(_opted_in(deployment(HPA_ZERO, 1), "vllm", gpus=False))
    stage.admin.create(_picker(HPA_ZERO))
    stage.admin.create(_service(HPA_ZERO))
    made = generated(
        *("hpa", "--for", "vllm", "--workload", "inference", "-n", HPA_ZERO),
        *("--min", "0", "--gateway", GATEWAY),
    )
    # The manifest keeps replicas for ten minutes; a test does not.
    made["spec"]["behavior"]["scaleDown"] = {"stabilizationWindowSeconds": 1}
    apply(stage.admin, made, "")
    wait_size(stage, HPA_ZERO, 0)
    text = explained(stage, HPA_ZERO)
    assert "never wakes" not in text
    assert "paused" not in text
    service.demand = 60
    wait_size(stage, HPA_ZERO, 3)
    service.demand = 0
    wait_size(stage, HPA_ZERO, 0)


def explained(stage: Stage, namespace: str) -> str:
    """What `explain` says of the HPA."""
    where = ("--kubeconfig", str(stage.plane.kubeconfig), "-n", namespace)
    ended = invoke("explain", "hpa", "inference", *where)
    assert ended.code in (0, 1), ended.output
    return ended.output


def _dry_runs() -> Iterator[tuple[str, ...]]:
    for kind in PRESETS:
        yield ("hpa", "--for", kind, "--gateway", GATEWAY, "--min", "2")
        yield ("scaledobject", "--for", kind)
        yield ("scaledobject", "--for", kind, "--min", "0", "--gateway", f"app={GATEWAY}")


def _started(stage: Stage, namespace: str, more: dict[str, Any], address: str) -> None:
    made = generated(
        *("scaledobject", "--for", "vllm", "--workload", "inference", "-n", namespace),
        *("--min", "0", "--gateway", f"app={GATEWAY}", "--scaler-address", address),
    )
    made["spec"] |= more
    apply(stage.admin, made, "")


def test_keda_starts_a_workload_by_the_queue_at_the_gateway_and_stops_it(
    running_stage: Stage, services: dict[str, Service]
) -> None:
    """With KEDA's own definitions, kube-apiserver also accepts every other manifest."""
    stage, service, port = running_stage, services[FROM_ZERO], free_port()
    listener = {"enabled": True, "host": "127.0.0.1", "port": port, "push_interval": "1s"}
    scaler = Adapter(stage.folder, "recipes", stage.kubeconfig(), SCRAPE, keda=listener)
    with Keda(stage.folder, stage.plane):
        for arguments in _dry_runs():
            apply(stage.admin, generated(*arguments, "--workload", "llm", "-n", FROM_ZERO))
        scaler.start()
        try:
            stage.admin.create(_opted_in(deployment(FROM_ZERO, 0), "vllm", gpus=False))
            stage.admin.create(_picker(FROM_ZERO))
            _started(stage, FROM_ZERO, {"cooldownPeriod": 3}, f"localhost:{port}")
            path = f"{SCALED.format(ns=FROM_ZERO)}/inference"
            stage.admin.wait(path, lambda row: "status" in row, "KEDA knows the ScaledObject")
            assert size(stage, FROM_ZERO) == 0
            service.demand = 60
            wait_size(stage, FROM_ZERO, 3)
            service.demand = 0
            # The manifest keeps replicas for ten minutes; a test does not.
            behavior = {"scaleDown": {"stabilizationWindowSeconds": 1, "policies": []}}
            config = {"horizontalPodAutoscalerConfig": {"behavior": behavior}}
            stage.admin.patch(path, {"spec": {"advanced": config}})
            wait_size(stage, FROM_ZERO, 0)
        finally:
            stage.admin.delete(f"{SCALED.format(ns=FROM_ZERO)}/inference")
            scaler.stop()
