"""Thanos in front of two clusters: a with two replicas of Prometheus, b with one.

Both clusters have a node with the same page of an exporter, so a pod of each has the same
namespace and name; cluster b's GPU has another utilisation. Queriers and sidecars are real.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx
import yaml

from tests.adapter.world import own_page
from tests.e2e import programs
from tests.e2e.adapterprocess import Adapter
from tests.e2e.certificates import Authority, KeyPair
from tests.e2e.cluster import Cluster
from tests.e2e.pageserver import PageServer
from tests.e2e.process import Process, free_port, wait_until
from tests.e2e.prometheus import Prometheus

PAGE = "dcgm/3.1-two-boards.prom"
NAMESPACE, CONTAINER = "vision", "detector"
UTIL = "DCGM_FI_DEV_GPU_UTIL"
A, B = 64.0, 37.0
"""The utilisation of the pod's GPU in each cluster; the rest of the page is as it lies."""
REPLICAS = (("a", "0"), ("a", "1"), ("b", "0"))
"""Cluster and replica of each Prometheus."""
GROUP = "/apis/custom.metrics.k8s.io/v1beta2"
SOURCE = {"interval": "1s", "scrape_interval": "1s", "timeout": "5s"}
AGE_LIMIT = 6.0


def page(value: float) -> str:
    """Return the page with this utilisation of the pod's GPU."""
    made, count = re.subn(
        rf'^({UTIL}{{[^}}]*pod="detector[^}}]*}}) \S+$',
        rf"\1 {value:g}",
        own_page(PAGE),
        flags=re.MULTILINE,
    )
    assert count == 1
    return made


class Thanos:
    """One process of Thanos: a sidecar or a querier."""

    def __init__(self, folder: Path, name: str, command: str, *arguments: str) -> None:
        self.http, self.grpc = free_port(), free_port()
        self.url = f"http://127.0.0.1:{self.http}"
        self.process = Process(
            [
                programs.find(programs.THANOS),
                command,
                f"--http-address=127.0.0.1:{self.http}",
                f"--grpc-address=127.0.0.1:{self.grpc}",
                "--log.level=warn",
                *arguments,
            ],
            folder / f"{name}.log",
        )

    def start(self) -> None:
        """Start it, and wait until it is ready."""
        self.process.start()
        self.process.wait_ready(self._ready)

    def _ready(self) -> bool:
        try:
            return httpx.get(f"{self.url}/-/ready", trust_env=False).status_code == 200
        except httpx.TransportError:
            return False


class ThanosStage:
    """Exporters, three Prometheus, their sidecars and two queriers. Use as a context manager."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._stack = ExitStack()
        self.pages = {"a": PageServer(lambda _: page(A)), "b": PageServer(lambda _: page(B))}
        self._names = 0
        authority = Authority(folder, "front-proxy-ca")
        self._ca = authority.cert
        self._pair = authority.issue("front-proxy")
        pods = folder / "pods.yaml"
        pods.write_text(yaml.safe_dump({"kind": "List", "items": [_pod()]}))
        self._pods = pods
        self.sidecars: dict[tuple[str, str], Thanos] = {}
        self.stores: dict[tuple[str, str], Prometheus] = {}

    def __enter__(self) -> ThanosStage:
        with self._stack:
            for served in self.pages.values():
                self._stack.callback(served.stop)
            for cluster, replica in REPLICAS:
                self._replica(cluster, replica)
            stores = [f"127.0.0.1:{sidecar.grpc}" for sidecar in self.sidecars.values()]
            self.querier = self._query("query", stores)
            tenants = ("--query.enforce-tenancy", "--query.tenant-label-name=cluster")
            self.tenants = self._query("tenants", stores, *tenants)
            wait_until(lambda: _series(self.querier.url) == 4, "the querier has both clusters")
            self._stack = self._stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def _replica(self, cluster: str, replica: str) -> None:
        name = f"prometheus-{cluster}-{replica}"
        jobs = [self.pages[cluster].job("gpus")]
        labels = {"cluster": cluster, "replica": replica}
        store = Prometheus(
            self.folder, name, {}, honor_labels=True, jobs=jobs, external_labels=labels
        )
        self._stack.callback(store.stop)
        store.start()
        self.stores[cluster, replica] = store
        data = self.folder / name
        sidecar = Thanos(
            self.folder,
            f"sidecar-{cluster}-{replica}",
            "sidecar",
            f"--prometheus.url={store.url}",
            f"--tsdb.path={data}",
        )
        self._stack.callback(sidecar.process.stop)
        sidecar.start()
        self.sidecars[cluster, replica] = sidecar

    def _query(self, name: str, stores: Sequence[str], *more: str) -> Thanos:
        # Strict: a store that is gone is a warning in every answer, and not forgotten.
        endpoints = [f"--endpoint-strict={store}" for store in stores]
        made = Thanos(
            self.folder, name, "query", "--query.replica-label=replica", *endpoints, *more
        )
        self._stack.callback(made.process.stop)
        made.start()
        return made

    def direct(self, cluster: str) -> Served:
        """Start an adapter that scrapes the exporter of a cluster itself."""
        url = f"http://127.0.0.1:{self.pages[cluster].port}/metrics"
        scrape = {"discover": False, "interval": "1s", "targets": [{"url": url, "node": "node-a"}]}
        return self._serve({"kind": "scrape", "scrape": scrape})

    def through(self, querier: Thanos | str, **settings: Any) -> Served:
        """Start an adapter that reads the values from a store."""
        url = querier if isinstance(querier, str) else querier.url
        return self._serve({"kind": "prometheus", "prometheus": {"url": url, **SOURCE, **settings}})

    def _serve(self, source: Mapping[str, Any]) -> Served:
        self._names += 1
        authentication = {
            "configmap": False,
            "requestheader_ca_file": str(self._ca),
            "requestheader_allowed_names": ["front-proxy"],
            "token_review": False,
        }
        adapter = Adapter(
            self.folder,
            f"adapter-{self._names}",
            Path(),
            source,
            cluster={"pods_file": str(self._pods)},
            authentication=authentication,
            authorization={"subject_access_review": False, "allow_users": ["tester"]},
            values={"window": "2s", "collect_interval": "1s", "age_limit": f"{AGE_LIMIT:g}s"},
        )
        return Served(adapter, self._pair)


class Served:
    """A running adapter and a client of its API. Use as a context manager."""

    def __init__(self, adapter: Adapter, pair: KeyPair) -> None:
        self.adapter = adapter
        self._pair = pair

    def __enter__(self) -> Served:
        self.adapter.start()
        self.client: Cluster = self.adapter.client(self._pair)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.client.close()
        self.adapter.stop()

    def value(self, metric: str = UTIL) -> str | None:
        """Return the pod's value as the API writes it; None if it is absent."""
        answer = self.client.client.get(f"{GROUP}/namespaces/{NAMESPACE}/pods/%2A/{metric}")
        if answer.status_code == 404:
            return None
        answer.raise_for_status()
        values = [item["value"] for item in answer.json()["items"]]
        assert len(values) <= 1
        return values[0] if values else None

    def values(self) -> dict[str, str]:
        """Return every metric of the pod with a value."""
        rows = self.client.get(GROUP)["resources"]
        names = [row["name"].removeprefix("pods/") for row in rows]
        pods = [name for name in names if "/" not in name]
        answers = {name: self.value(name) for name in pods}
        return {name: value for name, value in answers.items() if value is not None}

    def metric(self, name: str) -> float:
        """Return the sum of an own metric, whose name may be followed by labels."""
        text = self.client.client.get("/metrics").text
        lines = (line for line in text.splitlines() if re.match(rf"{re.escape(name)}[ {{]", line))
        return sum(float(line.rpartition(" ")[2]) for line in lines)

    def log(self) -> str:
        """Return what it logged."""
        return self.adapter.process.log.read_text()


def _series(url: str) -> int:
    """The series of the utilisation that a querier returns; 0 without an answer."""
    asked = {"query": UTIL}
    try:
        answer = httpx.get(f"{url}/api/v1/query", params=asked, trust_env=False, timeout=10)
    except httpx.TransportError:
        return 0
    return len(answer.json()["data"]["result"]) if answer.status_code == 200 else 0


def _pod() -> dict[str, Any]:
    (name,) = set(re.findall(r'pod="(detector[^"]+)"', own_page(PAGE)))
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, "uid": "u"},
        "spec": {
            "nodeName": "node-a",
            "containers": [{"name": CONTAINER, "resources": {"limits": {"nvidia.com/gpu": "1"}}}],
        },
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }
