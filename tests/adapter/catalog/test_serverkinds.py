"""Images of inference servers and their gateways, and what is known about each."""

from __future__ import annotations

import pytest

from adapter.catalog import Catalog
from adapter.catalog.serverkinds import KINDS, kind_of_image

IMAGES = {
    "docker.io/vllm/vllm-openai:v0.10.0": "vllm",
    "vllm/vllm-openai@sha256:abc": "vllm",
    "localhost:5000/vllm": "vllm",
    "nvcr.io/nvidia/tritonserver:25.08-py3": "triton",
    "ghcr.io/huggingface/text-generation-inference:3.3.5": "tgi",
    "ghcr.io/huggingface/text-embeddings-inference:89-1.8": "tei",
    "lmsysorg/sglang:v0.5.3": "sglang",
    "ghcr.io/ggml-org/llama.cpp:server-cuda": "llamacpp",
    "nvcr.io/nim/meta/llama-3.1-8b-instruct:1.13": "nim",
    "nvcr.io/nvidia/tensorrt-llm/release:1.2.0": "tensorrt-llm",
    "nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.0.0": "dynamo",
    "nvcr.io/nvidia/ai-dynamo/sglang-runtime:1.0.0": "dynamo",
    "ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.9.0": "endpoint-picker",
    "ghcr.io/llm-d/llm-d-inference-scheduler:v0.7.0": "endpoint-picker",
    "registry.k8s.io/gateway-api-inference-extension/epp:v1.2.0": "endpoint-picker",
    "nginx:1.29": None,
    "docker.io/team/my-vllm-client": None,
    "": None,
}


@pytest.mark.parametrize("image", IMAGES)
def test_an_image_is_of_a_kind(image: str) -> None:
    named = {id(kind): name for name, kind in KINDS.items()}
    found = kind_of_image(image)
    assert (named[id(found)] if found else None) == IMAGES[image]


def test_the_queue_of_each_kind_is_a_metric() -> None:
    assert {kind.queue for kind in KINDS.values()} <= set(Catalog().metrics)
