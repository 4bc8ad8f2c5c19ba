"""Images of inference servers and their gateways, and what is known about each."""

from __future__ import annotations

import pytest

from adapter.config.settings.metrics import MetricSettings
from adapter.pipeline.catalog import Catalog
from adapter.pipeline.catalog.serverkinds import (
    KINDS,
    SERVER_FIELDS,
    kind_of_field,
    kind_of_image,
    looks_like,
)
from adapter.pipeline.exposition.seriesnames import series_names
from adapter.server.serve.ownmetrics import rows
from adapter.tools.generate.presets import PRESETS
from tests.adapter.pages.tables import own_scenes
from tests.adapter.world import CATALOG, World, make_pod, own_page

T = 100.0
PAGES = sorted({page for s in own_scenes().values() if s.kind for page in s.pages})
"""The own pages of servers and gateways."""


def served(page: str, catalog: Catalog = CATALOG) -> World:
    """A pod, and its page."""
    world = World(make_pod("p"), catalog=catalog)
    world.scrape(page, T, origin="http://192.0.2.1:8000/metrics", pod=("ml", "p"), serves=True)
    return world


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
    "nvcr.io/nvidia/tritonserver:25.08-vllm-python-py3": "triton-vllm",
    "nvcr.io/nvidia/tritonserver:25.08-trtllm-python-py3": "triton-trtllm",
    "openmmlab/lmdeploy:v0.10.0": "lmdeploy",
    "ccr-2vdh3abv-pub.cnc.bj.baidubce.com/paddlepaddle/fastdeploy-cuda-12.6:2.1.0": "fastdeploy",
    "ghcr.io/modeltc/lightllm:main": "lightllm",
    "vllm/vllm-omni:v0.11.0": "vllm-omni",
    "docker.io/modular/max-nvidia-full:25.6": "max",
    "rayproject/ray-llm:2.50.0-py311-cu128": "ray-serve",
    "rayproject/ray:2.50.0": None,
    "ghcr.io/llm-d/llm-d:v0.2.0": "llm-d",
    "ghcr.io/llm-d/llm-d-routing-sidecar:v0.2.0": None,
    "nginx:1.29": None,
    "docker.io/team/my-vllm-client": None,
    "": None,
}


@pytest.mark.parametrize("image", IMAGES)
def test_an_image_is_of_a_kind(image: str) -> None:
    names = {id(kind): name for name, kind in KINDS.items()}
    image_kind = kind_of_image(image)
    assert (names[id(image_kind)] if image_kind else None) == IMAGES[image]


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_has_everything_that_follows_from_its_declaration(name: str) -> None:
    """A consumer that forgets a kind fails here, or in ``tests/docs/test_inference.py``.

    ``tests/adapter/pages/test_catalog_pages.py`` demands a page of each kind.
    """
    kind, catalog = KINDS[name], Catalog()
    assert kind.queue in catalog.metrics
    assert kind.fields or kind.engines, "what is on its page?"
    for field in kind.fields:
        assert catalog.fields[field.name] is field
        assert field.group == ("gateways" if kind.gateway else "servers")
    read = {key for formulas in kind.formulas.values() for f in formulas for key in f.fields}
    assert read <= set(catalog.fields)
    for metric, formulas in kind.formulas.items():
        assert set(formulas) <= set(catalog.metrics[metric].formulas)
    for measure in kind.measures:
        assert catalog.fields[measure.field.name] is measure.field
        metrics = [metric for metric in catalog.on_demand if metric.startswith(measure.metric)]
        assert metrics, measure.metric
        assert all(measure.formula in catalog.metrics[metric].formulas for metric in metrics)
    assert (name in PRESETS) is not kind.gateway


@pytest.mark.parametrize("page", PAGES)
def test_a_users_own_row_reads_any_field_of_a_page(page: str) -> None:
    """Also a series that the catalogue does not contain."""
    page = own_page(page) + "my_depth 3\n"
    lines = [line for line in page.splitlines() if line and not line.startswith("#")]
    for series in {line.partition("{")[0].partition(" ")[0] for line in lines}:
        row = {"name": "my_own", "series": series, "scope": "server", "combine": "sum"}
        own = MetricSettings(**row)
        if rows([own], Catalog())[0] and series in Catalog().label_variants:
            continue  # needs labels, which are the user's to choose
        catalog = Catalog().extended(*rows([own], Catalog()))
        value = served(page, catalog).value("p", "my_own", T)
        assert isinstance(value, float) or series.endswith("_us"), series


@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if kind.names])
def test_a_page_without_the_queue_looks_like_its_program(name: str) -> None:
    kind = KINDS[name]
    assert kind.title in looks_like([kind.names[0] + "other_total"])


LOOKS = {
    "ollama_models 3\n": "Ollama",
    'litellm_requests_metric{a="b"} 1\n': "LiteLLM",
    "vllm:current_qps 1\nvllm:x 1\n": "a vLLM router",
    "process_cpu_seconds_total 1\npython_info 1\n": "",
    "<html></html>": "",
}


@pytest.mark.parametrize("page", LOOKS)
def test_a_page_that_is_not_read_is_named_by_its_series(page: str) -> None:
    program = looks_like(series_names(page.encode()))
    assert program.startswith(LOOKS[page])
    assert bool(program) is bool(LOOKS[page])


SPELT = {
    "sglang_num_queue_reqs": "sglang:num_queue_reqs",
    "ray_sglang_num_queue_reqs": "sglang:num_queue_reqs",
    "ray_sglang:num_queue_reqs": "sglang:num_queue_reqs",
    "vllm_num_requests_waiting": "vllm:num_requests_waiting",
    "vllm_gpu_cache_usage_perc": "vllm:kv_cache_usage_perc",
    "lmdeploy_num_requests_waiting": "lmdeploy:num_requests_waiting",
    "llamacpp_requests_deferred": "llamacpp:requests_deferred",
}


@pytest.mark.parametrize("series", SPELT)
def test_a_colon_may_be_an_underscore(series: str) -> None:
    catalog = Catalog()
    assert catalog.spellings[series].field.name == SPELT[series]
    assert series in catalog.metrics


def test_every_name_with_a_colon_has_its_other_spellings() -> None:
    catalog = Catalog()
    names = {name for field in SERVER_FIELDS for name, _, _ in field.names if ":" in name}
    spelt = {spelling.family for spelling in catalog.spellings.values()}
    assert {name.replace(":", "_") for name in names} <= spelt


def test_a_user_may_give_a_metric_the_name_that_a_tool_gives_a_series() -> None:
    """As after a migration from prometheus-adapter; the row decides then."""
    row = MetricSettings(name="vllm_num_requests_waiting", series="my_depth", scope="server")
    catalog = Catalog().extended(*rows([row], Catalog()))
    world = served('my_depth 3\nvllm:num_requests_waiting{engine="0"} 9\n', catalog)
    assert world.value("p", "vllm_num_requests_waiting", T) == 3.0
    with pytest.raises(ValueError, match="is a name of the catalogue"):
        MetricSettings(name="vllm:num_requests_waiting", series="my_depth")


def test_a_field_names_the_kind_whose_memory_is_reserved() -> None:
    kind = kind_of_field("sglang:num_running_reqs")
    assert kind is KINDS["sglang"]
    assert kind.reserves == "--mem-fraction-static"
    assert kind_of_field("llamacpp:requests_processing") is KINDS["llamacpp"]
    assert not KINDS["llamacpp"].reserves
    assert kind_of_field("DCGM_FI_DEV_FB_USED") is None
