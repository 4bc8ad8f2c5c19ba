"""The kinds of inference servers: how to recognize one by its image, and where its page is.

Ports and paths are the defaults of the programs: the addresses of :mod:`.servers` and
:mod:`.gateways`, Dynamo's operator (``DYN_SYSTEM_PORT`` 9090) and the images of the programs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

WAITING: Final = "inference_requests_waiting"
GATEWAY_WAITING: Final = "inference_gateway_requests_waiting"


@dataclass(frozen=True, slots=True)
class ServerKind:
    """A program that serves a page about its requests.

    Args:
        title: the program's name in texts.
        image: pattern of the image, without its tag, and with the repository before it.
        port: the default port of the page.
        path: the default path of the page.
        queue: the metric of its queue.
    """

    title: str
    image: re.Pattern[str]
    port: int
    path: str = "/metrics"
    queue: str = WAITING


def _named(names: str) -> re.Pattern[str]:
    return re.compile(rf"(?:^|/)(?:{names})[^/]*$")


KINDS: Final[dict[str, ServerKind]] = {
    "dynamo": ServerKind(
        "NVIDIA Dynamo", re.compile(r"(?:^|/)ai-dynamo/(?:vllm|sglang|tensorrtllm)-runtime$"), 9090
    ),
    "dynamo-frontend": ServerKind(
        "the frontend of NVIDIA Dynamo",
        re.compile(r"(?:^|/)ai-dynamo/(?:dynamo-)?frontend$"),
        8000,
        queue=GATEWAY_WAITING,
    ),
    "endpoint-picker": ServerKind(
        "an endpoint picker",
        re.compile(
            r"(?:^|/)(?:llm-d-inference-scheduler|llm-d-router-endpoint-picker"
            r"|gateway-api-inference-extension/epp)$"
        ),
        9090,
        queue=GATEWAY_WAITING,
    ),
    "nim": ServerKind("NVIDIA NIM", re.compile(r"(?:^|/)nvcr\.io/nim/"), 8000, "/v1/metrics"),
    "tensorrt-llm": ServerKind(
        "TensorRT-LLM", re.compile(r"(?:^|/)tensorrt-llm/release$"), 8000, "/prometheus/metrics"
    ),
    "vllm": ServerKind("vLLM", _named("vllm"), 8000),
    "triton": ServerKind("Triton", _named("tritonserver"), 8002),
    "tei": ServerKind("text-embeddings-inference", _named("text-embeddings-inference"), 80),
    "tgi": ServerKind("TGI", _named("text-generation-inference|tgi"), 80),
    "sglang": ServerKind("SGLang", _named("sglang"), 30000),
    "llamacpp": ServerKind("llama.cpp", _named(r"llama\.cpp"), 8080),
}
"""Short name -> kind. The first whose pattern fits an image is the image's kind."""


def kind_of_image(image: str) -> ServerKind | None:
    """Return the kind of server that an image is; None for other programs.

    Args:
        image: as in a pod's spec, such as ``docker.io/vllm/vllm-openai:v0.10.0``.
    """
    named = image.partition("@")[0]
    head, colon, tag = named.rpartition(":")
    bare = head if colon and "/" not in tag else named
    return next((kind for kind in KINDS.values() if kind.image.search(bare)), None)
