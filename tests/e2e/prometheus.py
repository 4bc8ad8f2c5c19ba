"""A real Prometheus that scrapes the simulated exporters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import httpx
import yaml

from tests.e2e import programs
from tests.e2e.process import Process, free_port


class Prometheus:
    """Scrapes exporters like a ServiceMonitor of dcgm-exporter's chart.

    Args:
        exporters: node name -> port.
        honor_labels: treatment of the labels pod, namespace and container of the exporter.
        jobs: further scrape jobs in the format of ``scrape_configs``.
        host: where it listens.
        external_labels: labels that sidecars and remote readers add to its series.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        exporters: Mapping[str, int],
        *,
        honor_labels: bool,
        jobs: Sequence[Mapping[str, object]] = (),
        host: str = "127.0.0.1",
        external_labels: Mapping[str, str] | None = None,
    ) -> None:
        self.port = free_port()
        self.url = f"http://{host}:{self.port}"
        config = folder / f"{name}.yml"
        made = _config(exporters, honor_labels, jobs, external_labels or {})
        config.write_text(yaml.safe_dump(made))
        self.process = Process(
            [
                programs.find(programs.PROMETHEUS),
                f"--config.file={config}",
                f"--storage.tsdb.path={folder / name}",
                f"--web.listen-address={host}:{self.port}",
                "--log.level=warn",
            ],
            folder / f"{name}.log",
        )

    def start(self) -> None:
        """Start it and wait until it answers queries."""
        self.process.start()
        self.process.wait_ready(lambda: self.count("up") >= 0)

    def stop(self) -> None:
        """Stop it."""
        self.process.stop()

    def count(self, query: str) -> int:
        """Return the number of series of a query; -1 without an answer."""
        try:
            answer = httpx.get(f"{self.url}/api/v1/query", params={"query": query}, trust_env=False)
        except httpx.TransportError:
            return -1
        if answer.status_code != 200:
            return -1
        result: Sequence[object] = answer.json()["data"]["result"]
        return len(result)


def _config(
    exporters: Mapping[str, int],
    honor_labels: bool,
    jobs: Sequence[Mapping[str, object]],
    external_labels: Mapping[str, str],
) -> dict[str, object]:
    targets = [
        {
            "targets": [f"127.0.0.1:{port}"],
            "labels": {
                "namespace": "gpu-operator",
                "pod": f"dcgm-exporter-{node}",
                "container": "exporter",
                "service": "dcgm-exporter",
                "endpoint": "metrics",
            },
        }
        for node, port in exporters.items()
    ]
    job = {"job_name": "dcgm-exporter", "honor_labels": honor_labels, "static_configs": targets}
    return {
        "global": {
            "scrape_interval": "1s",
            "scrape_timeout": "1s",
            "external_labels": dict(external_labels),
        },
        "scrape_configs": [job, *jobs],
    }
