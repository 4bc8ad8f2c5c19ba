"""Everything together, over TLS: users of one front proxy share a connection, never a right."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from apiservice.app import create_app
from apiservice.auth.authentication import Authentication
from apiservice.auth.authorization import Authorization
from apiservice.auth.clientauth import ClientAuth, ProxySettings
from apiservice.auth.tokens import ReviewError
from apiservice.documents.health import HealthRegistry
from apiservice.http.options import ServingOptions
from apiservice.http.server import Server
from apiservice.identity import AccessDecision, Attributes, User
from apiservice.tls.certificates import CertificateFiles
from apiservice.tls.context import ServingTLS
from tests.apiservice.pki import Authority, client_context
from tests.apiservice.rawhttp import PATIENCE, Wire, connected, serving
from tests.apiservice.world import FakeCustom

NOW = time.time()
CA = Authority("serving-ca", NOW)
PROXY_CA = Authority("front-proxy-ca", NOW)
CUSTOM = "/apis/custom.metrics.k8s.io/v1beta2"
PODS = f"{CUSTOM}/namespaces/ns/pods/%2A/gpu_utilization"


@dataclass
class FakeCluster:
    """Allows ``alice`` and the aggregator's users."""

    down: bool = False
    asked: list[tuple[User, Attributes]] = field(default_factory=list)

    async def review_access(self, user: User, attributes: Attributes) -> AccessDecision:
        self.asked.append((user, attributes))
        if self.down:
            raise ReviewError("connection refused")
        allowed = user.name == "alice"
        discovers = "system:authenticated" in user.groups and bool(attributes.path)
        return AccessDecision(allowed or discovers)


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Bench:
    """A whole server, and a connection of the front proxy to it."""

    server: Server
    wire: Wire
    cluster: FakeCluster
    clock: Clock
    custom: FakeCustom

    async def get(self, path: str, *lines: str) -> tuple[int, bytes]:
        await self.wire.send(request(path, *lines))
        status, _, body = await self.wire.response()
        return status, body


@dataclass(frozen=True)
class Door:
    """Where a server listens or listened."""

    port: int


def request(path: str, *lines: str) -> bytes:
    return "\r\n".join((f"GET {path} HTTP/1.1", "Host: h", *lines, "", "")).encode()


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    trust, cluster, clock, custom = ClientAuth(), FakeCluster(), Clock(), FakeCustom()
    trust.set_proxy(ProxySettings(PROXY_CA.pem, ("front-proxy-client",)))
    files = CertificateFiles(*CA.server("localhost").write(tmp_path, "tls"))
    tls = ServingTLS(files, trust, NOW)
    app = create_app(
        custom=custom,
        external=None,
        authenticator=Authentication(trust),
        authorizer=Authorization(cluster, clock=clock),
        health=HealthRegistry(),
        registry=CollectorRegistry(),
        release="0.1.0",
    )
    proxy = client_context(CA.pem, PROXY_CA.issue("front-proxy-client"), tmp_path)
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(
            serving(app, tls.listening_context, stranger_pipelined=32)
        )
        wire = await stack.enter_async_context(connected(server, proxy))
        yield Bench(server, wire, cluster, clock, custom)


async def test_what_was_prepared_for_one_user_is_refused_to_another(bench: Bench) -> None:
    for _ in ("first", "again, from memory"):
        assert (await bench.get(PODS, "X-Remote-User: alice"))[0] == 200
        status, body = await bench.get(PODS, "X-Remote-User: bob")
        assert status == 403
        assert b'User \\"bob\\"' in body
    assert len(bench.cluster.asked) == 2


async def test_pipelined_users_are_not_mixed_up(bench: Bench) -> None:
    users = ["alice", "bob", "alice", "alice", "bob"]
    await bench.wire.send(b"".join(request(PODS, f"X-Remote-User: {user}") for user in users))
    codes = [(await bench.wire.response())[0] for _ in users]
    assert codes == [200, 403, 200, 200, 403]


SPELLINGS = [
    PODS.replace("%2A", "*"),
    f"/{PODS}",
    f"{PODS}/",
    PODS.replace("pods", "%70ods"),
    PODS.replace("/ns/", "/%6es/"),
    PODS.replace("/pods/", "%2Fpods%2F"),
    f"{PODS}?",
    f"{PODS}?labelSelector=",
    PODS.replace("pods/", "pods./"),
    PODS.replace("pods/", "PODS/"),
    f"{CUSTOM}/../v1beta2/namespaces/ns/pods/%2A/gpu_utilization",
    f"http://elsewhere{PODS}",
]


@pytest.mark.parametrize("path", SPELLINGS)
async def test_no_spelling_of_a_path_gets_round_the_right_to_it(bench: Bench, path: str) -> None:
    await bench.get(PODS, "X-Remote-User: alice")
    for user in ("bob", "system:masters"):
        assert (await bench.get(path, f"X-Remote-User: {user}"))[0] == 403
    assert len(bench.custom.queries) == 1


async def test_a_prepared_answer_does_not_outlive_the_permission(bench: Bench) -> None:
    await bench.get(PODS, "X-Remote-User: alice")
    bench.cluster.down = True
    bench.clock.now = 9.9
    assert (await bench.get(PODS, "X-Remote-User: alice"))[0] == 200
    bench.clock.now = 10.1
    status, body = await bench.get(PODS, "X-Remote-User: alice")
    assert status == 500
    assert b"87500m" not in body


async def test_the_review_gets_all_that_the_proxy_stated(bench: Bench) -> None:
    lines = ("X-Remote-User: alice", "X-Remote-Group: a,b", "X-Remote-Extra-Scopes%2fx: One")
    await bench.get(PODS, *lines)
    await bench.get(PODS, *lines[:2])
    wanted = Attributes(
        "get", "custom.metrics.k8s.io", "v1beta2", "pods", "gpu_utilization", "*", "ns"
    )
    groups = ("a,b", "system:authenticated")
    assert bench.cluster.asked == [
        (User("alice", groups=groups, extra={"scopes/x": ("One",)}), wanted),
        (User("alice", groups=groups), wanted),
    ]


@pytest.mark.parametrize("path", ["/apis", CUSTOM, "/openapi/v2", "/openapi/v3"])
async def test_the_aggregator_discovers_without_groups_and_without_data(
    bench: Bench, path: str
) -> None:
    """A refusal or an error here makes the APIService stale, cluster-wide."""
    bench.custom.failure = RuntimeError("no data")
    for user in ("system:kube-aggregator", "system:aggregator"):
        assert (await bench.get(path, f"X-Remote-User: {user}"))[0] == 200


async def test_the_aggregator_gets_aggregated_discovery(bench: Bench) -> None:
    accept = ",".join(
        f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
        for version in ("v2", "v2beta1")
    )
    lines = ("X-Remote-User: system:kube-aggregator", f"Accept: {accept}")
    code, body = await bench.get("/apis", *lines)
    assert (code, json.loads(body)["kind"]) == (200, "APIGroupDiscoveryList")


async def test_half_open_handshakes_do_not_keep_others_out(bench: Bench) -> None:
    async with AsyncExitStack() as stack:
        for _ in range(50):
            half = await stack.enter_async_context(connected(bench.server))
            await half.send(b"\x16\x03\x01")
        async with connected(bench.server, client_context(CA.pem)) as wire:
            assert (await wire.ask(request("/livez")))[0] == 200


async def test_no_answer_is_cut_in_two_while_the_server_drains_under_load(bench: Bench) -> None:
    """Each client continues until asked to close, then connects again until refused."""
    context, door = client_context(CA.pem), Door(bench.server.port)
    await bench.wire.close()
    answered, busy = 0, asyncio.Event()

    async def client() -> None:
        nonlocal answered
        while True:
            async with connected(door, context) as wire:
                last = False
                while not last:
                    status, head, _ = await wire.ask(request("/livez"))
                    assert status == 200
                    answered += 1
                    if answered == 50:
                        busy.set()
                    last = b"connection: close" in head

    clients = [asyncio.create_task(client()) for _ in range(8)]
    async with asyncio.timeout(PATIENCE):
        await busy.wait()
    await bench.server.drain()

    for ended in await asyncio.gather(*clients, return_exceptions=True):
        if isinstance(ended, asyncio.IncompleteReadError):
            assert ended.partial == b""
        else:
            assert isinstance(ended, ConnectionError)


def test_connections_live_longer_than_gos_pool_keeps_them() -> None:
    assert ServingOptions().keep_alive >= 120
