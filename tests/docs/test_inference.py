"""docs/inference.md names what is read of which server, and its pod is one that is read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from adapter.config.settings.cluster import ClusterSettings
from adapter.hpa import Observation, PodState, from_manifest
from adapter.pipeline.catalog import Catalog
from adapter.pipeline.catalog.promise import SLO_RATIO, parse_promise
from adapter.pipeline.catalog.requestwindow import Latency
from adapter.pipeline.catalog.serverkind import ServerKind
from adapter.pipeline.catalog.serverkinds import KINDS
from adapter.pipeline.catalog.servermeasures import (
    FINISHED,
    OUTPUT_TOKENS,
    PROMPT_TOKENS,
    gateway_metric,
)
from adapter.pipeline.cluster.gpuresources import GpuResources
from adapter.pipeline.cluster.manifest import PodDecoder, PodManifest
from adapter.pipeline.cluster.optin import PREFIX
from adapter.pipeline.sources.scrape.serverpages import ServerPages
from adapter.pipeline.sources.scrape.target import ScrapeTarget
from tests.proposals import propose

PAGES = Path(__file__).parents[2] / "docs"
PAGE = (PAGES / "inference.md").read_text(encoding="utf-8")
CHART = "charts/gpu-metrics-adapter"
DASH = "\N{EN DASH}"
METRICS = (
    "inference_requests_waiting",
    "inference_requests_running",
    "inference_kv_cache_utilization",
)


def manifests(kind: str, page: str = PAGE) -> list[dict[str, Any]]:
    """A page's manifests of a kind."""
    blocks = re.findall(r"^```yaml\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    return [manifest for manifest in map(yaml.safe_load, blocks) if manifest.get("kind") == kind]


def row(title: str, *cells: str) -> str:
    """A row of a table that begins with a server's title."""
    shown = title[0].upper() + title[1:] if title.startswith(("a ", "an ", "the ")) else title
    return f"| {shown} | " + " | ".join(cells) + " |"


def is_read(kind: ServerKind, metric: str) -> bool:
    """The page of a server, or of the engine in it, has the metric."""
    return metric in kind.formulas or any(is_read(KINDS[name], metric) for name in kind.engines)


def is_counted(kind: ServerKind, metric: str) -> bool:
    """The page of a server, or of the engine in it, has the histogram or counter."""
    return any(measure.metric == metric for measure in kind.measures) or any(
        is_counted(KINDS[name], metric) for name in kind.engines
    )


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.title)
def test_the_tables_say_what_is_read_of_each_server_its_port_and_what_it_needs(
    kind: ServerKind,
) -> None:
    cells = ["yes" if is_read(kind, metric) else "no" for metric in METRICS]
    needs = [f"path `{kind.path}`"] if kind.path != "/metrics" else []
    needs += [kind.note] if kind.note else []
    last = [str(kind.port), "; ".join(needs)]
    shown = PAGE.replace("| older builds |", "| yes |").replace(f"| {DASH} ", "| no ")
    if not kind.gateway:
        assert row(kind.title, *cells, *last).replace("|  |", "| |") in shown
        return
    start, end = row(kind.title).rstrip("| "), row("", *last).replace("|  |", "| |")[2:]
    assert [line for line in shown.splitlines() if line.startswith(start) and line.endswith(end)]


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.title)
def test_the_table_of_latencies_says_what_each_server_counts(kind: ServerKind) -> None:
    if kind.title == "vLLM-Omni":
        return  # its stages give no latency, as the page says
    start = "| " + kind.title[0].upper() + kind.title[1:] + " | "
    if not kind.title.startswith(("a ", "an ", "the ")):
        start = f"| {kind.title} | "
    section = PAGE.partition("## Latencies and tokens")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith(start)]
    if kind.title == "Triton with TensorRT-LLM":
        assert lines == []
        return
    (line,) = lines
    cells = line.removeprefix(start).strip("| ").split(" | ")
    names = [*Latency, OUTPUT_TOKENS, PROMPT_TOKENS, FINISHED]
    wanted = [gateway_metric(name) if kind.gateway else name for name in names]
    assert [cell != DASH for cell in cells] == [is_counted(kind, name) for name in wanted]


def test_the_charts_network_policy_lets_the_adapter_reach_the_pages() -> None:
    values = yaml.safe_load((PAGES.parent / CHART / "values.yaml").read_text(encoding="utf-8"))
    ports = values["networkPolicy"]["inferencePorts"]
    assert {kind.port for kind in KINDS.values()} <= set(ports)


def test_the_pod_of_the_deployment_is_scraped_at_its_port() -> None:
    (deployment,) = manifests("Deployment")
    template = deployment["spec"]["template"]
    running = {"phase": "Running", "podIP": "192.0.2.7"} | {
        "conditions": [{"type": "Ready", "status": "True"}]
    }
    meta = template["metadata"] | {"name": "llm-0", "namespace": "default", "uid": "u"}
    pod = template | {"metadata": meta, "status": running}
    decoder = PodDecoder(GpuResources(ClusterSettings().gpu_resources))
    target = ServerPages().of(decoder.reduce(msgspec.convert(pod, PodManifest)))
    assert isinstance(target, ScrapeTarget)
    assert target.url == "http://192.0.2.7:8000/metrics"


def test_every_annotation_named_is_one() -> None:
    named = set(re.findall(rf"{re.escape(PREFIX)}(\w+)", PAGE))
    assert named == {"scrape", "port", "path", "scheme"}


def test_hpas_ask_for_what_there_is() -> None:
    hpas = manifests("HorizontalPodAutoscaler")
    metrics = [metric["pods"]["metric"] for hpa in hpas for metric in hpa["spec"]["metrics"]]
    asked = [metric["name"] for metric in metrics]
    assert asked
    assert set(asked) <= set(Catalog().metrics)


def test_the_promise_of_the_page_is_one() -> None:
    (hpa,) = [hpa for hpa in manifests("HorizontalPodAutoscaler") if SLO_RATIO in str(hpa)]
    (metric,) = hpa["spec"]["metrics"]
    promise = parse_promise(metric["pods"]["metric"]["selector"]["matchLabels"])
    assert list(map(str, promise)) == ["itl_p90 50ms", "ttft_p90 1s"]


def test_the_queue_alone_would_scale_in_what_the_load_needs() -> None:
    """Four replicas at work, none of them full."""
    recipe = (PAGES / "recipes" / "llm-servers.md").read_text(encoding="utf-8")
    (hpa,) = manifests("HorizontalPodAutoscaler", recipe)
    running, waiting = from_manifest(hpa).metrics
    pods = [PodState(name) for name in "abcd"]
    seen = Observation(4, pods, [])
    busy = propose(running, dict.fromkeys("abcd", 23_000), seen, "default")[0]
    calm = propose(waiting, dict.fromkeys("abcd", 0), seen, "default")[0]
    assert (busy, calm) == (4, 0)
