"""A real Prometheus that scrapes what it would in a cluster."""

from __future__ import annotations

import asyncio
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from prometheus_client.core import Metric
from prometheus_client.exposition import generate_latest

from adapter.server.serve.accessmetrics import review_families
from apiservice.auth.reviews import KubernetesReviews
from tests.adapter.pipeline.sources.prometheus.engines import Pages, engine, serving
from tests.adapter.serving import POD, Exporter, Lab
from tests.charts import clusterpages, controllerpage
from tests.needs import PROMETHEUS, needed_by_fixture

VALUES = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/ml/pods/*/gpu_utilization"
PODS = ("llm-7d9f8b6c5d-a", "llm-7d9f8b6c5d-b")


class Monitored:
    """The processes, and the Prometheus that scrapes them."""

    def __init__(self, url: str, client: httpx.Client, pages: dict[str, str]) -> None:
        self.url = url
        self._client = client
        self.pages = pages
        """What is scraped beside `serve`, by its path."""

    def ask(self) -> None:
        """Ask `serve` as an HPA does, and ignore the answer."""
        self._client.get(VALUES)

    def page(self) -> str:
        """The page of a real `serve`."""
        return self._client.get("/metrics").raise_for_status().text

    def query(self, expr: str) -> list[dict[str, Any]]:
        """The series that an expression gives now; none while it cannot be asked."""
        asked = urllib.parse.urlencode({"query": expr})
        try:
            with urllib.request.urlopen(f"{self.url}/api/v1/query?{asked}", timeout=60) as answer:
                series: list[dict[str, Any]] = json.load(answer)["data"]["result"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{expr}: {error.read().decode()}") from None
        except OSError:
            return []
        return series


def until(probe: Callable[[], bool], what: object) -> None:
    """Wait for what other processes do; a busy machine takes its time."""
    deadline = time.monotonic() + 240
    while not probe():
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.2)


def _pod(name: str, node: str) -> dict[str, Any]:
    return {
        **POD,
        "metadata": {"name": name, "namespace": "ml", "uid": f"uid-{name}", "labels": {}},
        "spec": {
            "nodeName": node,
            "containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}],
        },
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _config(lab: Lab, port: int, serve: int) -> str:
    here = f"127.0.0.1:{port}"

    def page(job: str, path: str, **more: Any) -> dict[str, Any]:
        labels = more.pop("labels", {})
        targets = [{"targets": [here], "labels": labels}]
        return {"job_name": job, "metrics_path": path, "static_configs": targets, **more}

    own = {"namespace": "gpu-metrics", "pod": "gma-1"}
    of_exporter = {"namespace": "gpu-operator", "pod": "nvidia-dcgm-exporter-x"}
    return yaml.safe_dump(
        {
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
            "scrape_configs": [
                {
                    "job_name": "gpu-metrics-adapter",
                    "scheme": "https",
                    "honor_labels": True,
                    "tls_config": {
                        "ca_file": str(lab.folder / "certs" / "ca.crt"),
                        "server_name": "localhost",
                    },
                    "static_configs": [{"targets": [f"127.0.0.1:{serve}"], "labels": own}],
                },
                page("nodepool", "/nodepool", honor_labels=True, labels=own),
                page("dcgm", "/gpu-a", labels=of_exporter),
                page("dcgm-honoring", "/gpu-b", honor_labels=True, labels=of_exporter),
                page("kube-state-metrics", "/ksm", honor_labels=True),
                page("others", "/others", honor_labels=True),
                page("gpu-metrics-adapter-reviews", "/reviews"),
            ],
        }
    )


@pytest.fixture(scope="session")
@needed_by_fixture(PROMETHEUS)
def monitored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Monitored]:
    """See :func:`monitoring`."""
    with monitoring(tmp_path_factory.mktemp("monitored")) as watched:
        yield watched


@contextmanager
def monitoring(folder: Path) -> Iterator[Monitored]:
    """Run them with an exporter scraped in either way, kube-state-metrics, and inference servers.

    Pages other than those of `serve` may be replaced while they run.
    """
    exporter = Exporter()
    exporter.page = clusterpages.exporter("gpu-a", PODS[:1]).encode()
    lab = Lab(folder, exporter)
    (folder / "pods.yaml").write_text(yaml.safe_dump(_pod(PODS[0], "n1")))
    # So that Prometheus may read /metrics without a token.
    lab.config["authorization"]["allow_users"].append("system:anonymous")
    texts = {
        "/gpu-a": clusterpages.exporter("gpu-a", PODS[:1]),
        "/gpu-b": clusterpages.exporter("gpu-b", PODS[1:]),
        "/ksm": clusterpages.kube_state_metrics(),
        "/others": clusterpages.others(),
        "/nodepool": asyncio.run(controllerpage.page()),
        "/reviews": _reviews(),
    }
    try:
        with serving(Pages(texts)) as pages, lab.serving() as running:
            port = int(running.wait_for("listening")["port"])
            config = _config(lab, pages.port, port)
            with (
                engine("prometheus", folder / "prometheus", config) as url,
                running.client() as client,
            ):
                watched = Monitored(url, client, texts)
                until(lambda: "gma_gpu_pods_measured" in watched.page(), "its pods are counted")
                yield watched
    finally:
        exporter.close()


def _reviews() -> str:
    """What `serve` says of reviews where there is a cluster to ask."""
    nobody: Any = None
    return generate_latest(_Reviews(KubernetesReviews(nobody))).decode()


class _Reviews:
    def __init__(self, reviews: KubernetesReviews) -> None:
        self._reviews = reviews

    def collect(self) -> Iterator[Metric]:
        yield from review_families(self._reviews)
