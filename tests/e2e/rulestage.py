"""prometheus-adapter and ours with one rules file, one Prometheus and one API server."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import yaml

from tests.e2e.adapterprocess import Adapter
from tests.e2e.apiservice import ensure_namespace
from tests.e2e.cluster import Cluster
from tests.e2e.controlplane import ControlPlane
from tests.e2e.migration import Peer
from tests.e2e.pageserver import PageServer
from tests.e2e.process import wait_until
from tests.e2e.prometheus import Prometheus
from tests.e2e.publicpage import public_page

RULE_FILES = Path(__file__).parent / "rulefiles"
SPACES = ("rules-a", "rules-b")
PUBLIC = ("public-", "kube-prometheus")
"""How the names of files begin that need more series than the others."""
OBJECTS = {
    "pods": ("web-0", "web-1", "job-0", "absent"),
    "services": ("web", "hazelcast", "absent"),
    "deployments.apps": ("web", "absent"),
    "ingresses.networking.k8s.io": ("web",),
    "brands.cheese.io": ("edam",),
    "nodes": ("node-a", "absent"),
    "namespaces": (*SPACES, "absent"),
}
"""Resource -> the names that are asked for; those called absent do not exist."""
WAITING = ("rules-b", "job-0")
"""Namespace and name of a pod that does not run."""

_BRANDS: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "brands.cheese.io"},
    "spec": {
        "group": "cheese.io",
        "scope": "Namespaced",
        "names": {"plural": "brands", "singular": "brand", "kind": "Brand"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }
        ],
    },
}


def page(seconds: float) -> str:
    """Return the page that Prometheus scrapes; counters grow with the time."""
    grown = int(seconds * 10)
    lines: list[str] = []
    for number, space in enumerate(SPACES):
        here = f'namespace="{space}"'
        for index, pod in enumerate(("web-0", "web-1", "job-0", "gone-0")):
            size = 10 * number + index + 1
            at = f'{here},pod="{pod}"'
            old = f'kubernetes_namespace="{space}",kubernetes_pod_name="{pod}"'
            for container in ("app", "side", "POD"):
                inside = f'{at},container="{container}"'
                lines += [
                    f"container_cpu_usage_seconds_total{{{inside}}} {grown * size}",
                    f"container_network_receive_bytes_total{{{inside}}} {grown * size * 7}",
                    f"container_memory_working_set_bytes{{{inside}}} {size * 1e6}",
                ]
            lines += [
                f'http_requests_total{{{at},service="web",method="GET"}} {grown * size}',
                f'http_requests_total{{{at},service="web",method="POST"}} {grown}',
                f"http_ignored_total{{{at}}} {grown}",
                f"process_cpu_seconds_total{{{at}}} {grown}",
                f"http_requests_total{{{old}}} {grown * size * 3}",
                f'workers_busy{{kubernetes_namespace="{space}",worker="{pod}"}} {size / 3}',
                f'jvm_memory_used_bytes{{{at},area="heap"}} {size * 100}',
                f'jvm_memory_max_bytes{{{at},area="heap"}} {size * 100 + 500}',
                f'queue_depth{{{at},queue="a",topic="t{index}"}} {size + 0.001}',
                f'queue_depth{{{at},queue="b",topic="t{index}"}} {size * 1.5}',
                f"tiny{{{at}}} 0.0004",
                f"huge{{{at}}} 1e14",
                f"negative{{{at}}} -{size}.5",
                f"not_a_number{{{at}}} NaN",
                f"infinite{{{at}}} +Inf",
                f'by_node{{{at},node="node-a"}} {size}',
            ]
        for service in ("web", "gone"):
            several = f'ingress="{service}",brand="edam",node="node-a"'
            lines += [
                f'ingress_requests_total{{{here},service="{service}"}} {grown}',
                f'replicas_wanted{{{here},deployment="{service}-base"}} 2',
                f'deployed{{{here},{several},deployment="{service}"}} {number + 5}',
                f'kube_thing{{{here},k__pod="web-0",k_apps_deployment="{service}"}} 7',
            ]
        lines += [
            f'lag{{{here},topic="orders",group="a"}} {40 + number}',
            f'lag{{{here},topic="mails",group="b"}} {2.5 + number}',
            f'queue_consumer_lag{{{here},name="q{number}"}} 3',
            f"only_namespace{{{here}}} {number}",
        ]
    lines += ['cheddar{sharp="true",brand="edam"} 1', 'cheddar{sharp="true",brand="gouda"} 1']
    return "\n".join(lines) + "\n"


def _pages(page: Callable[[float], str]) -> PageServer:
    """Serve a page whose counters grow by the same number from one scrape to the next.

    Two adapters that ask for a rate at different times then get the same one.
    """
    scrapes = count(1)
    return PageServer(lambda _: page(next(scrapes)))


def _everything(seconds: float) -> str:
    return page(seconds) + public_page(seconds, SPACES)


def _has_rates(store: Prometheus) -> bool:
    return store.count("rate(http_ignored_total[1m])") == 8


class RuleStage:
    """A control plane with objects, and a Prometheus. Use as a context manager."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.plane = ControlPlane(folder, controllers=("namespace-controller",))
        self._stack = ExitStack()

    def __enter__(self) -> RuleStage:
        with ExitStack() as stack:
            stack.enter_context(self.plane)
            _create_objects(self.plane.admin)
            self.store = self._store(stack, "store", page)
            self.public = self._store(stack, "public", _everything)
            for store in (self.store, self.public):
                wait_until(partial(_has_rates, store), "rates")
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _store(self, stack: ExitStack, name: str, page: Callable[[float], str]) -> Prometheus:
        pages = _pages(page)
        stack.callback(pages.stop)
        jobs = [pages.job("everything")]
        store = Prometheus(self.folder, name, {}, honor_labels=True, jobs=jobs)
        store.start()
        stack.callback(store.stop)
        return store

    @contextmanager
    def both(self, name: str, rules: Path) -> Iterator[Both]:
        """Run both adapters with a rules file."""
        with ExitStack() as stack:
            public = name.startswith(PUBLIC)
            store = self.public if public else self.store
            peer = Peer(self.folder, self.plane.kubeconfig, store, rules, name)
            peer.process.start()
            stack.callback(peer.process.stop)
            queries = {"url": store.url, "interval": "500ms", "scrape_interval": "1s"}
            adapter = Adapter(
                self.folder,
                f"ours-{name}",
                self.plane.kubeconfig,
                {"kind": "prometheus", "prometheus": queries},
                external={"enabled": True},
                rules={
                    "file": str(rules),
                    "relist_interval": "1s",
                    "max_age": "30s",
                    "cache": "100ms",
                    "interval": "1s",
                    "resource_metrics": "resourceRules" in rules_of(rules),
                },
            )
            adapter.start()
            stack.callback(adapter.stop)
            ours = adapter.client(self.plane.proxy_client)
            stack.callback(ours.close)
            theirs = stack.enter_context(self._directly(peer.port))
            yield Both(theirs, ours.client, peer, adapter)

    def _directly(self, port: int) -> httpx.Client:
        """Ask prometheus-adapter as the front proxy; its certificate is of its own making."""
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        pair = self.plane.proxy_client
        context.load_cert_chain(pair.cert, pair.key)
        headers = {"X-Remote-User": "tester", "X-Remote-Group": "system:masters"}
        return httpx.Client(
            base_url=f"https://localhost:{port}",
            verify=context,
            headers=headers,
            trust_env=False,
            timeout=60,
        )


class Both(NamedTuple):
    """Clients of both adapters."""

    theirs: httpx.Client
    ours: httpx.Client
    peer: Peer
    adapter: Adapter


def _create_objects(admin: Cluster) -> None:
    admin.create(_BRANDS)
    admin.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-a"}})
    admin.create(_pod("default", "web-0", "web"))
    for space in SPACES:
        ensure_namespace(admin, space)
        for name, app in (("web-0", "web"), ("web-1", "web"), ("job-0", "job")):
            admin.create(_pod(space, name, app))
            if (space, name) != WAITING:
                _run(admin, space, name)
        port = {"ports": [{"port": 80}], "selector": {"app": "web"}}
        for name in ("hazelcast", "web"):
            meta = {"name": name, "namespace": space, "labels": {"app": name}}
            admin.create({"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": port})
        template = {"metadata": {"labels": {"app": "web"}}, "spec": _CONTAINERS}
        spec = {"selector": {"matchLabels": {"app": "web"}}, "template": template, "replicas": 0}
        deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta}
        admin.create(deployment | {"spec": spec})
        backend = {"defaultBackend": {"service": {"name": "web", "port": {"number": 80}}}}
        ingress = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": meta}
        admin.request(
            "POST",
            f"/apis/networking.k8s.io/v1/namespaces/{space}/ingresses",
            ingress | {"spec": backend},
        )
        brand = {"apiVersion": "cheese.io/v1", "kind": "Brand"}
        meta = {"name": "edam", "namespace": space}
        wait_until(lambda: _exists(admin), "the brands are served")
        admin.request(
            "POST", f"/apis/cheese.io/v1/namespaces/{space}/brands", brand | {"metadata": meta}
        )


def _exists(admin: Cluster) -> bool:
    return admin.client.get("/apis/cheese.io/v1/brands").status_code == 200


_CONTAINERS: dict[str, Any] = {"containers": [{"name": "app", "image": "none"}]}


def _pod(namespace: str, name: str, app: str) -> dict[str, Any]:
    meta = {"name": name, "namespace": namespace, "labels": {"app": app}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": _CONTAINERS}


def _run(admin: Cluster, namespace: str, name: str) -> None:
    """Set the phase that a kubelet would set."""
    path = f"/api/v1/namespaces/{namespace}/pods/{name}/status"
    admin.patch(path, {"status": {"phase": "Running"}})


def rules_of(path: Path) -> dict[str, Any]:
    """Return the content of a rules file."""
    rules: dict[str, Any] = yaml.safe_load(path.read_text())
    return rules
