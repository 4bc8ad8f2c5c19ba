"""prometheus-adapter and our adapter, configured as in docs/migrate-from-prometheus-adapter.md."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.e2e import programs
from tests.e2e.pageserver import PageServer
from tests.e2e.process import Process, free_port
from tests.e2e.prometheus import Prometheus

_DOCS = Path(__file__).parents[2] / "docs"
PAGE = _DOCS / "migrate-from-prometheus-adapter.md"
KEDA_PAGE = _DOCS / "migrate-from-keda-prometheus.md"
_BLOCK = re.compile(r"^```yaml\n(.*?)^```", re.DOTALL | re.MULTILINE)


def theirs() -> dict[str, Any]:
    """Return the page's configuration of prometheus-adapter."""
    return _block("rules:")


def ours() -> dict[str, Any]:
    """Return the page's configuration of our adapter, rendered from chart values."""
    values = _block("# values.yaml")
    settings: dict[str, Any] = values["config"]
    return settings | {"external": values["externalMetrics"]}


def pairs() -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return the page's table: (their name, our name) of custom and of external metrics."""
    custom: list[tuple[str, str]] = []
    external: list[tuple[str, str]] = []
    table = PAGE.read_text(encoding="utf-8").partition("| Rule | Name in both |")[2]
    for line in table.partition("\n\n")[0].splitlines()[2:]:
        _, _, both, instead, _ = line.split("|")
        into = external if "external" in both else custom
        names, others = (re.findall(r"`([\w:]+)`", cell) for cell in (both, instead))
        into += [(name, name) for name in names]
        into += list(zip(names, others, strict=False))
    return custom, external


def keda_triggers(namespace: str, store: str, scaler: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the triggers before and after the migration in the page about KEDA.

    Args:
        namespace: replaces the page's namespace.
        store: URL of Prometheus.
        scaler: address of our scaler.
    """
    blocks = map(yaml.safe_load, _BLOCK.findall(KEDA_PAGE.read_text(encoding="utf-8")))
    (before,), (after,) = [block["triggers"] for block in blocks if "triggers" in block]
    query = before["metadata"]["query"].replace('"default"', f'"{namespace}"')
    before["metadata"] |= {"serverAddress": store, "query": query}
    after["metadata"] |= {"scalerAddress": scaler}
    return before, after


class ServerPages(PageServer):
    """Pages of inference servers. ``/NAME`` has the queue of that server."""

    def __init__(self, waiting: Mapping[str, int]) -> None:
        self.waiting = waiting
        super().__init__(self._page)

    def _page(self, path: str) -> str:
        queue = self.waiting[path.lstrip("/")]
        return (
            f'vllm:num_requests_waiting{{model_name="m"}} {queue}\n'
            f'vllm:num_requests_running{{model_name="m"}} {queue * 10}\n'
        )

    def pods_job(self, namespace: str) -> dict[str, Any]:
        """Return the scrape job of a PodMonitor: target labels name the pod."""
        targets = [
            {
                "targets": [f"127.0.0.1:{self.port}"],
                "labels": {"__metrics_path__": f"/{pod}", "namespace": namespace, "pod": pod},
            }
            for pod in self.waiting
        ]
        return {"job_name": "inference", "static_configs": targets}


class Peer:
    """prometheus-adapter, with its own certificate.

    Args:
        rules: its configuration file; the page's rules by default.
        name: of its files in ``folder``.
    """

    def __init__(
        self,
        folder: Path,
        kubeconfig: Path,
        prometheus: Prometheus,
        rules: Path | None = None,
        name: str = "rules",
    ) -> None:
        self.port = free_port()
        config = rules
        if config is None:
            config = folder / "prometheus-adapter.yaml"
            config.write_text(yaml.safe_dump(theirs()))
        certificates = folder / f"prometheus-adapter-{name}-certs"
        self.certificate = certificates / "apiserver.crt"
        """Its own certificate, with the CA that signed it."""
        self.process = Process(
            [
                programs.find(programs.PROMETHEUS_ADAPTER),
                f"--secure-port={self.port}",
                "--bind-address=127.0.0.1",
                f"--cert-dir={certificates}",
                f"--prometheus-url={prometheus.url}",
                f"--config={config}",
                "--metrics-relist-interval=1s",
                "--metrics-max-age=30s",
                # By default it lists objects at most five times a second.
                "--client-qps=1000",
                "--client-burst=1000",
                *(
                    f"--{use}-kubeconfig={kubeconfig}"
                    for use in ("lister", "authentication", "authorization")
                ),
            ],
            folder / f"prometheus-adapter-{name}.log",
        )


def _block(first: str) -> dict[str, Any]:
    for block in _BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        if block.startswith(first):
            content: dict[str, Any] = yaml.safe_load(block)
            return content
    raise AssertionError(f"no yaml block of {PAGE.name} begins with {first!r}")
