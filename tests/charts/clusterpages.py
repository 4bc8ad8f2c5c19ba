"""What a Prometheus of a cluster scrapes beside the adapter: an exporter, kube-state-metrics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

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

SERVERS: dict[str, dict[str, float]] = {
    "llm-7d9f8b6c5d-a": {
        "vllm:num_requests_waiting": 12,
        "vllm:num_requests_running": 30,
        "vllm:kv_cache_usage_perc": 0.7,
    },
    "llm-sglang": {
        "sglang:num_queue_reqs": 3,
        "sglang:num_running_reqs": 8,
        "sglang:token_usage": 0.4,
    },
    "llm-tgi": {"tgi_queue_size": 2, "tgi_batch_current_size": 6},
    "llm-triton": {"nv_inference_pending_request_count": 1},
}
"""Pod -> what its inference server shows, the waiting requests first."""


def exporter(node: str, pods: tuple[str, ...], load: float = 1.0) -> str:
    """A page of dcgm-exporter: each pod holds a GPU, and one more is nobody's.

    Args:
        load: of the usual values.
    """
    lines = []
    for name, usual in FIELDS.items():
        value = round(usual * load, 3)
        lines.append(f"# TYPE {name} gauge")
        for gpu, pod in enumerate((*pods, "")):
            holder = f'container="main",namespace="ml",pod="{pod}"' if pod else ""
            lines.append(
                f'{name}{{gpu="{gpu}",UUID="GPU-{node}-{gpu}",device="nvidia{gpu}",'
                f'modelName="NVIDIA A100-SXM4-40GB",Hostname="{node}",{holder}}} {value}'
            )
    return "\n".join(lines) + "\n"


def others(
    servers: Mapping[str, Mapping[str, float]] = SERVERS, answered: int = 0, slow: int = 0
) -> str:
    """MIG instances, exporters of other devices and pages of inference servers.

    Args:
        answered: requests that each server has answered since its start.
        slow: those of them that took longer than 0.25 s.
    """
    mig = {"gpu": "7", "UUID": "GPU-mig", "GPU_I_PROFILE": "1g.5gb", "GPU_I_ID": "3"}
    amd = {"hostname": "gpu-c", "gpu_id": "0", "card_vendor": "AMD"}
    intel = {"pci_bdf": "0000:17:00.0", "uuid": "0"}
    rows = [
        _row("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 0.5, Hostname="gpu-a", **mig),
        _row("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 0.4, Hostname="gpu-a", **mig),
        _row("DCGM_FI_DEV_FB_USED", 3000, Hostname="gpu-a", **mig),
        _row("gpu_gfx_activity", 60, **amd),
        _row("gpu_used_vram", 90000, **amd),
        _row("gpu_package_power", 400, **amd),
        _row("xpum_engine_ratio", 0.3, **intel, type="compute"),
        _row("xpum_memory_used_bytes", 8e9, **intel),
        _row("xpum_power_watts", 90, **intel),
        # The nodes here have no label of an instance type.
        _row("node_gpu_hourly_cost", 4, node="gpu-a"),
    ]
    for pod, names in servers.items():
        rows += [_row(name, value, namespace="ml", pod=pod) for name, value in names.items()]
        if "vllm:num_requests_waiting" in names:
            rows += _counted(pod, "vllm:", answered, slow)
    return "".join(rows)


def _counted(pod: str, prefix: str, answered: int, slow: int) -> Iterator[str]:
    """What vLLM counts: each request takes more than 0.1 s, and has 100 tokens."""
    counts = {"0.1": 0, "0.25": answered - slow, "1": answered, "+Inf": answered}
    of = {"namespace": "ml", "pod": pod}
    for name in ("time_to_first_token_seconds", "inter_token_latency_seconds"):
        for bound, count in counts.items():
            yield _row(f"{prefix}{name}_bucket", count, **of, le=bound)
    yield _row(f"{prefix}generation_tokens_total", 100 * answered, **of)


class Scaled(NamedTuple):
    """An HPA, and what it does."""

    namespace: str
    name: str
    most: int
    there: int
    wished: int
    value: float = 80


SCALED = (Scaled("ml", "llm", 8, 2, 3), Scaled("web", "shop", 3, 1, 1))
WAITING = {"llm-7d9f8b6c5d-a": False, "llm-7d9f8b6c5d-b": True}
"""Pod with a GPU -> whether it is not scheduled."""


def kube_state_metrics(
    hpas: Iterable[Scaled] = SCALED, waiting: Mapping[str, bool] = WAITING
) -> str:
    """Its page, named and labelled as its documentation has it; the last row is the API
    server's own."""
    return "".join(_rows(hpas, waiting))


def _rows(hpas: Iterable[Scaled], waiting: Mapping[str, bool]) -> Iterator[str]:
    for namespace, name, most, current, wished, value in hpas:
        about = {"namespace": namespace, "horizontalpodautoscaler": name}
        target = {"scaletargetref_kind": "Deployment", "scaletargetref_name": name}
        yield _hpa("info", 1, **about, **target)
        yield _hpa("spec_min_replicas", 1, **about)
        yield _hpa("spec_max_replicas", most, **about)
        yield _hpa("status_current_replicas", current, **about)
        yield _hpa("status_desired_replicas", wished, **about)
        for condition in ("AbleToScale", "ScalingActive"):
            yield _hpa("status_condition", 0, **about, condition=condition, status="false")
            yield _hpa("status_condition", 1, **about, condition=condition, status="true")
        metrics = {"cpu" if namespace == "web" else "gpu_utilization": (70.0, value)}
        if name == "llm":
            metrics["inference_slo_ratio"] = (0.8, value / 100)
        for metric, (wanted, measured) in metrics.items():
            of = {**about, "metric_name": metric, "metric_target_type": "average"}
            yield _hpa("spec_target_metric", wanted, **of)
            yield _hpa("status_target_metric", measured, **of)
    for namespace, pod, resource in (
        *(("ml", pod, "nvidia_com_gpu") for pod in waiting),
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
            "kube_pod_status_scheduled",
            float(waiting.get(pod, False)),
            namespace=namespace,
            pod=pod,
            condition="false",
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
