"""What a Prometheus of a cluster scrapes beside the adapter: an exporter, kube-state-metrics."""

from __future__ import annotations

from collections.abc import Iterator

FIELDS = {
    "DCGM_FI_DEV_SM_CLOCK": 1410,
    "DCGM_FI_DEV_GPU_TEMP": 51,
    "DCGM_FI_DEV_POWER_USAGE": 212.5,
    "DCGM_FI_DEV_GPU_UTIL": 80,
    "DCGM_FI_DEV_FB_FREE": 20000,
    "DCGM_FI_DEV_FB_USED": 20480,
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": 0.8,
    "DCGM_FI_PROF_SM_ACTIVE": 0.6,
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": 0.4,
    "DCGM_FI_PROF_DRAM_ACTIVE": 0.5,
}


def exporter(node: str, pods: tuple[str, ...]) -> str:
    """A page of dcgm-exporter: each pod holds a GPU, and one more is nobody's."""
    lines = []
    for name, value in FIELDS.items():
        lines.append(f"# TYPE {name} gauge")
        for gpu, pod in enumerate((*pods, "")):
            holder = f'container="main",namespace="ml",pod="{pod}"' if pod else ""
            lines.append(
                f'{name}{{gpu="{gpu}",UUID="GPU-{node}-{gpu}",device="nvidia{gpu}",'
                f'modelName="NVIDIA A100-SXM4-40GB",Hostname="{node}",{holder}}} {value}'
            )
    return "\n".join(lines) + "\n"


def kube_state_metrics() -> str:
    """Its page, named and labelled as its documentation has it; the last row is the API
    server's own."""
    return "".join(_rows())


def _rows() -> Iterator[str]:
    for namespace, name, most, there, wished in (("ml", "llm", 8, 2, 3), ("web", "shop", 3, 1, 1)):
        about = {"namespace": namespace, "horizontalpodautoscaler": name}
        target = {"scaletargetref_kind": "Deployment", "scaletargetref_name": name}
        yield _hpa("info", 1, **about, **target)
        yield _hpa("spec_max_replicas", most, **about)
        yield _hpa("status_current_replicas", there, **about)
        yield _hpa("status_desired_replicas", wished, **about)
        for condition in ("AbleToScale", "ScalingActive"):
            yield _hpa("status_condition", 0, **about, condition=condition, status="false")
            yield _hpa("status_condition", 1, **about, condition=condition, status="true")
        metric = "gpu_utilization" if name == "llm" else "cpu"
        of = {**about, "metric_name": metric, "metric_target_type": "average"}
        yield _hpa("spec_target_metric", 70, **of)
        yield _hpa("status_target_metric", 80, **of)
    for namespace, pod, resource in (
        ("ml", "llm-7d9f8b6c5d-a", "nvidia_com_gpu"),
        ("ml", "llm-7d9f8b6c5d-b", "nvidia_com_gpu"),
        ("web", "shop-1", "cpu"),
    ):
        yield _row(
            "kube_pod_container_resource_requests",
            1,
            namespace=namespace,
            pod=pod,
            container="main",
            resource=resource,
            unit="integer",
        )
    yield _row(
        "kube_deployment_status_replicas_ready",
        2,
        namespace="gpu-metrics",
        deployment="gpu-metrics-adapter",
    )
    yield _row("aggregator_unavailable_apiservice", 0, name="v1beta2.custom.metrics.k8s.io")


def _hpa(name: str, value: float, **labels: str) -> str:
    return _row(f"kube_horizontalpodautoscaler_{name}", value, **labels)


def _row(name: str, value: float, /, **labels: str) -> str:
    shown = ",".join(f'{key}="{text}"' for key, text in labels.items())
    return f"{name}{{{shown}}} {value}\n"
