"""A store, the pods it looks at and pages put into it as text."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from adapter.attribution.policy import SharingOptions
from adapter.attribution.reading import Absence, Reading
from adapter.catalog import Catalog
from adapter.cluster.nodes import Node, Nodes
from adapter.cluster.pod import Pod, PodRef
from adapter.devices.options import TelemetryOptions
from adapter.exposition.page import parse
from adapter.exposition.samples import ScrapeResult
from adapter.store.store import Store
from apiservice.labels import selector

CATALOG = Catalog()
DEFAULT = Path(__file__).parents[2] / "../shared/data"
ONE_GPU: Mapping[str, int] = {"nvidia.com/gpu": 1}


def make_pod(
    name: str,
    *,
    namespace: str = "ml",
    gpus: Mapping[str, int] = ONE_GPU,
    node: str = "",
    uid: str = "uid",
    phase: str = "Running",
    ready: bool = True,
    claims: bool = False,
    born: float = 0.0,
    deleting: bool = False,
    ready_since: float = 0.0,
) -> Pod:
    return Pod(
        ref=PodRef(namespace, name),
        uid=uid,
        node=node,
        ip="",
        phase=phase,
        ready=ready,
        deleting=deleting,
        labels={},
        annotations={},
        owner=None,
        containers=("server",),
        gpus=dict(gpus),
        claims=claims,
        ports=(),
        born=born,
        ready_since=ready_since,
    )


class World:
    """Pods, and a store that pages are put into."""

    def __init__(
        self,
        *pods: Pod,
        options: TelemetryOptions | None = None,
        nodes: Mapping[str, Mapping[str, str]] | None = None,
        catalog: Catalog = CATALOG,
        sharing: SharingOptions | None = None,
    ) -> None:
        self.catalog = catalog
        self.pods = {pod.ref: pod for pod in pods}
        self.options = options or TelemetryOptions()
        self.changed = 0
        self.nodes = Nodes()
        self.nodes.replace([Node(name, labels) for name, labels in (nodes or {}).items()])
        self.store = Store(catalog, self.options, self, self.nodes, sharing)

    def get(self, namespace: str, name: str) -> Pod | None:
        return self.pods.get(PodRef(namespace, name))

    def on_node(self, node: str) -> Sequence[Pod]:
        return [pod for pod in self.pods.values() if pod.node == node]

    def at_address(self, address: str) -> Sequence[Pod]:
        return [p for p in self.pods.values() if p.ip == address and not p.finished]

    def changes(self, node: str) -> int:
        return self.changed

    def put(self, *pods: Pod) -> None:
        self.pods |= {pod.ref: pod for pod in pods}
        self.changed += 1

    def remove(self, name: str, namespace: str = "ml") -> None:
        del self.pods[PodRef(namespace, name)]
        self.changed += 1

    def scrape(
        self,
        page: str,
        time: float,
        *,
        origin: str = "http://exporter",
        node: str | None = None,
        pod: tuple[str, str] | None = None,
        serves: bool = False,
    ) -> None:
        read = parse(page.encode(), time=time, wanted=self.catalog.series)
        self.store.ingest(ScrapeResult(origin, node, read.samples, time, read.rejects, pod, serves))

    def read(
        self, name: str, metric: str, time: float, where: str = "", namespace: str = "ml"
    ) -> Reading | Absence:
        pod = self.pods[PodRef(namespace, name)]
        return self.store.snapshot.pod(pod, metric, selector.parse(where), time)

    def node(self, name: str, metric: str, time: float, where: str = "") -> Reading | Absence:
        return self.store.snapshot.node(name, metric, selector.parse(where), time)

    def value(self, name: str, metric: str, time: float, where: str = "") -> float | str:
        """The value, or the reason why there is none."""
        return said(self.read(name, metric, time, where))

    def count(self, reason: str) -> int:
        return self.store.rejects.totals.get(reason, 0)


def said(answer: Reading | Absence) -> float | str:
    """A reading's value to six decimals; an absence's reason."""
    return round(answer.value, 6) if isinstance(answer, Reading) else str(answer.reason)


def reading(answer: Reading | Absence) -> Reading:
    assert isinstance(answer, Reading), answer
    return answer


def row(
    series: str,
    value: object,
    pod: str = "",
    *,
    uuid: str = "GPU-0",
    container: str = "server",
    more: str = "",
) -> str:
    """A line of dcgm-exporter's."""
    labels = f'gpu="0",UUID="{uuid}",device="nvidia0",modelName="NVIDIA H100"'
    if more:
        labels += f",{more}"
    if pod:
        labels += f',container="{container}",namespace="ml",pod="{pod}"'
    return f"{series}{{{labels}}} {value}\n"


def shared_folder() -> Path:
    """Where the captured pages lie; skips the test where they are absent."""
    folder = Path(os.environ.get("GPU_METRICS_SHARED_DATA", DEFAULT)) / "exposition"
    if not folder.is_dir():
        pytest.skip(f"no captured pages at {folder}: set GPU_METRICS_SHARED_DATA to their folder")
    return folder


def shared_page(name: str) -> str:
    """A captured page, read where it lies."""
    return (shared_folder() / name).read_text()
