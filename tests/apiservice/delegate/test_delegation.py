"""Metrics of other servers through this one: a real TLS server is the delegate."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from apiservice.delegate.conversion import metric_list
from apiservice.delegate.delegate import KEPT, Delegate
from apiservice.delegate.delegation import Delegation, merge_rows
from apiservice.delegate.options import MAX_ROWS
from apiservice.errors import MetricUnknown
from apiservice.provider import GroupResource, MetricResource
from apiservice.wire.delegationheader import DELEGATED
from tests.apiservice.delegate.server import (
    FixedToken,
    OtherServer,
    answers,
    custom_list,
    drip,
    forever,
    rows,
    states,
)
from tests.apiservice.world import World, make_world

GROUP = "/apis/custom.metrics.k8s.io"
PODS = f"{GROUP}/v1beta2/namespaces/ns/pods"
HTTP = f"{PODS}/%2A/http_requests"
ASKED = f"{PODS}/*/http_requests"
EXTERNAL = "/apis/external.metrics.k8s.io/v1beta1/namespaces/ns"
OWN = f"{PODS}/%2A/gpu_utilization"


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as made:
        yield made


@pytest.fixture
async def other(tmp_path: Path, stack: AsyncExitStack) -> OtherServer:
    made = OtherServer()
    await made.start(tmp_path, stack)
    made.lists("pods/http_requests")
    made.pages[ASKED] = custom_list("v1beta2", "http_requests", p0="12500m")
    return made


@asynccontextmanager
async def serving(*delegates: Delegate, read: bool = True) -> AsyncIterator[World]:
    """Our server, after the delegates' discovery was read."""
    if read:
        for delegate in delegates:
            await delegate.refresh()
    async for world in make_world(delegation=Delegation(delegates)):
        yield world


async def test_a_metric_of_the_delegate_is_passed_on_byte_by_byte(
    other: OtherServer, stack: AsyncExitStack
) -> None:
    async with serving(other.delegate(stack)) as world:
        response = await world.get(f"{HTTP}?labelSelector=app%3Dweb&limit=5&x=y")
    assert response.status_code == 200
    assert response.json() == other.pages[ASKED]
    (request,) = other.metrics()
    assert dict(request.query) == {"labelSelector": "app=web"}
    assert "%2A" in request.raw_path


async def test_nothing_of_the_client_but_the_path_and_the_selectors_is_forwarded(
    other: OtherServer, stack: AsyncExitStack
) -> None:
    async with serving(other.delegate(stack)) as world:
        await world.get(
            HTTP, x_remote_user="eve", impersonate_user="admin", cookie="a=b", x_user="hpa"
        )
    (request,) = other.metrics()
    assert set(request.headers) == {
        *("Host", "Accept", "Accept-Encoding", "User-Agent", "Authorization", DELEGATED)
    }
    assert request.headers["Authorization"] == "Bearer good"


async def test_a_client_without_the_right_gets_403_and_the_delegate_is_not_asked(
    other: OtherServer, stack: AsyncExitStack
) -> None:
    async with serving(other.delegate(stack)) as world:
        response = await world.get(HTTP, x_user="u")
    assert response.status_code == 403
    assert other.metrics() == []


async def test_the_right_is_that_to_the_metric_itself(
    other: OtherServer, stack: AsyncExitStack
) -> None:
    async with serving(other.delegate(stack)) as world:
        await world.get(HTTP)
        _, wanted = world.authorizer.asked[-1]
    assert wanted[:6] == ("get", "custom.metrics.k8s.io", "v1beta2", "pods", "http_requests", "*")
    assert wanted.namespace == "ns"


async def test_an_own_metric_is_never_delegated(other: OtherServer, stack: AsyncExitStack) -> None:
    other.lists("pods/gpu_utilization")
    async with serving(other.delegate(stack)) as world:
        assert (await world.get(OWN)).status_code == 200
        assert (await world.get(f"{PODS}/p9/gpu_utilization")).status_code == 404
    assert other.metrics() == []


async def test_a_delegated_answer_is_not_kept(other: OtherServer, stack: AsyncExitStack) -> None:
    async with serving(other.delegate(stack)) as world:
        await world.get(HTTP)
        other.pages[ASKED] = custom_list("v1beta2", "http_requests", p0="99")
        response = await world.get(HTTP)
    assert response.json()["items"][0]["value"] == "99"


async def test_a_metric_that_becomes_unknown_is_delegated_from_then_on(
    other: OtherServer, stack: AsyncExitStack
) -> None:
    other.lists("pods/gpu_utilization")
    mine = f"{PODS}/*/gpu_utilization"
    other.pages[mine] = custom_list("v1beta2", "gpu_utilization", p7="7")
    async with serving(other.delegate(stack)) as world:
        await world.get(OWN)
        world.custom.failure = MetricUnknown("gpu_utilization", "pods")
        world.custom.version += 1
        response = await world.get(OWN)
    assert response.json()["items"][0]["describedObject"]["name"] == "p7"


async def test_discovery_lists_own_metrics_then_the_delegates(
    other: OtherServer, stack: AsyncExitStack
) -> None:
    other.lists("pods/gpu_utilization", "pods/http_requests", "ingresses.networking.k8s.io/hits")
    other.lists_external("queue_length")
    async with serving(other.delegate(stack)) as world:
        names = [row["name"] for row in (await world.get(f"{GROUP}/v1beta2")).json()["resources"]]
        external = (await world.get("/apis/external.metrics.k8s.io/v1beta1")).json()["resources"]
        whole = await world.get(
            "/apis", accept="application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        )
    assert names == [
        *("pods/gpu_utilization", "nodes/gpu_utilization", "namespaces/gpu_utilization"),
        *("pods/http_requests", "ingresses.networking.k8s.io/hits"),
    ]
    assert [row["name"] for row in external] == ["gpu_queue", "queue_length"]
    assert "http_requests" in whole.text


async def test_a_server_that_delegates_sees_own_metrics_only(
    other: OtherServer, stack: AsyncExitStack
) -> None:
    """Otherwise two servers that delegate to each other would list lost metrics forever."""
    async with serving(other.delegate(stack)) as world:
        response = await world.get(f"{GROUP}/v1beta2", **{DELEGATED.replace("-", "_"): "1"})
    assert "http_requests" not in response.text
    assert "gpu_utilization" in response.text


async def test_a_loop_ends_with_508(other: OtherServer, stack: AsyncExitStack) -> None:
    delegate = other.delegate(stack)
    delegation = Delegation([delegate])
    await delegate.refresh()
    async for world in make_world(delegation=delegation):
        response = await world.get(HTTP, x_metrics_delegated="1")
        unknown = await world.get(f"{PODS}/%2A/nobody_has_it", x_metrics_delegated="1")
    assert (response.status_code, unknown.status_code) == (508, 404)
    assert "would delegate it to other" in response.json()["message"]
    assert delegation.loops == 1
    assert other.metrics() == []


async def test_the_other_version_is_asked_and_converted(
    other: OtherServer, stack: AsyncExitStack
) -> None:
    other.pages.clear()
    other.lists("pods/http_requests", versions=("v1beta1",))
    path = ASKED.replace("v1beta2", "v1beta1")
    other.pages[path] = custom_list("v1beta1", "http_requests", p0="12500m")
    async with serving(other.delegate(stack)) as world:
        response = await world.get(HTTP)
    assert response.json() == custom_list("v1beta2", "http_requests", p0="12500m")


async def test_404_of_the_first_moves_on_to_the_second(
    tmp_path: Path, other: OtherServer, stack: AsyncExitStack
) -> None:
    second = OtherServer()
    await second.start(tmp_path / "second", stack)
    second.lists("pods/http_requests")
    second.pages[ASKED] = custom_list("v1beta2", "http_requests", p1="1")
    del other.pages[ASKED]
    first, then = other.delegate(stack, name="first"), second.delegate(stack, name="then")
    async with serving(first, then) as world:
        response = await world.get(HTTP)
    assert response.json() == second.pages[ASKED]
    assert len(other.metrics()) == 1
    assert (first.outcomes["not_found"], then.outcomes["ok"]) == (1, 1)


async def test_a_metric_that_nobody_lists_is_the_own_404(
    other: OtherServer, stack: AsyncExitStack
) -> None:
    async with serving(other.delegate(stack)) as world:
        pods = await world.get(f"{PODS}/%2A/nobody_has_it")
        services = await world.get(f"{GROUP}/v1beta2/namespaces/ns/services/s/http_requests")
    assert pods.json()["message"] == "the server could not find the metric nobody_has_it for pods"
    assert services.status_code == 404
    assert other.metrics() == []


async def test_names_are_asked_without_a_list(other: OtherServer, stack: AsyncExitStack) -> None:
    other.pages = {ASKED: other.pages[ASKED]}
    async with serving(other.delegate(stack, names=("http_*",)), read=False) as world:
        assert (await world.get(HTTP)).status_code == 200
        assert (await world.get(f"{PODS}/%2A/other")).status_code == 404
    assert len(other.metrics()) == 1


async def test_an_unread_list_is_503_and_not_a_false_404(
    other: OtherServer, stack: AsyncExitStack
) -> None:
    other.pages[f"{GROUP}/v1beta2"] = states(500, "no Prometheus")
    async with serving(other.delegate(stack)) as world:
        response = await world.get(HTTP)
        own = await world.get(OWN)
    assert (response.status_code, own.status_code) == (503, 200)
    assert (
        "the metrics of delegate other are not known: status 500 to discovery: no Prometheus"
        in (response.json()["message"])
    )
    assert "retry-after" not in response.headers


async def test_keda_lists_one_name_for_all_external_metrics(
    other: OtherServer, stack: AsyncExitStack
) -> None:
    other.lists_external("externalmetrics")
    answer = {
        "kind": "ExternalMetricValueList",
        "apiVersion": "external.metrics.k8s.io/v1beta1",
        "items": [{"metricName": "s0-x", "timestamp": None, "value": "3"}],
    }
    other.pages[f"{EXTERNAL}/s0-x"] = answer
    async with serving(other.delegate(stack)) as world:
        response = await world.get(f"{EXTERNAL}/s0-x?labelSelector=scaledobject.keda.sh%2Fname%3Da")
    assert response.json() == answer
    assert other.metrics()[0].query["labelSelector"] == "scaledobject.keda.sh/name=a"


BAD: dict[str, tuple[Any, int, str, str]] = {
    "its own error": (states(500, "rate limited"), 500, "rate limited", "error"),
    "forbidden": (states(403, "no right"), 503, "it refused this server (403)", "refused"),
    "html": (answers(200, "<html>", "text/html"), 503, "text/html, not with JSON", "invalid"),
    "html error": (answers(502, "<p>", "text/html"), 503, "status 502 with text/html", "invalid"),
    "no status": (answers(500, "{}"), 503, "without a Status object", "invalid"),
    "no JSON": (answers(200, "{"), 503, "is not a MetricValueList", "invalid"),
    "another kind": (rows("v1"), 503, "is not a MetricValueList", "invalid"),
    "another version": (
        custom_list("v1beta1", "http_requests"), 503, "is a MetricValueList of", "invalid",
    ),
    "redirect": (answers(302, Location="https://127.0.0.1:1/"), 503, "redirect", "redirect"),
    "huge": (answers(200, " " * (1 << 17)), 503, "longer than 65536 bytes", "too_large"),
    "compressed": (
        answers(200, "{}", **{"Content-Encoding": "gzip"}), 503, "not with JSON", "invalid",
    ),
    "hang": (forever, 503, "no answer within 0.5 s", "timeout"),
    "drip": (drip, 503, "no answer within 0.5 s", "timeout"),
}  # fmt: skip


@pytest.mark.parametrize(("page", "code", "text", "outcome"), BAD.values(), ids=BAD)
async def test_a_bad_answer_names_the_delegate_and_the_cause(
    page: Any, code: int, text: str, outcome: str, other: OtherServer, stack: AsyncExitStack
) -> None:
    delegate = other.delegate(stack, max_bytes=1 << 16)
    await delegate.refresh()
    # Only what never ends is short of time: on a busy machine, a handshake alone may take longer.
    seconds = 0.5 if outcome == "timeout" else 60.0
    limited = other.delegate(stack, max_bytes=1 << 16, timeout=seconds)
    limited._listings = delegate._listings
    other.pages[ASKED] = page
    async with serving(limited, read=False) as world:
        response = await world.get(HTTP)
        own = await world.get(OWN)
    assert (response.status_code, own.status_code) == (code, 200)
    assert text in response.json()["message"]
    assert code == 500 or "delegate other did not answer" in response.json()["message"]
    assert "good" not in response.text
    assert limited.outcomes == {outcome: 1}


async def test_a_stopped_delegate_is_unreachable(tmp_path: Path, stack: AsyncExitStack) -> None:
    other = OtherServer()
    async with AsyncExitStack() as short:
        await other.start(tmp_path, short)
    delegate = other.delegate(stack, names=("*",))
    async with serving(delegate, read=False) as world:
        response = await world.get(HTTP)
    assert response.status_code == 503
    assert "cannot connect to 127.0.0.1" in response.json()["message"]
    assert delegate.outcomes == {"unreachable": 1}


async def test_a_certificate_of_another_name_is_refused(
    other: OtherServer, stack: AsyncExitStack
) -> None:
    delegate = other.delegate(stack, names=("*",), server_name="prometheus-adapter.monitoring.svc")
    async with serving(delegate, read=False) as world:
        response = await world.get(HTTP)
    assert response.status_code == 503
    assert "certificate verify failed" in response.json()["message"]
    assert delegate.outcomes == {"untrusted": 1}
    assert other.asked == []


async def test_a_401_is_repeated_once_with_another_token(
    other: OtherServer, stack: AsyncExitStack
) -> None:
    credential = FixedToken("expired", "good")
    delegate = other.delegate(stack, credential, names=("*",))
    async with serving(delegate, read=False) as world:
        response = await world.get(HTTP)
        other.tokens.clear()
        refused = await world.get(HTTP)
    assert (response.status_code, refused.status_code) == (200, 503)
    assert "it refused this server (401): Unauthorized" in refused.json()["message"]
    assert len(other.metrics()) == 3


async def test_a_hanging_delegate_holds_up_nobody_else(
    tmp_path: Path, other: OtherServer, stack: AsyncExitStack
) -> None:
    """100 requests of a namespace for one delegate: it has half of the places and a quarter of the
    queue, and others are answered."""
    slow = OtherServer()
    await slow.start(tmp_path / "slow", stack)
    slow.lists("pods/slow")
    arrived = asyncio.Semaphore(0)

    async def hang(_: Any) -> Any:
        arrived.release()
        await asyncio.Event().wait()

    slow.pages[f"{PODS}/*/slow"] = hang
    hanging = slow.delegate(stack, name="slow", at_once=16, waiting=64, timeout=30.0)
    async with serving(hanging, other.delegate(stack)) as world:
        tasks = [asyncio.create_task(world.get(f"{PODS}/%2A/slow?n={n}")) for n in range(100)]
        for _ in range(8):
            await arrived.acquire()
        refused, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        assert (await world.get(HTTP)).status_code == 200
        assert (await world.get(OWN)).status_code == 200
        assert hanging.in_flight == 24
        assert len(slow.metrics()) == 8
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    assert {task.result().status_code for task in refused} == {503}
    assert hanging.outcomes["overloaded"] == 76
    assert hanging.in_flight == 0


async def test_a_delegate_that_never_shakes_hands_is_left(
    other: OtherServer, stack: AsyncExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apiservice.delegate.transport._CONNECT", 0.2)
    known = other.delegate(stack)
    await known.refresh()
    held: list[asyncio.StreamWriter] = []
    silent = await asyncio.start_server(lambda _, writer: held.append(writer), "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    mute = other.delegate(stack, url=f"https://127.0.0.1:{port}", timeout=60.0)
    mute._listings = known._listings
    async with silent, serving(mute, read=False) as world:
        response = await world.get(HTTP)
        for writer in held:
            writer.close()
    assert response.status_code == 503
    assert "no connection in time" in response.json()["message"]
    assert mute.outcomes == {"timeout": 1}


async def test_a_failed_discovery_keeps_the_last_list_and_is_logged_once(
    other: OtherServer, stack: AsyncExitStack
) -> None:
    delegate = other.delegate(stack)
    await delegate.refresh()
    kept = other.pages.pop(f"{GROUP}/v1beta2")
    other.pages[f"{GROUP}/v1beta2"] = answers(200, '{"kind":"APIResourceList"')
    with capture_logs() as logs:
        await delegate.refresh()
        await delegate.refresh()
    assert [line["event"] for line in logs] == ["discovery of a delegate failed"]
    assert "is malformed" in logs[0]["error"]
    assert delegate.discovery_failures == 2
    assert delegate.claims("custom.metrics.k8s.io", "pods", "http_requests")
    other.pages[f"{GROUP}/v1beta2"] = kept
    await delegate.refresh()
    assert delegate.problem == ""


async def test_a_list_ends_by_age(other: OtherServer, stack: AsyncExitStack) -> None:
    now = [0.0]
    made = other.delegate(stack)
    delegate = Delegate(made.options, made._transport, lambda: now[0])
    await delegate.refresh()
    now[0] = KEPT + 1
    assert delegate.claims("custom.metrics.k8s.io", "pods", "http_requests") is None
    assert delegate.listing("custom.metrics.k8s.io") is None


@pytest.mark.parametrize(
    ("page", "text"),
    [
        (rows("custom.metrics.k8s.io/v1beta2", *(["pods/a"] * (MAX_ROWS + 1))), "20000 rows"),
        (answers(200, " " * (9 << 20)), "longer than 8388608 bytes"),
        (rows("metrics.k8s.io/v1beta1"), "is a APIResourceList of metrics.k8s.io/v1beta1"),
    ],
)
async def test_a_discovery_beyond_its_bounds_is_rejected(
    page: Any, text: str, other: OtherServer, stack: AsyncExitStack
) -> None:
    other.pages[f"{GROUP}/v1beta2"] = page
    delegate = other.delegate(stack)
    await delegate.refresh()
    assert text in delegate.problem


async def test_rows_that_do_not_name_a_metric_are_left_out(
    other: OtherServer, stack: AsyncExitStack
) -> None:
    other.lists("pods", "pods/a/b", "pods/", "pods/\n", "pods/" + "x" * 600, "pods/good")
    delegate = other.delegate(stack)
    await delegate.refresh()
    listing = delegate.listing("custom.metrics.k8s.io")
    assert listing is not None
    assert [row.metric for row in listing.rows] == ["good"]


@pytest.mark.parametrize("name", ["..", ".", "%2e%2e"])
async def test_no_part_of_a_path_leads_elsewhere(
    name: str, other: OtherServer, stack: AsyncExitStack
) -> None:
    async with serving(other.delegate(stack)) as world:
        await world.get(
            f"{GROUP}/v1beta2/namespaces/{name.replace('.', '%2E')}/pods/*/http_requests"
        )
    assert all(".." not in request.raw_path for request in other.metrics())


NAMES = st.text(min_size=1, max_size=20)
ITEMS = st.lists(
    st.fixed_dictionaries(
        {
            "describedObject": st.fixed_dictionaries({"kind": NAMES, "name": NAMES}),
            "metricName": NAMES,
            "timestamp": NAMES,
            "value": NAMES,
            "selector": st.none()
            | st.fixed_dictionaries({"matchLabels": st.dictionaries(NAMES, NAMES)}),
        },
        optional={"window": st.integers(0, 10**9)},
    ),
    max_size=5,
)


@given(ITEMS)
def test_conversion_there_and_back_changes_nothing(items: list[dict[str, Any]]) -> None:
    group = "custom.metrics.k8s.io"
    first = {
        "kind": "MetricValueList",
        "apiVersion": f"{group}/v1beta1",
        "metadata": {},
        "items": items,
    }
    body = json.dumps(first).encode()
    converted = metric_list(body, group, "v1beta1", "v1beta2")
    assert json.loads(metric_list(converted, group, "v1beta2", "v1beta1")) == first
    for before, after in zip(items, json.loads(converted)["items"], strict=True):
        assert after["metric"] == {"name": before["metricName"], "selector": before["selector"]}
        assert after.get("windowSeconds") == before.get("window")


ROWS = st.lists(
    st.builds(
        MetricResource,
        st.sampled_from([GroupResource("pods", ""), GroupResource("nodes", "")]),
        st.sampled_from("abcd"),
        st.booleans(),
    )
)


@given(ROWS, st.lists(ROWS, max_size=3))
def test_merged_rows_have_one_scope_per_resource_and_no_duplicates(
    own: list[MetricResource], lists: list[list[MetricResource]]
) -> None:
    merged = merge_rows(own, lists)
    assert len({(row.resource, row.metric) for row in merged}) == len(merged)
    assert len({(row.resource, row.namespaced) for row in merged}) == len(
        {row.resource for row in merged}
    )
    for row in own[:1]:
        assert merged[0] == row
