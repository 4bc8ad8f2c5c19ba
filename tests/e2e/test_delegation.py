"""The real prometheus-adapter and the real metrics server of KEDA behind ours."""

from __future__ import annotations

import os
import signal
import ssl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from typing import NamedTuple

import httpx
import pytest

from tests.e2e import chart
from tests.e2e.adapterprocess import Adapter
from tests.e2e.apiservice import (
    CUSTOM,
    EXTERNAL,
    NAMESPACE,
    SERVICE,
    ensure_namespace,
    register_group,
    wait_available,
)
from tests.e2e.cluster import Cluster, Object, RefusedError
from tests.e2e.keda import NAMESPACE as KEDA_NAMESPACE
from tests.e2e.keda import SCALED, Keda, scaled_object
from tests.e2e.keda import SERVICE as KEDA_SERVICE
from tests.e2e.migration import Peer, ServerPages
from tests.e2e.process import wait_until
from tests.e2e.prometheus import Prometheus
from tests.e2e.serverside import apply
from tests.e2e.stage import SCRAPE, Stage, deployment

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

SPACE, QUEUE = "delegated", "delegated-queue"
APISERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
CUSTOM_API = "/apis/custom.metrics.k8s.io"
EXTERNAL_API = "/apis/external.metrics.k8s.io/v1beta1"
ACCOUNT = f"{SERVICE}-delegation"


class Delegated(NamedTuple):
    """Ours in front of the two others."""

    stage: Stage
    adapter: Adapter
    peer: Peer
    keda: Keda
    peer_client: httpx.Client
    keda_client: httpx.Client
    pages: ServerPages


@pytest.fixture(scope="module")
def delegated(running_stage: Stage) -> Iterator[Delegated]:
    """A workload on a metric of prometheus-adapter, and one on a metric of KEDA."""
    stage = running_stage
    with ExitStack() as stack:
        stack.callback(stage.clear)
        stage.workload(SPACE, 2, 100, low=1, high=5, metric="gpu_busiest", target="70")
        stage.wait_size(SPACE, 2)
        pages = ServerPages({"queue-0": 4})
        stack.callback(pages.stop)
        ports = {node: exporter.port for node, exporter in stage.exporters.items()}
        store = Prometheus(
            stage.folder, SPACE, ports, honor_labels=False, jobs=[pages.pods_job(QUEUE)]
        )
        store.start()
        stack.callback(store.stop)
        peer = Peer(stage.folder, stage.plane.kubeconfig, store, name="delegate")
        peer.process.start()
        stack.callback(peer.process.stop)
        _queue(stage)
        keda = stack.enter_context(Keda(stage.folder, stage.plane))
        prometheus = {
            "type": "prometheus",
            "metadata": {
                "serverAddress": store.url,
                "query": f'sum(vllm:num_requests_waiting{{namespace="{QUEUE}"}})',
                "threshold": "2",
            },
        }
        stage.admin.create(scaled_object(QUEUE, [prometheus], low=1))
        stack.callback(stage.admin.delete, f"{SCALED.format(ns=QUEUE)}/inference")
        adapter = _ours(stage, peer, keda)
        adapter.start()
        stack.callback(adapter.stop)
        stack.callback(_restore, stage)
        _register(stage, adapter)
        yield Delegated(
            stage,
            adapter,
            peer,
            keda,
            _directly(stage, peer.port, stack),
            _directly(stage, keda.port, stack),
            pages,
        )


def _queue(stage: Stage) -> None:
    ensure_namespace(stage.admin, QUEUE)
    made = deployment(QUEUE, 1)
    for container in made["spec"]["template"]["spec"]["containers"]:
        container.pop("resources", None)
    stage.admin.create(made)


def _ours(stage: Stage, peer: Peer, keda: Keda) -> Adapter:
    """Ours with the chart's account for delegates."""
    config = {
        "delegation": {"delegates": [{"name": "peer", "service": {"namespace": "m", "name": "p"}}]}
    }
    for row in chart.render({"config": config}, only=("delegation",)):
        apply(stage.admin, row, "")
    wait_until(peer.certificate.exists, "prometheus-adapter has a certificate")
    delegates: list[Object] = [
        {
            "name": "peer",
            "groups": ["custom", "external"],
            "service": {"namespace": "monitoring", "name": "prometheus-adapter"},
            "address": f"localhost:{peer.port}",
            "server_name": "localhost",
            "ca_file": str(peer.certificate),
        },
        {
            "name": "keda",
            "groups": ["external"],
            "service": {"namespace": KEDA_NAMESPACE, "name": KEDA_SERVICE},
            "address": f"localhost:{keda.port}",
            "ca": keda.ca.pem.decode(),
        },
    ]
    delegation = {
        "delegates": delegates,
        "service_account": f"{NAMESPACE}/{ACCOUNT}",
        "own_service": f"{NAMESPACE}/{SERVICE}",
    }
    return Adapter(
        stage.folder,
        "adapter-delegating",
        stage.kubeconfig(),
        SCRAPE,
        external={"enabled": True},
        delegation=delegation,
    )


def _directly(stage: Stage, port: int, stack: ExitStack) -> httpx.Client:
    """Ask another server as the front proxy does."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    pair = stage.plane.proxy_client
    context.load_cert_chain(pair.cert, pair.key)
    headers = {"X-Remote-User": "tester", "X-Remote-Group": "system:masters"}
    url = f"https://localhost:{port}"
    made = httpx.Client(base_url=url, verify=context, headers=headers, trust_env=False, timeout=60)
    return stack.enter_context(made)


def _unregister(stage: Stage) -> None:
    for group, version, _ in (*CUSTOM, *EXTERNAL):
        stage.admin.delete(f"{APISERVICES}/{version}.{group}")


def _register(stage: Stage, adapter: Adapter) -> None:
    _unregister(stage)
    for rows in (CUSTOM, EXTERNAL):
        register_group(stage.admin, adapter.port, adapter.ca.read_bytes(), rows)
        wait_available(stage.admin, rows)


def _restore(stage: Stage) -> None:
    """The stage's own adapter is asked again."""
    _unregister(stage)
    register_group(stage.admin, stage.adapter.port, stage.adapter.ca.read_bytes(), CUSTOM)
    wait_available(stage.admin)


def values(found: Object) -> dict[str, str]:
    """Object -> quantity."""
    return {
        item.get("describedObject", {}).get("name", item.get("metricName", "")): item["value"]
        for item in found["items"]
    }


def ask(client: Cluster, path: str) -> dict[str, str]:
    """The values at a path; none if there is an error."""
    try:
        return values(client.get(path))
    except RefusedError:
        return {}


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_custom_values_equal_those_of_prometheus_adapter(
    delegated: Delegated, version: str
) -> None:
    path = f"{CUSTOM_API}/{version}/namespaces/{SPACE}/pods/%2A/gpu_busiest"
    admin = delegated.stage.admin

    def equal() -> bool:
        return values(delegated.peer_client.get(path).json()) == (ours := ask(admin, path)) and (
            len(ours) > 0
        )

    wait_until(equal, f"{version} has equal values")


def test_external_values_equal_those_of_both(delegated: Delegated) -> None:
    admin = delegated.stage.admin
    path = f"{EXTERNAL_API}/namespaces/{QUEUE}/vllm_queue"
    wait_until(lambda: ask(admin, path) == {"vllm_queue": "4"}, "prometheus-adapter's is here")
    assert values(delegated.peer_client.get(path).json()) == {"vllm_queue": "4"}
    name = (
        f"s0-prometheus?labelSelector={'scaledobject.keda.sh/name'.replace('/', '%2F')}%3Dinference"
    )
    keda = f"{EXTERNAL_API}/namespaces/{QUEUE}/{name}"
    wait_until(lambda: ask(admin, keda) == {"s0-prometheus": "4"}, "KEDA's is here")
    assert values(delegated.keda_client.get(keda).json()) == {"s0-prometheus": "4"}


def test_discovery_is_merged(delegated: Delegated) -> None:
    admin = delegated.stage.admin

    def names(path: str) -> set[str]:
        return {row["name"] for row in admin.get(path)["resources"]}

    wait_until(
        lambda: {"pods/gpu_utilization", "pods/gpu_busiest"} <= names(f"{CUSTOM_API}/v1beta2"),
        "custom metrics of both are listed",
    )
    wait_until(
        lambda: {"gpu_utilization", "vllm_queue", "externalmetrics"} <= names(EXTERNAL_API),
        "external metrics of the three are listed",
    )


def test_hpas_scale_on_the_metrics_of_both(delegated: Delegated) -> None:
    """100 percent a pod against 70 scales out until the load is spread; 4 against 2 is two pods."""
    stage = delegated.stage
    stage.wait_active(SPACE, "True", "ValidMetricFound")
    stage.load.set(SPACE, 280)
    stage.wait_size(SPACE, 4)
    wait_until(lambda: stage.sizes[QUEUE][-1:] == [2], "KEDA's HPA has scaled to 2")
    delegated.pages.waiting = {"queue-0": 6}
    wait_until(lambda: stage.sizes[QUEUE][-1:] == [3], "KEDA's HPA has scaled to 3")


def test_the_account_of_the_token_may_read_metrics_only(delegated: Delegated) -> None:
    """What a delegate gains that keeps the token."""
    stage = delegated.stage
    token = stage.admin.token(NAMESPACE, ACCOUNT)
    headers = {"Authorization": f"Bearer {token}"}
    url = str(stage.admin.client.base_url)
    context = ssl.create_default_context(cafile=stage.plane.ca.cert)
    with httpx.Client(base_url=url, verify=context, headers=headers, trust_env=False) as client:
        codes = {
            path: client.get(path).status_code
            for path in (
                "/api/v1/pods",
                f"/api/v1/namespaces/{NAMESPACE}/secrets",
                f"{CUSTOM_API}/v1beta2/namespaces/{SPACE}/pods/%2A/gpu_busiest",
            )
        }
    assert list(codes.values()) == [403, 403, 200]


def test_a_delegate_that_hangs_delays_no_other_name(delegated: Delegated) -> None:
    """Answers of KEDA and of this adapter arrive while the request to prometheus-adapter waits."""
    stage, pid = delegated.stage, delegated.peer.process.pid
    slow = f"{CUSTOM_API}/v1beta2/namespaces/{SPACE}/pods/%2A/gpu_busiest"
    own = f"{CUSTOM_API}/v1beta2/namespaces/{SPACE}/pods/%2A/gpu_utilization"
    keda = f"{EXTERNAL_API}/namespaces/{QUEUE}/s0-prometheus"
    keda += "?labelSelector=scaledobject.keda.sh%2Fname%3Dinference"
    os.kill(pid, signal.SIGSTOP)
    try:
        with ThreadPoolExecutor(4) as pool:
            waiting = [pool.submit(ask, stage.admin, slow) for _ in range(4)]
            assert ask(stage.admin, own)
            assert ask(stage.admin, keda)
            assert not any(future.done() for future in waiting)
            # Its timeout ends the wait: the requests get 503.
            assert [future.result() for future in waiting] == [{}] * 4
    finally:
        os.kill(pid, signal.SIGCONT)
    wait_until(partial(ask, stage.admin, slow), "prometheus-adapter answers again")


def test_a_stopped_delegate_fails_its_own_metrics_until_it_is_back(delegated: Delegated) -> None:
    stage = delegated.stage
    lost = f"{CUSTOM_API}/v1beta2/namespaces/{SPACE}/pods/%2A/gpu_busiest"
    own = f"{CUSTOM_API}/v1beta2/namespaces/{SPACE}/pods/%2A/gpu_utilization"
    keda = f"{EXTERNAL_API}/namespaces/{QUEUE}/s0-prometheus"
    keda += "?labelSelector=scaledobject.keda.sh%2Fname%3Dinference"
    delegated.peer.process.stop()
    try:
        with pytest.raises(RefusedError, match="delegate peer did not answer") as refused:
            stage.admin.get(lost)
        assert refused.value.code == 503
        # Without the right, the answer is 403: the delegate is not asked.
        client = delegated.adapter.client(stage.plane.proxy_client, "nobody", "nobodies")
        with pytest.raises(RefusedError) as forbidden:
            client.get(lost)
        client.close()
        assert forbidden.value.code == 403
        assert ask(stage.admin, own)
        assert ask(stage.admin, keda)
    finally:
        delegated.peer.process.start()
    wait_until(partial(ask, stage.admin, lost), "prometheus-adapter's metrics are back")
