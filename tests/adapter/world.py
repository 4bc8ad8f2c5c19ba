"""The world of a test: a cluster's objects, a store that pages are put into, and what the API says.

Everything is real but the exporters: a test writes their pages as text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from adapter.answers.api.external import GpuExternalMetrics
from adapter.answers.api.provider import GpuMetricsProvider
from adapter.pipeline.attribution.policy import SharingOptions
from adapter.pipeline.attribution.reading import Absence, Reading
from adapter.pipeline.catalog import Catalog
from adapter.pipeline.cluster.gpugroups import groups
from adapter.pipeline.cluster.index import PodIndex
from adapter.pipeline.cluster.lookup import ObjectLookup
from adapter.pipeline.cluster.nodes import Node, Nodes
from adapter.pipeline.cluster.pod import ContainerPort, Owner, Pod, PodFields, PodRef
from adapter.pipeline.cluster.services import Service, Services
from adapter.pipeline.devices.options import TelemetryOptions
from adapter.pipeline.exposition.limits import EXPORTER, SERVER
from adapter.pipeline.exposition.page import parse
from adapter.pipeline.exposition.samples import ScrapeResult
from adapter.pipeline.store.store import Store
from apiservice.kube.reflector import EventType
from apiservice.labels import selector
from tests.needs import folder

CATALOG = Catalog()
OWN_PAGES = Path(__file__).parent / "pages/own"
ONE_GPU: Mapping[str, int] = {"nvidia.com/gpu": 1}


def make_pod(
    name: str,
    *,
    namespace: str = "ml",
    gpus: Mapping[str, int] = ONE_GPU,
    node: str = "",
    ip: str = "",
    uid: str = "uid",
    phase: str = "Running",
    ready: bool = True,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    owner: Owner | None = None,
    containers: tuple[str, ...] = ("server",),
    ports: tuple[ContainerPort, ...] = (),
    host_paths: bool = False,
    claims: bool = False,
    extended: Mapping[str, int] | None = None,
    born: float = 0.0,
    deleting: bool = False,
    ready_since: float = 0.0,
    placeholder: bool = False,
    unhealthy: tuple[str, ...] = (),
) -> Pod:
    """A running pod with one GPU, unless the arguments say otherwise."""
    fields = PodFields(
        ref=PodRef(namespace, name),
        uid=uid,
        node=node,
        ip=ip,
        phase=phase,
        ready=ready,
        deleting=deleting,
        labels=labels or {},
        annotations=annotations or {},
        owner=owner,
        containers=containers,
        gpus=dict(gpus),
        claims=claims,
        extended=dict(extended or {}),
        gpu_groups=groups(labels or {}),
        ports=ports,
        host_paths=host_paths,
        born=born,
        ready_since=ready_since,
        placeholder=placeholder,
        unhealthy=unhealthy,
    )
    return Pod.of(fields)


class World:
    """Pods, nodes and services, the store over them, and the API's providers over both.

    Args:
        pods: the pods at first; :meth:`put` and :meth:`remove` change them.
        options: how samples are read.
        nodes: name -> labels.
        services: the Services.
        catalog: the metrics.
        sharing: how devices are divided among pods.
    """

    def __init__(
        self,
        *pods: Pod,
        options: TelemetryOptions | None = None,
        nodes: Mapping[str, Mapping[str, str]] | None = None,
        services: Iterable[Service] = (),
        catalog: Catalog = CATALOG,
        sharing: SharingOptions | None = None,
    ) -> None:
        self.catalog = catalog
        self.options = options or TelemetryOptions()
        self.index, self.nodes = PodIndex(), Nodes()
        self.objects = ObjectLookup(self.index, Services(), self.nodes)
        self.index.replace(pods)
        self.objects.services.replace(list(services))
        self.nodes.replace([Node(name, labels) for name, labels in (nodes or {}).items()])
        self.store = Store(catalog, self.options, self.index, self.nodes, sharing)
        self.custom = GpuMetricsProvider(catalog, self.store, self.objects)
        self.external = GpuExternalMetrics(catalog, self.store, self.objects, self.custom.absent)

    @property
    def pods(self) -> dict[PodRef, Pod]:
        """The pods by their names."""
        return {pod.ref: pod for pod in self.index.each()}

    def put(self, *pods: Pod) -> None:
        """Add pods, or change those of the same name."""
        for pod in pods:
            self.index.apply(EventType.MODIFIED, pod)

    def remove(self, name: str, namespace: str = "ml") -> None:
        """Delete a pod."""
        self.index.apply(EventType.DELETED, self._pod(namespace, name))

    def _pod(self, namespace: str, name: str) -> Pod:
        pod = self.index.get(namespace, name)
        assert pod is not None, f"no pod {namespace}/{name}"
        return pod

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
        wanted = self.store.demand.of(pod[0] if pod else "")
        limits = SERVER if serves else EXPORTER
        read = parse(page.encode(), time=time, wanted=wanted, limits=limits)
        self.store.ingest(
            ScrapeResult(
                origin,
                node,
                read.samples,
                time,
                read.rejects,
                unread=read.unread,
                incomplete=read.incomplete,
                pod=pod,
                serves=serves,
                sought=wanted if read.whole else None,
            )
        )

    def read(
        self, name: str, metric: str, time: float, where: str = "", namespace: str = "ml"
    ) -> Reading | Absence:
        pod = self._pod(namespace, name)
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


def own_page(name: str) -> str:
    """One of the project's own pages; its table lies beside it."""
    return (OWN_PAGES / name).read_text()


def every_page() -> list[Path]:
    """Every page of an exporter or a server: our own, and the captured ones where they are."""
    return [
        path
        for root in (OWN_PAGES, folder("exposition"))
        if root
        for path in sorted(root.rglob("*.prom"))
    ]


def captured_folder() -> Path:
    """Where the captured pages lie, for a test that needs CAPTURED_PAGES."""
    captured = folder("exposition")
    assert captured is not None, "mark the test with needs(CAPTURED_PAGES)"
    return captured


def captured_page(name: str) -> str:
    """A captured page, read where it lies."""
    return (captured_folder() / name).read_text()
