"""A site whose HPAs use prometheus-adapter, a reader of a guide, and clients that ask all along."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from tests.docs.pages import Page
from tests.e2e import programs
from tests.e2e.apiservice import NAMESPACE, ensure_namespace
from tests.e2e.cluster import HPAS, Cluster, Object, RefusedError, condition
from tests.e2e.installation import apiservices
from tests.e2e.pageserver import PageServer
from tests.e2e.podsandbox import host_address, next_address
from tests.e2e.process import FailedError, wait_until
from tests.e2e.prometheus import Prometheus
from tests.e2e.site import IMAGE, Site
from tests.e2e.traffic import Answer, Traffic, hpa

CHART = programs.ROOT / "tests" / "e2e" / "peerchart"
SPACE = "shop"
GROUPS = ("custom.metrics.k8s.io", "external.metrics.k8s.io", "metrics.k8s.io")
THEIRS = "monitoring/prometheus-adapter"
OURS = f"{NAMESPACE}/gpu-metrics-adapter"
FORWARD = "kubectl --namespace gpu-metrics port-forward"
"""The simulated kubelet forwards no ports: the test connects to the pod itself."""
RULES: dict[str, Any] = {
    "default": False,
    "custom": [
        {
            "seriesQuery": 'http_requests_total{namespace!="",pod!=""}',
            "resources": {"template": "<<.Resource>>"},
            "name": {"matches": "^(.*)_total$", "as": "${1}_per_second"},
            "metricsQuery": "sum(rate(<<.Series>>{<<.LabelMatchers>>}[10s])) by (<<.GroupBy>>)",
        }
    ],
    "external": [
        {
            "seriesQuery": 'queue_depth{namespace!=""}',
            "resources": {"overrides": {"namespace": {"resource": "namespace"}}},
            "metricsQuery": "sum(<<.Series>>{<<.LabelMatchers>>})",
        }
    ],
    "resource": {
        name: {
            "containerQuery": f"sum({series}{{<<.LabelMatchers>>}}) by (<<.GroupBy>>)",
            "nodeQuery": f"sum({series}{{<<.LabelMatchers>>}}) by (<<.GroupBy>>)",
            "resources": {
                "overrides": {
                    "namespace": {"resource": "namespace"},
                    "pod": {"resource": "pod"},
                    "node": {"resource": "node"},
                }
            },
            "containerLabel": "container",
        }
        for name, series in (("cpu", "cpu_cores"), ("memory", "memory_bytes"))
    }
    | {"window": "1m"},
}


class Shop(NamedTuple):
    """A cluster whose HPAs use prometheus-adapter."""

    site: Site
    folder: Path
    """Where the reader types."""
    page: Page
    """What the reader reads."""

    def run(self, command: str) -> str:
        """Run commands of the guide; the chart's source and the image are this cluster's."""
        for words, here in (
            ("image.repository=IMAGE", f"image.repository={IMAGE}"),
            ("prometheus-community/prometheus-adapter", str(CHART)),
        ):
            command = command.replace(words, here)
        return self.site.shell(
            f"export PATH={sys.prefix}/bin:$PATH\n{command}".replace(
                "https://localhost:8443", f"https://{self._address()}:6443"
            ),
            self.folder,
        )

    def _address(self) -> str:
        pods = self.site.pods("app.kubernetes.io/name=gpu-metrics-adapter")
        return pods[0].address if pods else "localhost"

    def section(self, title: str) -> list[str]:
        """The blocks of commands below a heading."""
        lines = self.page.text.splitlines()
        (start,) = [at for at, line in enumerate(lines, 1) if line.lstrip("#") == f" {title}"]
        after = [at for at, line in enumerate(lines, 1) if line.startswith("##") and at > start]
        end = after[0] if after else len(lines) + 1
        return [
            block.text
            for block in self.page.blocks
            if block.language == "sh" and start < block.line < end
        ]

    def follow(self, title: str) -> str:
        """Run the commands of a section; return what they print."""
        blocks = [text for text in self.section(title) if not text.startswith(FORWARD)]
        assert blocks
        return "".join(map(self.run, blocks))

    def owners(self) -> dict[str, str]:
        """APIService of a metrics API -> its Service."""
        owners = apiservices(self.site)
        return {name: owner for name, owner in owners.items() if name.partition(".")[2] in GROUPS}


class Asks:
    """Asks like the HPA controller: in the version that discovery prefers.

    Args:
        cluster: closed with this object.
        path: below the group-version.
        known: seconds for which discovery is remembered.
        complete: whether an answer has every value that it should have.
    """

    def __init__(
        self,
        cluster: Cluster,
        group: str,
        path: str,
        known: float,
        complete: Callable[[Object], bool],
    ) -> None:
        self._cluster = cluster
        self._group, self._path, self._known, self._complete = group, path, known, complete
        self._version, self._read = "", 0.0
        self.versions: set[str] = set()

    def ask(self) -> Answer:
        """See :class:`tests.e2e.traffic.Asker`."""
        begun = time.monotonic()
        try:
            if not self._version or begun - self._read >= self._known:
                self._version, self._read = self._preferred(), begun
            body = self._cluster.get(f"/apis/{self._group}/{self._version}/{self._path}")
        except (RefusedError, httpx.TransportError, LookupError) as error:
            return Answer(begun, f"{self._version}: {type(error).__name__}: {error}"[:300])
        self.versions.add(self._version)
        return Answer(begun, "" if self._complete(body) else f"incomplete: {body}"[:300])

    def _preferred(self) -> str:
        (group,) = [
            row for row in self._cluster.get("/apis")["groups"] if row["name"] == self._group
        ]
        return str(group["preferredVersion"]["version"])

    def close(self) -> None:
        """See :class:`tests.e2e.traffic.Asker`."""
        self._cluster.close()


@contextmanager
def opened(site: Site, folder: Path, page: Page) -> Iterator[Shop]:
    """A workload on a metric of each API; prometheus-adapter serves all three."""
    (folder / "charts").symlink_to(programs.ROOT / "charts")
    began = time.monotonic()

    with ExitStack() as stack:
        pages = PageServer(lambda _: _page(site, time.monotonic() - began))
        stack.callback(pages.stop)
        host = next_address()
        host_address(host)
        jobs = [pages.job("everything")]
        store = Prometheus(folder, "store", {}, honor_labels=True, jobs=jobs, host=host)
        store.start()
        stack.callback(store.stop)
        ensure_namespace(site.admin, SPACE)
        labels = {"app": "web"}
        port = {"ports": [{"port": 80}], "selector": labels}
        meta = {"name": "web", "namespace": SPACE}
        site.admin.create({"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": port})
        template = {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "app", "image": "none"}]},
        }
        spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
        made = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}
        site.admin.create(made)
        wait_until(lambda: len(_pods(site)) == 2, "the workload runs")
        for name in _pods(site):
            # The HPA controller ignores the cpu of pods that have just started.
            path = f"/api/v1/namespaces/{SPACE}/pods/{name}/status"
            site.admin.patch(path, {"status": {"startTime": "2026-01-02T03:04:05Z"}})
        wait_until(lambda: store.count("rate(http_requests_total[10s])") == 2, "rates", 120)
        url, _, number = store.url.rpartition(":")
        values = {
            "prometheus": {"url": url, "port": int(number)},
            "metricsRelistInterval": "1s",
            # Otherwise a metric is lost whenever a scrape takes longer than a second.
            "extraArguments": ["--metrics-max-age=30s"],
            "rules": RULES,
        }
        place = ("--namespace=monitoring", "--create-namespace")
        site.helm("install", "prometheus-adapter", CHART, *place, values=values)
        site.admin.create(_hpa())
        wait_scaling(site)
        shop = Shop(site, folder, page)
        stack.callback(_unregister, shop)
        yield shop


def _unregister(shop: Shop) -> None:
    """An APIService without its server would block the deletion of namespaces."""
    for name in shop.owners():
        shop.site.admin.delete(f"/apis/apiregistration.k8s.io/v1/apiservices/{name}")


def _pods(site: Site) -> list[str]:
    return sorted(pod.name for pod in site.kubelet.running() if pod.namespace == SPACE)


def _page(site: Site, seconds: float) -> str:
    """Five requests a second and 50 millicores for each pod."""
    lines = [f'queue_depth{{namespace="{SPACE}"}} 3']
    for pod in _pods(site):
        at = f'namespace="{SPACE}",pod="{pod}"'
        lines += [
            f'http_requests_total{{{at},service="web"}} {int(seconds * 5)}',
            f'cpu_cores{{{at},container="app"}} 0.05',
            f'memory_bytes{{{at},container="app"}} 1e6',
        ]
    for node in ("gpu-a", "gpu-b"):
        lines += [f'cpu_cores{{node="{node}"}} 1.5', f'memory_bytes{{node="{node}"}} 2e9']
    return "\n".join(lines) + "\n"


def _hpa() -> Object:
    """An HPA on a metric of each type, which keeps two pods."""

    def average(value: str) -> Object:
        return {"type": "AverageValue", "averageValue": value}

    metric = {"metric": {"name": "http_requests_per_second"}}
    service = {"apiVersion": "v1", "kind": "Service", "name": "web"}
    metrics = [
        {"type": "Pods", "pods": {**metric, "target": average("10")}},
        {
            "type": "Object",
            "object": {**metric, "describedObject": service, "target": average("10")},
        },
        {
            "type": "External",
            "external": {"metric": {"name": "queue_depth"}, "target": average("10")},
        },
        {"type": "Resource", "resource": {"name": "cpu", "target": average("100m")}},
    ]
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": SPACE},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "minReplicas": 2,
            "maxReplicas": 4,
            "metrics": metrics,
        },
    }


def current(site: Site) -> Object:
    web_hpa: Object = site.admin.get(f"{HPAS.format(ns=SPACE)}/web")
    return web_hpa


def wait_scaling(site: Site) -> None:
    """Wait until the HPA controller has a value of each metric."""

    def known() -> bool:
        web_hpa = current(site)
        shown = [row for row in web_hpa["status"].get("currentMetrics") or () if row["type"]]
        return len(shown) == 4 and condition(web_hpa, "ScalingActive")[0] == "True"

    try:
        wait_until(known, "the HPA has the four metrics", 60)
    except FailedError as error:
        raise FailedError(f"{error}: {failures(site)}, {current(site)['status']}") from None


def failures(site: Site) -> list[str]:
    """The HPA controller's complaints."""
    rows = site.admin.get(f"/api/v1/namespaces/{SPACE}/events")["items"]
    return [
        f"{row['reason']} x{row.get('count') or 1}: {row['message']}"
        for row in rows
        if row["reason"].startswith("Failed")
    ]


def clients(site: Site) -> dict[str, Asks]:
    def pods(found: Object) -> bool:
        return {row["describedObject"]["name"] for row in found["items"]} == set(_pods(site))

    def some(count: int) -> Callable[[Object], bool]:
        return lambda found: len(found["items"]) == count

    custom, external, resource = GROUPS
    space = f"namespaces/{SPACE}"
    of_pods = f"{space}/pods/%2A/http_requests_per_second?labelSelector=app%3Dweb"
    of_service = f"{space}/services/web/http_requests_per_second"
    return {
        "pods": Asks(hpa(site.plane), custom, of_pods, 0.0, pods),
        "pods, discovery of the HPA controller": Asks(hpa(site.plane), custom, of_pods, 15.0, pods),
        "service": Asks(hpa(site.plane), custom, of_service, 1.0, some(1)),
        "external": Asks(hpa(site.plane), external, f"{space}/queue_depth", 0.0, some(1)),
        "cpu": Asks(hpa(site.plane), resource, f"{space}/pods", 0.0, some(2)),
    }


def peers(site: Site) -> list[Any]:
    return list(site.pods("app.kubernetes.io/name=prometheus-adapter"))


def reads(site: Site) -> bool:
    """Whether prometheus-adapter's only pod lists the metric."""
    (pod,) = peers(site)
    context = httpx.create_ssl_context(verify=False)
    pair = site.plane.proxy_client
    context.load_cert_chain(pair.cert, pair.key)
    headers = {"X-Remote-User": "tester", "X-Remote-Group": "system:masters"}
    url = f"https://{pod.address}:6443/apis/custom.metrics.k8s.io/v1beta1"
    try:
        with httpx.Client(verify=context, headers=headers, trust_env=False) as client:
            return "pods/http_requests_per_second" in client.get(url).text
    except httpx.TransportError:
        return False


def refused(traffic: Traffic) -> list[str]:
    """The failures of all clients, in their order."""
    return [
        f"{name}: {answer.failure}"
        for name, client in traffic.clients.items()
        for answer in client.answers
        if answer.failure
    ]
