"""The series that rule files found in public select, beside those of the other rule files."""

from __future__ import annotations

from collections.abc import Iterator

PODS = ("web-0", "web-1", "job-0", "gone-0")


def public_page(seconds: float, spaces: tuple[str, ...]) -> str:
    """Return the page; counters grow with the time."""
    lines = list(_cluster(seconds))
    for number, space in enumerate(spaces):
        ingress = f'namespace="{space}",ingress="web"'
        lines += [
            f'vllm:num_requests_waiting{{namespace="{space}",model="m"}} {number + 3}',
            f'vllm:num_incoming_requests_total{{namespace="{space}",model="m"}} {number + 40}',
            f'sidekiq_queue_backlog{{job="govuk-chat-worker",namespace="{space}"}} {number + 9}',
            f'kube_adapter_metric_queue{{namespace="{space}",queue="a"}} {number + 2}',
            f"ingress_nginx_detail_requests_total{{{ingress}}} {seconds * (number + 2)}",
        ]
        for index, pod in enumerate(PODS):
            lines += _pod(space, pod, seconds, 10 * number + index + 1)
    return "\n".join(lines) + "\n"


def _pod(space: str, pod: str, seconds: float, size: int) -> Iterator[str]:
    at = f'namespace="{space}",pod="{pod}"'
    old = f'kubernetes_namespace="{space}",kubernetes_pod_name="{pod}"'
    inside = f'{at},container="agent",container_name="agent",node="node-a"'
    yield f"container_cpu_usage_seconds_total{{{inside}}} {seconds * size / 7}"
    yield f"container_memory_working_set_bytes{{{inside}}} {size * 4096.0}"
    if pod != "job-0":
        memory = f"container_memory_working_set_bytes:without_kmem{{{inside}}}"
        yield f"{memory} {size * 2048.5}"
    yield f'container_start_time_seconds{{{at},container="agent"}} {size * 1000}'
    yield f"istio_requests_total{{{old}}} {seconds * size}"
    heap = f'{old},kubernetes_name="hazelcast",area="heap"'
    yield f"jvm_memory_bytes_used{{{heap}}} {size * 100}"
    yield f"jvm_memory_bytes_max{{{heap}}} {size * 100 + 500}"
    if pod == "web-0":
        gauge = f'{{instance="node-a",{at},service="web"}} {size}'
        yield f"collectd_kmb_vpu_gauge{gauge}"
        yield f"collectd_kmb_codec_gauge{gauge}"


def _cluster(seconds: float) -> Iterator[str]:
    queue = 'namespace="default",pod="web-0"'
    yield f"nv_inference_queue_duration_us{{{queue}}} {seconds * 70}"
    yield f"nv_inference_request_success{{{queue}}} {seconds * 2}"
    logs = 'monitored_resource="k8s_cluster",cluster_name="blue"'
    yield f"logging_googleapis_com:byte_count{{{logs}}} {seconds * 900}"
    exporter = 'namespace="monitoring",pod="node-exporter-a",node="node-a"'
    for cpu in "01":
        idle = f'{{mode="idle",cpu="{cpu}",{exporter}}}'
        yield f"node_cpu_seconds_total{idle} {seconds * 0.4}"
    yield f"node_namespace_pod:kube_pod_info:{{{exporter}}} 1"
    machine = 'job="node-exporter",instance="node-a"'
    yield f"node_memory_MemTotal_bytes{{{machine}}} {1 << 34}"
    yield f"node_memory_MemAvailable_bytes{{{machine}}} {1 << 33}"
    yield f'node_memory_working_set_bytes{{{exporter},container="x"}} {3 << 30}'
    yield f'node_cpu_usage_seconds_total{{{exporter},container="x"}} {seconds}'
    for name, value in (("cpu_usage_seconds_total", seconds), ("memory_working_set_bytes", 5e9)):
        yield f'container_{name}{{id="/",node="node-a"}} {value}'
