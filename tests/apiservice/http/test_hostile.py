"""For any bytes, the answer is well-formed and never a 500."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from urllib.parse import quote

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from starlette.types import ASGIApp, Message

from tests.apiservice.world import World, make_world
from tests.examples import bounded


async def ask(
    app: ASGIApp, path: str, query: bytes, method: str, accept: bytes
) -> tuple[int, bytes]:
    """Past any client library, which would tidy up what is hostile."""
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "https",
        "path": path,
        "raw_path": quote(path, errors="replace").encode(),
        "query_string": query,
        "root_path": "",
        "headers": [(b"accept", accept)],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 443),
    }
    await app(scope, receive, send)
    start, *rest = sent
    return start["status"], b"".join(message["body"] for message in rest)


def _well_formed(method: str, status: int, body: bytes) -> bool:
    if method == "HEAD" or status == 304:
        return True
    decoded = msgspec.json.decode(body)
    if "paths" in decoded:
        return True
    if status == 200:
        return str(decoded["kind"]).endswith(("List", "APIGroup"))
    return (decoded["kind"], decoded["code"]) == ("Status", status) and bool(decoded["message"])


_SEGMENTS = st.one_of(
    st.sampled_from(
        [
            "apis",
            "custom.metrics.k8s.io",
            "external.metrics.k8s.io",
            "v1beta1",
            "v1beta2",
            "namespaces",
            "ns",
            "metrics",
            "pods",
            "*",
            "p0",
            "gpu_utilization",
            "gpu_queue",
            ".",
            "..",
            "status",
            "%2A",
            "deployments.apps",
        ]
    ),
    st.sampled_from(["", "a" * 300]),
    st.text(max_size=8),
)
_PATHS = st.lists(_SEGMENTS, max_size=9).map(lambda segments: "/" + "/".join(segments))
_BELOW = st.lists(_SEGMENTS, max_size=5).map(
    lambda segments: "/apis/custom.metrics.k8s.io/v1beta2/namespaces/" + "/".join(segments)
)
_SELECTORS = st.one_of(
    st.text(max_size=20), st.text(alphabet="abin ot=!()<>,1./-", max_size=30)
).map(lambda text: text.encode("utf-8", "surrogatepass"))
_QUERIES = st.one_of(
    st.binary(max_size=60),
    st.tuples(
        st.sampled_from(
            b"labelSelector metricLabelSelector limit watch pretty fieldSelector resourceVersion "
            b"timeoutSeconds continue hash".split()
        ),
        _SELECTORS.map(quote).map(str.encode),
    ).map(b"=".join),
)
_METHODS = st.sampled_from(["GET", "GET", "GET", "HEAD", "POST", "OPTIONS", "TRACE", "get", ""])
_ACCEPTS = st.one_of(
    st.sampled_from([b"", b"*/*", b"application/json;as=Table", b"text/html"]),
    st.binary(max_size=30),
)


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as made:
        yield made


@pytest.fixture(scope="module")
def app(runner: asyncio.Runner) -> ASGIApp:
    worlds = make_world()

    async def first() -> World:
        return await anext(worlds)

    return runner.run(first()).app


_TEXT_PAGES = frozenset({"/healthz", "/livez", "/readyz", "/metrics", "/version"})


@bounded(50)
@given(path=st.one_of(_PATHS, _BELOW), query=_QUERIES, method=_METHODS, accept=_ACCEPTS)
def test_any_request_line_is_answered(
    runner: asyncio.Runner, app: ASGIApp, path: str, query: bytes, method: str, accept: bytes
) -> None:
    assume(path not in _TEXT_PAGES)
    for _ in ("first", "again"):
        status, body = runner.run(ask(app, path, query, method, accept))
        assert status < 500
        assert _well_formed(method, status, body)


@bounded(50)
@given(selector=_SELECTORS, name=st.sampled_from(["labelSelector", "metricLabelSelector"]))
def test_any_selector_is_answered(
    runner: asyncio.Runner, app: ASGIApp, selector: bytes, name: str
) -> None:
    path = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/ns/pods/*/gpu_utilization"
    query = f"{name}={quote(selector)}".encode()
    status, body = runner.run(ask(app, path, query, "GET", b""))
    assert status in (200, 400)
    assert _well_formed("GET", status, body)


LONG = "a" * 100_000
LINES: dict[str, tuple[str, bytes, int]] = {
    "a very long name": (
        f"/apis/custom.metrics.k8s.io/v1beta2/namespaces/ns/pods/{LONG}/m",
        b"",
        404,
    ),
    "a very deep path": (f"/apis/{'a/' * 50_000}", b"", 404),
    "a very long selector": (
        "/apis/custom.metrics.k8s.io/v1beta2/namespaces/ns/pods/*/gpu_utilization",
        b"labelSelector=" + b",".join([b"a"] * 8_000),
        200,
    ),
    "a selector that is longer than any": (
        "/apis/custom.metrics.k8s.io/v1beta2/namespaces/ns/pods/*/gpu_utilization",
        b"labelSelector=" + b",".join([b"a"] * 20_000),
        400,
    ),
    "a selector of parentheses": (
        "/apis/custom.metrics.k8s.io/v1beta2/namespaces/ns/pods/*/gpu_utilization",
        b"labelSelector=" + b"(" * 100_000,
        400,
    ),
    "a selector of a key that almost matches": (
        "/apis/custom.metrics.k8s.io/v1beta2/namespaces/ns/pods/*/gpu_utilization",
        b"labelSelector=" + b"a-" * 50_000 + b"!/x",
        400,
    ),
    "very many parameters": (
        "/apis/custom.metrics.k8s.io/v1beta2/namespaces/ns/pods/*/gpu_utilization",
        b"&".join(b"p%d=1" % number for number in range(10_000)),
        400,
    ),
}


@pytest.mark.parametrize(("path", "query", "code"), LINES.values(), ids=LINES)
async def test_a_huge_request_line_is_answered(
    world: World, path: str, query: bytes, code: int
) -> None:
    status, body = await ask(world.app, path, query, "GET", b"")
    assert status == code
    assert _well_formed("GET", status, body)


async def test_a_lone_surrogate_in_a_path_is_not_found(world: World) -> None:
    path = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/ns/pods/*/\udcff"
    status, body = await ask(world.app, path, b"", "GET", b"")
    assert status == 404
    assert _well_formed("GET", status, body)
