"""Inference servers and gateways of the stage: the page of each pod, at the pod's own address.

The pods of a workload share its requests. Each works on as many as it has room for, and the rest
waits: in the servers' queues, or at the gateway if there is one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from tests.e2e.kubelet import RunningPod
from tests.e2e.pagestand import PageHandler, answering
from tests.e2e.stage import Stage

ROOM: Final = 32
"""Requests that a server works on at a time."""
GATEWAY: Final = "llm-epp"
"""The label ``app`` of a gateway's pods."""


def _vllm(running: int, waiting: int) -> str:
    labels = '{engine="0",model_name="m"}'
    return (
        f"vllm:num_requests_running{labels} {running}.0\n"
        f"vllm:num_requests_waiting{labels} {waiting}.0\n"
        f"vllm:kv_cache_usage_perc{labels} 0.25\n"
    )


def _triton(_: int, waiting: int) -> str:
    return f'nv_inference_pending_request_count{{model="m",version="1"}} {waiting}\n'


def _tgi(running: int, waiting: int) -> str:
    return f"tgi_batch_current_size {running}\ntgi_queue_size {waiting}\n"


def _sglang(running: int, waiting: int) -> str:
    labels = '{engine_type="unified",model_name="m",pp_rank="0",tp_rank="0"}'
    return (
        f"sglang:num_running_reqs{labels} {running}.0\nsglang:num_queue_reqs{labels} {waiting}.0\n"
    )


def _tei(_: int, waiting: int) -> str:
    return f'te_request_count{{method="single"}} 9\nte_queue_size {waiting}\n'


def _llamacpp(running: int, waiting: int) -> str:
    return f"llamacpp:requests_processing {running}\nllamacpp:requests_deferred {waiting}\n"


def _nim(running: int, waiting: int) -> str:
    labels = '{model_name="meta/m"}'
    return f"num_requests_running{labels} {running}.0\nnum_requests_waiting{labels} {waiting}.0\n"


def _dynamo(running: int, waiting: int) -> str:
    own = 'dynamo_component_inflight_requests{dynamo_endpoint="generate"}'
    return _vllm(running, waiting) + f"{own} {running + waiting}\n"


def _triton_vllm(running: int, waiting: int) -> str:
    labels = '{model="m",version="1"}'
    return (
        f"{_triton(0, 0)}vllm:num_requests_running{labels} {running}\n"
        f"vllm:num_requests_waiting{labels} {waiting}\n"
    )


def _triton_trtllm(running: int, waiting: int) -> str:
    series = 'nv_trt_llm_request_metrics{model="m",version="1",request_type='
    return f'{_triton(0, 0)}{series}"scheduled"}} {running}\n{series}"waiting"}} {waiting}\n'


def _two(running: str, waiting: str, labels: str = "") -> Callable[[int, int], str]:
    """Return the page of a server that writes two gauges."""
    return lambda busy, queued: f"{running}{labels} {busy}.0\n{waiting}{labels} {queued}.0\n"


PAGES: Final[dict[str, Callable[[int, int], str]]] = {
    "vllm": _vllm,
    "triton": _triton,
    "tgi": _tgi,
    "sglang": _sglang,
    "tei": _tei,
    "llamacpp": _llamacpp,
    "nim": _nim,
    "dynamo": _dynamo,
    "llm-d": _vllm,
    "triton-vllm": _triton_vllm,
    "triton-trtllm": _triton_trtllm,
    "tensorrt-llm": _two(
        "trtllm_num_requests_running",
        "trtllm_num_requests_waiting",
        '{engine_type="pytorch",model_name="m"}',
    ),
    "vllm-omni": _two(
        "vllm_omni:num_requests_running", "vllm_omni:num_requests_waiting", '{model_name="m"}'
    ),
    "lmdeploy": _two(
        "lmdeploy:num_requests_running",
        "lmdeploy:num_requests_waiting",
        '{engine="0",model_name="m"}',
    ),
    "fastdeploy": _two("fastdeploy:num_requests_running", "fastdeploy:num_requests_waiting"),
    "lightllm": _two("lightllm_batch_current_size", "lightllm_queue_size"),
    "max": _two("maxserve_num_requests_running", "maxserve_num_requests_queued"),
}
"""Kind of server -> its page, from the requests that it works on and those that wait."""


def picker(running: int, waiting: int) -> str:
    """Return the page of llm-d's endpoint picker, which writes no queue while it is empty."""
    flow = 'fairness_id="default",priority="0",inference_pool="m",model_name="m"'
    page = 'llm_d_epp_flow_control_pool_saturation{inference_pool="m",stage="effective"} 1\n'
    page += f'llm_d_epp_request_running{{model_name="m",target_model_name="m"}} {running}\n'
    return page + (f"llm_d_epp_flow_control_queue_size{{{flow}}} {waiting}\n" if waiting else "")


@dataclass
class Service:
    """The requests of one namespace.

    Args:
        page: of its servers.
        demand: requests of all clients.
        room: requests that a server works on.
    """

    page: Callable[[int, int], str]
    demand: int = 0
    room: int = ROOM
    gateway: bool = False
    """Whether requests wait at a gateway, and not in the servers."""

    def page_of(self, pod: RunningPod, pods: list[RunningPod]) -> str:
        """Return the page of a pod now."""
        servers = sum(("app", GATEWAY) not in candidate.labels for candidate in pods)
        room = servers * self.room
        running, waiting = min(self.demand, room), max(self.demand - room, 0)
        if ("app", GATEWAY) in pod.labels:
            return picker(running, waiting)
        here = 0 if self.gateway else waiting
        return self.page(running // servers, -(-here // servers))


@contextlib.contextmanager
def served(stage: Stage, services: dict[str, Service], *ports: int) -> Iterator[None]:
    """Serve the pages of all opted-in pods of the stage.

    Args:
        stage: whose pods they are.
        services: namespace -> its service.
        ports: the ports of the pages.
    """

    class Page(PageHandler):
        def page(self) -> tuple[int, bytes]:
            pod = stage.kubelet.pod_at(self.connection.getsockname()[0])
            service = services.get(pod.namespace) if pod else None
            if pod is None or service is None:
                return 404, b""
            mine = [candidate for candidate in stage.pods() if candidate.namespace == pod.namespace]
            return 200, service.page_of(pod, mine).encode()

    with contextlib.ExitStack() as stack:
        for port in ports:
            stack.enter_context(answering("0.0.0.0", port, Page))
        yield
