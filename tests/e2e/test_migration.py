"""From prometheus-adapter to ours: the same numbers, and an HPA that keeps its workload's size."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import NamedTuple

import httpx
import pytest

from tests.e2e.adapterprocess import Adapter
from tests.e2e.apiservice import CUSTOM, NAMESPACE, SERVICE, register_group, wait_available
from tests.e2e.cluster import Cluster, Object, RefusedError
from tests.e2e.migration import Peer, ServerPages, ours, pairs
from tests.e2e.process import wait_until
from tests.e2e.prometheus import Prometheus
from tests.e2e.stage import Stage

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

SPACE = "migration"
APISERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
PODS_PATH = f"/apis/custom.metrics.k8s.io/v1beta1/namespaces/{SPACE}/pods/%2A"
EXTERNAL = f"/apis/external.metrics.k8s.io/v1beta1/namespaces/{SPACE}"
CUSTOM_NAMES, EXTERNAL_NAMES = pairs()

Ask = Callable[[str], Object]
"""Path -> answer."""


class Both(NamedTuple):
    """Two adapters over one Prometheus."""

    stage: Stage
    peer: Ask
    adapter: Adapter
    adapter_client: Cluster


@pytest.fixture(scope="module")
def both(running_stage: Stage) -> Iterator[Both]:
    """A workload of two pods; v1beta1 of custom metrics is prometheus-adapter's."""
    stage = running_stage
    with ExitStack() as stack:
        stack.callback(stage.clear)
        stage.load.pin(SPACE, "inference", 63)
        stage.workload(SPACE, 2, 0, low=1, high=4, metric="gpu_busiest", target="70")
        stage.wait_size(SPACE, 2)
        names = sorted(pod.name for pod in stage.pods() if pod.namespace == SPACE)
        pages = ServerPages({name: 3 + index for index, name in enumerate(names)})
        stack.callback(pages.stop)
        ports = {node: exporter.port for node, exporter in stage.exporters.items()}
        store = Prometheus(
            stage.folder, SPACE, ports, honor_labels=False, jobs=[pages.pods_job(SPACE)]
        )
        store.start()
        stack.callback(store.stop)
        scraped = (
            (f'{{__name__=~"DCGM_FI_.*",exported_namespace="{SPACE}"}}', 3 * len(names)),
            (f'{{__name__=~"vllm:.*",namespace="{SPACE}"}}', 2 * len(names)),
        )
        for query, series in scraped:
            wait_until(partial(_has, store, query, series), f"Prometheus has {query}")
        peer = Peer(stage.folder, stage.plane.kubeconfig, store)
        peer.process.start()
        stack.callback(peer.process.stop)
        adapter = _ours(stage, store)
        adapter.start()
        stack.callback(adapter.stop)
        client = adapter.client(stage.plane.proxy_client)
        stack.callback(client.close)
        stack.callback(_restore, stage)
        _give_to_peer(stage, peer.port)
        yield Both(stage, _directly(stage, peer.port, stack), adapter, client)


def _has(store: Prometheus, query: str, series: int) -> bool:
    return store.count(query) == series


def _ours(stage: Stage, store: Prometheus) -> Adapter:
    """Ours as the page configures it, but for the address, and times as of a test."""
    settings = ours()
    queries = {"url": store.url, "interval": "500ms", "scrape_interval": "1s"}
    source = {"kind": settings.pop("source")["kind"], "prometheus": queries}
    return Adapter(stage.folder, "adapter-migration", stage.kubeconfig(), source, **settings)


def _directly(stage: Stage, port: int, stack: ExitStack) -> Ask:
    """Ask prometheus-adapter as the front proxy; its certificate is of its own making."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    pair = stage.plane.proxy_client
    context.load_cert_chain(pair.cert, pair.key)
    headers = {"X-Remote-User": "tester", "X-Remote-Group": "system:masters"}
    client = stack.enter_context(
        httpx.Client(
            base_url=f"https://localhost:{port}",
            verify=context,
            headers=headers,
            trust_env=False,
            timeout=60,
        )
    )

    def ask(path: str) -> Object:
        answer = client.get(path)
        if answer.status_code != 200:
            raise RefusedError(answer)
        body: Object = answer.json()
        return body

    return ask


def _give_to_peer(stage: Stage, port: int) -> None:
    """As its own chart has it: v1beta1 alone, not verified."""
    _unregister(stage)
    stage.admin.create(
        {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": "v1beta1.custom.metrics.k8s.io"},
            "spec": {
                "group": "custom.metrics.k8s.io",
                "version": "v1beta1",
                "groupPriorityMinimum": 100,
                "versionPriority": 100,
                "insecureSkipTLSVerify": True,
                "service": {"name": SERVICE, "namespace": NAMESPACE, "port": port},
            },
        }
    )
    wait_available(stage.admin, CUSTOM[1:])


def _unregister(stage: Stage) -> None:
    for group, version, _ in CUSTOM:
        stage.admin.delete(f"{APISERVICES}/{version}.{group}")


def _restore(stage: Stage) -> None:
    """The stage's own adapter is asked again."""
    _unregister(stage)
    register_group(stage.admin, stage.adapter.port, stage.adapter.ca.read_bytes(), CUSTOM)
    wait_available(stage.admin)


def custom(ask: Ask, name: str) -> dict[str, str]:
    """Ask for a metric of all pods of the namespace: pod -> quantity."""
    try:
        items = ask(f"{PODS_PATH}/{name}")["items"]
    except RefusedError:
        return {}
    return {item["describedObject"]["name"]: item["value"] for item in items}


def external(ask: Ask, name: str) -> float:
    """Ask for an external metric and add its series up, as the HPA controller does."""
    try:
        items = ask(f"{EXTERNAL}/{name}")["items"]
    except RefusedError:
        return -1.0
    return sum(float(item["value"]) for item in items)


@pytest.mark.parametrize(("theirs", "mine"), CUSTOM_NAMES)
def test_a_custom_metric_has_the_same_values(both: Both, theirs: str, mine: str) -> None:
    """Each pod's number under the name of the rule and under that of the page."""
    wanted = wait_until(lambda: _of_both_pods(custom(both.peer, theirs)), f"{theirs} there")
    wait_until(lambda: custom(both.adapter_client.get, mine) == wanted, f"{mine} is {wanted} here")


@pytest.mark.parametrize(("theirs", "mine"), EXTERNAL_NAMES)
def test_an_external_metric_has_the_same_sum(both: Both, theirs: str, mine: str) -> None:
    wait_until(lambda: external(both.peer, theirs) == 3 + 4, f"{theirs} is 7 there")
    wait_until(lambda: external(both.adapter_client.get, mine) == 3 + 4, f"{mine} is 7 here")


def test_the_api_is_taken_over_and_the_workload_keeps_its_replicas(both: Both) -> None:
    """The last step of the page, under an HPA that asks every second."""
    stage, admin = both.stage, both.stage.admin
    wait_until(lambda: _of_both_pods(custom(admin.get, "gpu_busiest")), "the API server asks them")
    stage.wait_active(SPACE, "True", "ValidMetricFound")
    _unregister(stage)
    stage.wait_active(SPACE, "False", "FailedGetPodsMetric")
    ca = both.adapter.ca.read_bytes()
    register_group(admin, both.adapter.port, ca, CUSTOM)
    wait_available(admin)
    stage.wait_active(SPACE, "True", "ValidMetricFound")
    wait_until(lambda: _of_both_pods(custom(admin.get, "gpu_busiest")), "the API server asks us")
    assert stage.sizes[SPACE] == [2]


def _of_both_pods(values: dict[str, str]) -> dict[str, str] | None:
    return values if len(values) == 2 else None
