"""The demo's API server: who may ask, what it has of the simulation, and what it refuses."""

from __future__ import annotations

import json
import ssl
import stat
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from adapter.demo.certificates import FrontProxy, make_front_proxy
from adapter.demo.cluster import app
from adapter.demo.cluster.app import ClusterApi
from adapter.demo.cluster.listener import Listener
from adapter.demo.cluster.upstream import Upstream
from adapter.demo.state import DemoState
from apiservice.runtime.requesterror import RequestError
from apiservice.tls.authority import new_authority
from tests.apiservice.rawhttp import serving

NOW = 1_767_603_540.0
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
HPAS = "/apis/autoscaling/v2/namespaces/inference/horizontalpodautoscalers"


@pytest.fixture
async def proxy(tmp_path: Path) -> FrontProxy:
    return make_front_proxy(tmp_path, NOW)


@pytest.fixture
async def api(
    state: DemoState, proxy: FrontProxy, tmp_path: Path
) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the application; nothing is behind it."""
    upstream = Upstream("https://127.0.0.1:1", proxy, proxy.ca)
    transport = httpx.ASGITransport(ClusterApi(state, upstream, proxy, "secret"))
    headers = {"Authorization": "Bearer secret"}
    async with httpx.AsyncClient(
        transport=transport, base_url="https://demo", headers=headers
    ) as client:
        yield client
    await upstream.close()


async def items(api: httpx.AsyncClient, path: str, **query: str) -> list[dict[str, Any]]:
    answer = await api.get(path, params=query)
    assert answer.status_code == 200, answer.text
    rows: list[dict[str, Any]] = answer.json()["items"]
    return rows


def names(rows: list[dict[str, Any]]) -> list[str]:
    return [row["metadata"]["name"] for row in rows]


@pytest.mark.parametrize("given", ["", "Bearer wrong", "secret", "Basic secret"])
async def test_only_the_token_of_the_kubeconfig_is_accepted(
    api: httpx.AsyncClient, given: str
) -> None:
    answer = await api.get("/api/v1/pods", headers={"Authorization": given})
    assert answer.status_code == 401
    assert answer.json()["reason"] == "Unauthorized"


async def test_pods_are_selected_by_label_field_and_page(
    api: httpx.AsyncClient, state: DemoState
) -> None:
    chat = await items(api, "/api/v1/namespaces/inference/pods", labelSelector="app=chat")
    assert set(names(chat)) == {pod.name for pod in state.world.fleet.of("chat")}
    placed = await items(api, "/api/v1/pods", fieldSelector="spec.nodeName=h100-1")
    assert {row["spec"]["nodeName"] for row in placed} == {"h100-1"}
    first = (await api.get("/api/v1/pods", params={"limit": "2"})).json()
    rest = await items(api, "/api/v1/pods", **{"continue": first["metadata"]["continue"]})
    assert len(first["items"]) == 2
    assert len(first["items"]) + len(rest) == len(await items(api, "/api/v1/pods"))


async def test_a_pod_that_waits_for_a_gpu_says_so(api: httpx.AsyncClient) -> None:
    waiting = await items(api, "/api/v1/pods", fieldSelector="status.phase=Pending")
    assert waiting
    for pod in waiting:
        condition = pod["status"]["conditions"][0]
        assert (condition["reason"], condition["status"]) == ("Unschedulable", "False")
        about = f"involvedObject.name={pod['metadata']['name']}"
        path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/events"
        reasons = {row["reason"] for row in await items(api, path, fieldSelector=about)}
        assert "FailedScheduling" in reasons


async def test_an_hpa_has_the_status_that_its_controller_decided(
    api: httpx.AsyncClient, state: DemoState
) -> None:
    chat, embed = await items(api, HPAS)
    latest = state.autoscalers[0].latest
    assert latest is not None
    status = chat["status"]
    assert status["desiredReplicas"] == latest.decision.desired
    assert status["currentMetrics"][0]["pods"]["current"] == {"averageValue": "98"}
    assert status["lastScaleTime"]
    conditions = {row["type"]: row for row in embed["status"]["conditions"]}
    assert conditions["ScalingActive"]["reason"] == "FailedGetPodsMetric"
    assert "currentMetrics" not in embed["status"], "a missing value is not 0"


async def test_events_are_the_controllers_own(api: httpx.AsyncClient, state: DemoState) -> None:
    fields = "involvedObject.kind=HorizontalPodAutoscaler,involvedObject.name=chat"
    rows = await items(api, "/api/v1/namespaces/inference/events", fieldSelector=fields)
    scaled = [sync for sync in state.autoscalers[0].syncs if sync.decision.rescale]
    assert [row["message"] for row in rows if row["reason"] == "SuccessfulRescale"] or not scaled
    assert len(rows) == len({sync.decision.desired for sync in scaled})
    fields = "involvedObject.kind=HorizontalPodAutoscaler,involvedObject.name=embed"
    rows = await items(api, "/api/v1/namespaces/inference/events", fieldSelector=fields)
    assert {(row["reason"], row["count"]) for row in rows} == {
        ("FailedGetPodsMetric", 6),
        ("FailedComputeMetricsReplicas", 6),
    }


async def test_times_are_of_the_wall_clock(api: httpx.AsyncClient, state: DemoState) -> None:
    nodes = await items(api, "/api/v1/nodes")
    created = next(row for row in nodes if row["metadata"]["name"] == "h100-1")
    # The simulation began 30 of its seconds before 0, and plays 15 of them a second.
    assert created["metadata"]["creationTimestamp"] == "2026-01-05T08:58:58Z"


async def test_the_scale_of_a_deployment_is_what_its_hpa_reads(api: httpx.AsyncClient) -> None:
    path = "/apis/apps/v1/namespaces/inference/deployments/chat"
    deployment = (await api.get(path)).json()
    scale = (await api.get(f"{path}/scale")).json()
    assert scale["spec"]["replicas"] == deployment["spec"]["replicas"]
    assert scale["status"]["selector"] == "app=chat"
    assert (await api.get(f"{path}x/scale")).status_code == 404


@pytest.mark.parametrize(
    ("path", "columns"),
    [
        ("/api/v1/nodes", 7),
        ("/api/v1/namespaces", 3),
        ("/api/v1/pods", 7),
        ("/api/v1/events", 6),
        ("/api/v1/configmaps", 2),
        ("/apis/apiregistration.k8s.io/v1/apiservices", 4),
        ("/apis/apps/v1/deployments", 5),
        ("/apis/apps/v1/replicasets", 5),
        ("/apis/apps/v1/daemonsets", 4),
        ("/apis/apps/v1/statefulsets", 2),
        ("/apis/autoscaling/v2/horizontalpodautoscalers", 7),
    ],
)
async def test_every_list_is_also_a_table(api: httpx.AsyncClient, path: str, columns: int) -> None:
    table = (await api.get(path, headers={"Accept": TABLE})).json()
    assert table["kind"] == "Table"
    assert {len(row["cells"]) for row in table["rows"]} <= {columns}
    assert len(table["columnDefinitions"]) == columns
    assert bool(table["rows"]) == ("statefulsets" not in path)


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("DELETE", "/api/v1/namespaces/inference/pods/chat", 405),
        ("POST", "/api/v1/namespaces/inference/pods", 405),
        ("PATCH", "/apis/apps/v1/namespaces/inference/deployments/chat/scale", 405),
        ("PUT", "/apis/apps/v1/namespaces/inference/deployments/chat", 405),
        ("GET", "/api/v1/namespaces/inference/pods/chat/proxy/metrics", 404),
        ("GET", "/api/v1/namespaces/gpu-metrics/pods/dcgm-exporter-h100-1:1/proxy/metrics", 404),
        ("POST", "/apis/custom.metrics.k8s.io/v1beta2", 405),
        ("GET", "/api/v1/namespaces/inference/pods?watch=true", 405),
        ("GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", 405),
        ("GET", "/api/v1/secrets", 404),
        ("GET", "/apis/keda.sh/v1alpha1/scaledobjects", 404),
        ("GET", "/apis/autoscaling/v1/horizontalpodautoscalers", 404),
        ("GET", "/api/v1/nodes/none", 404),
        ("GET", "/nothing", 404),
        ("GET", "/api/v1/pods?labelSelector=%21%21", 400),
        ("GET", "/api/v1/pods?fieldSelector=spec.x%3Dy", 400),
        ("GET", "/apis/view.gpu-metrics-adapter.io/v1alpha1/gpus", 503),
        ("GET", "/apis", 503),
    ],
)
async def test_everything_else_is_refused_with_a_status(
    api: httpx.AsyncClient, method: str, path: str, code: int
) -> None:
    answer = await api.request(method, path)
    status = answer.json()
    assert (answer.status_code, status["kind"], status["code"]) == (code, "Status", code)


@pytest.mark.parametrize(
    ("verb", "group", "resource", "allowed"),
    [
        ("list", "", "pods", True),
        ("get", "autoscaling", "horizontalpodautoscalers", True),
        ("list", "view.gpu-metrics-adapter.io", "gpus", True),
        ("create", "", "pods", False),
        ("list", "", "secrets", False),
    ],
)
async def test_the_user_may_read_what_there_is_and_write_nothing(
    api: httpx.AsyncClient, verb: str, group: str, resource: str, allowed: bool
) -> None:
    spec = {"resourceAttributes": {"verb": verb, "group": group, "resource": resource}}
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    answer = await api.post(path, json={"spec": spec})
    assert answer.json()["status"]["allowed"] is allowed


async def test_the_user_has_a_name(api: httpx.AsyncClient) -> None:
    answer = await api.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", json={})
    assert answer.json()["status"]["userInfo"]["username"] == "demo"


async def test_a_review_is_bounded_and_must_be_json(api: httpx.AsyncClient) -> None:
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    json_type = {"Content-Type": "application/json"}
    assert (await api.post(path, content=b"x" * 70_000, headers=json_type)).status_code == 400
    assert (await api.post(path, content=b"[", headers=json_type)).status_code == 400
    assert (await api.post(path, content=b"k8s\0")).status_code == 415


async def test_requests_for_serve_carry_the_user_and_the_proxys_certificate(
    state: DemoState, proxy: FrontProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = new_authority(NOW, days=36500)
    issued = authority.issue(("127.0.0.1",), NOW, days=36500)
    files = {"ca": authority.certificate_pem, "crt": issued.certificate, "key": issued.key}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "crt", tmp_path / "key")
    scopes: list[Any] = []
    body = json.dumps({"kind": "List", "padding": "x" * 200_000}).encode()

    async def echo(scope: Any, receive: Any, send: Any) -> None:
        scopes.append(scope)
        body = json.dumps({"kind": "List", "padding": "x" * 200_000}).encode()
        headers = [(b"content-type", b"application/json"), (b"set-cookie", b"no=1")]
        await send({"type": "http.response.start", "status": 418, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async with serving(echo, lambda: context) as server:
        upstream = Upstream(f"https://127.0.0.1:{server.port}", proxy, tmp_path / "ca")
        listener = Listener(tmp_path / "config", "inference", NOW)
        transport = httpx.ASGITransport(ClusterApi(state, upstream, proxy, listener.token))
        async with httpx.AsyncClient(transport=transport, base_url="https://demo") as client:
            path = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/a/pods/%2A/b"
            headers = {
                "Authorization": f"Bearer {listener.token}",
                "X-Remote-User": "system:admin",
                "Accept": "application/yaml",
            }
            answer = await client.get(f"{path}?labelSelector=app%3Dc", headers=headers)
            monkeypatch.setattr("adapter.demo.cluster.upstream.MOST_BYTES", 1000)
            with pytest.raises(RequestError, match="larger than 1000 bytes"):
                await client.get(path, headers=headers)
        await upstream.close()
    assert (answer.status_code, len(answer.content)) == (418, len(body))
    assert "set-cookie" not in answer.headers
    sent = scopes[0]
    assert (sent["raw_path"], sent["query_string"]) == (path.encode(), b"labelSelector=app%3Dc")
    given = [(name, text) for name, text in sent["headers"]]
    assert [text for name, text in given if name == b"x-remote-user"] == [b"demo"]
    assert (b"accept", b"application/yaml") in given
    assert not [name for name, _ in given if name == b"authorization"]


async def test_the_listener_writes_a_private_kubeconfig_that_works(
    state: DemoState, proxy: FrontProxy, tmp_path: Path
) -> None:
    upstream = Upstream("https://127.0.0.1:1", proxy, proxy.ca)
    kubeconfig = tmp_path / "config"
    listener = Listener(kubeconfig, "inference", time.time())
    await listener.start(ClusterApi(state, upstream, proxy, listener.token))
    try:
        assert stat.S_IMODE(kubeconfig.stat().st_mode) == 0o600
        config = yaml.safe_load(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        context = ssl.create_default_context(cafile=cluster["certificate-authority"])
        async with httpx.AsyncClient(verify=context, trust_env=False) as client:
            headers = {"Authorization": f"Bearer {user['token']}"}
            answer = await client.get(f"{cluster['server']}/version", headers=headers)
        assert answer.json()["gitVersion"].endswith("-demo")
        assert config["contexts"][0]["context"]["namespace"] == "inference"
    finally:
        await listener.stop()


async def test_an_exporters_page_is_read_through_its_pod(
    api: httpx.AsyncClient, state: DemoState, monkeypatch: pytest.MonkeyPatch
) -> None:
    await state.exporters.match({"h100-1", "mig-1"})
    try:
        path = "/api/v1/namespaces/gpu-metrics/pods/dcgm-exporter-{}:metrics/proxy/metrics"
        page = await api.get(path.format("h100-1"))
        assert (page.status_code, page.text) == (200, "page of h100-1\n")
        dead = await api.get(path.format("mig-1"))
        assert (dead.status_code, dead.json()["reason"]) == (503, "ServiceUnavailable")
        monkeypatch.setattr(app, "MOST_BYTES", 8)
        large = await api.get(path.format("h100-1"))
        assert (large.status_code, "more than 8 bytes" in large.text) == (503, True)
    finally:
        await state.exporters.close()
