"""The way to a cluster: every broken kubeconfig names its file and its fix."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.aio.client import ApiClient

from apiservice.auth.clientauth import ClientAuth
from apiservice.auth.reviews import KubernetesReviews, access_spec
from apiservice.auth.tokens import ReviewError
from apiservice.http.server import Server
from apiservice.identity import AccessDecision, Attributes, User
from apiservice.kube.client import (
    ClusterAnswerError,
    ClusterError,
    NoKubeconfigError,
    call,
    connect,
)
from apiservice.tls.certificates import CertificateFiles
from apiservice.tls.context import ServingTLS
from tests.apiservice.pki import Authority
from tests.apiservice.rawhttp import PATIENCE, serving

NOWHERE = {"HOME": "/nonexistent"}


class FakeApiServer:
    """Gives configured answers, and records its requests."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, bytes]] = []
        self.asked: list[tuple[str, str, dict[bytes, bytes], bytes]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.asked.append((scope["method"], scope["path"], dict(scope["headers"]), b""))
        status, body = self.answers.pop(0) if self.answers else (200, b"{}")
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    @property
    def tokens(self) -> list[bytes]:
        return [headers.get(b"authorization", b"") for _, _, headers, _ in self.asked]


@pytest.fixture
def api() -> FakeApiServer:
    return FakeApiServer()


@pytest.fixture
async def server(api: FakeApiServer) -> AsyncIterator[Server]:
    async with serving(api) as running:
        yield running


def kubeconfig(server: str = "http://127.0.0.1:1", **user: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "main",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u"}}],
    }


def write(folder: Path, content: Any) -> Path:
    path = folder / "kubeconfig"
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path


def with_ca(path: str) -> dict[str, Any]:
    config = kubeconfig("https://127.0.0.1:1")
    config["clusters"][0]["cluster"]["certificate-authority"] = path
    return config


def with_ca_data(data: bytes) -> dict[str, Any]:
    config = kubeconfig("https://127.0.0.1:1")
    encoded = base64.b64encode(data).decode()
    config["clusters"][0]["cluster"]["certificate-authority-data"] = encoded
    return config


BROKEN: dict[str, tuple[Any, str]] = {
    "not YAML": ("a: b: c", "is not YAML"),
    "empty": ("", "is not a kubeconfig"),
    "a list": ("- a\n- b\n", "is not a kubeconfig"),
    "a word": ("hello", "is not a kubeconfig"),
    "another manifest": ("kind: Pod\nmetadata: {name: p}\n", "is not a kubeconfig"),
    "bytes of a program": ("\x7fELF\x00\x01", "is not YAML"),
    "clusters that are a number": ("clusters: 5\ncurrent-context: x\n", "must be a list"),
    "no clusters": ({"current-context": "main", "contexts": []}, "context"),
    "a context without its cluster": (
        {**kubeconfig(), "clusters": []},
        "object with name c",
    ),
    "no current context": (
        {k: v for k, v in kubeconfig().items() if k != "current-context"},
        "current-context",
    ),
    "a CA file that is not there": (with_ca("/nonexistent/ca.crt"), "/nonexistent/ca.crt"),
    "a CA that is none": (with_ca_data(b"nonsense"), "certificate-authority"),
    "CA data that is not base64": (
        {
            **kubeconfig(),
            "clusters": [
                {
                    "name": "c",
                    "cluster": {"server": "https://h", "certificate-authority-data": "%%%"},
                }
            ],
        },
        "kubeconfig",
    ),
    "a token file that is not there": (kubeconfig(tokenFile="gone"), "gone"),
    "a credential plugin that is not there": (
        kubeconfig(
            exec={
                "apiVersion": "client.authentication.k8s.io/v1",
                "command": "/nonexistent/plugin",
                "interactiveMode": "Never",
            }
        ),
        "/nonexistent/plugin",
    ),
}


@pytest.mark.parametrize(("content", "hint"), BROKEN.values(), ids=BROKEN.keys())
async def test_a_broken_kubeconfig_is_an_error_that_names_it(
    tmp_path: Path, content: Any, hint: str
) -> None:
    path = write(tmp_path, content)

    with pytest.raises(ClusterError, match=hint) as caught:
        await connect(path, environ=NOWHERE)

    message = str(caught.value)
    assert str(path) in message
    assert len(message.splitlines()) == 1
    assert "object" not in message or "object with name" in message


async def test_an_unknown_context_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, kubeconfig())

    with pytest.raises(ClusterError, match=r"context 'other'.*get-contexts"):
        await connect(path, "other", environ=NOWHERE)


async def test_a_named_kubeconfig_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="does not exist"):
        await connect(tmp_path / "none", environ=NOWHERE)


async def test_no_cluster_at_all_says_what_can_be_done(tmp_path: Path) -> None:
    missing = str(tmp_path / "none")

    with pytest.raises(NoKubeconfigError, match="set KUBECONFIG or name") as caught:
        await connect(environ={"KUBECONFIG": missing})

    assert missing in str(caught.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
async def test_an_unreadable_kubeconfig(tmp_path: Path) -> None:
    path = write(tmp_path, kubeconfig())
    path.chmod(0)

    with pytest.raises(ClusterError, match="Permission denied"):
        await connect(path, environ=NOWHERE)


async def test_kubeconfig_of_the_environment_is_used(
    tmp_path: Path, server: Server, api: FakeApiServer
) -> None:
    path = write(tmp_path, kubeconfig(f"http://127.0.0.1:{server.port}", token="t"))

    async with await connect(environ={"KUBECONFIG": f"/none:{path}"}) as client:
        await call(client, "GET", "/version")

    assert api.tokens == [b"Bearer t"]


async def test_a_replaced_token_file_is_used(
    tmp_path: Path, server: Server, api: FakeApiServer
) -> None:
    (tmp_path / "token").write_text("one\n")
    path = write(tmp_path, kubeconfig(f"http://127.0.0.1:{server.port}", tokenFile="token"))

    async with await connect(path, environ=NOWHERE) as client:
        await call(client, "GET", "/a")
        (tmp_path / "token").write_text("two\n")
        await call(client, "GET", "/b")

    assert api.tokens == [b"Bearer one", b"Bearer two"]


async def test_a_vanished_token_file_is_an_answer_error(tmp_path: Path, server: Server) -> None:
    (tmp_path / "token").write_text("one")
    path = write(tmp_path, kubeconfig(f"http://127.0.0.1:{server.port}", tokenFile="token"))

    async with await connect(path, environ=NOWHERE) as client:
        (tmp_path / "token").unlink()
        with pytest.raises(ClusterAnswerError, match="token"):
            await call(client, "GET", "/a")


async def test_a_credential_plugin_gives_the_token(
    tmp_path: Path, server: Server, api: FakeApiServer
) -> None:
    plugin = tmp_path / "plugin"
    credential = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": "fresh"},
    }
    plugin.write_text(f"#!/bin/sh\necho '{json.dumps(credential)}'\n")
    plugin.chmod(0o755)
    settings = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": str(plugin),
        "interactiveMode": "Never",
    }
    path = write(tmp_path, kubeconfig(f"http://127.0.0.1:{server.port}", exec=settings))

    async with await connect(path, environ=NOWHERE) as client:
        await call(client, "GET", "/a")

    assert api.tokens == [b"Bearer fresh"]


def pod(folder: Path, port: int, ca: bytes) -> dict[str, str]:
    """A mounted service account, and the environment of a pod."""
    (folder / "token").write_text("one\n")
    (folder / "ca.crt").write_bytes(ca)
    return {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(port)}


async def test_a_pod_uses_its_service_account_and_its_rotated_token(
    tmp_path: Path, api: FakeApiServer
) -> None:
    now = time.time()
    ca = Authority("kubernetes", now)
    files = CertificateFiles(*ca.server("127.0.0.1").write(tmp_path / "server", "tls"))
    tls = ServingTLS(files, ClientAuth(), now)
    async with serving(api, tls.listening) as server:
        environ = pod(tmp_path, server.port, ca.pem)
        async with await connect(environ=environ, service_account=tmp_path) as client:
            await call(client, "GET", "/a")
            (tmp_path / "token").write_text("two")
            await call(client, "GET", "/b")

    assert api.tokens == [b"Bearer one", b"Bearer two"]


async def test_a_pod_follows_its_cluster_to_another_ca(tmp_path: Path, api: FakeApiServer) -> None:
    now = time.time()
    old, new = Authority("old", now), Authority("new", now)
    async with AsyncExitStack() as stack:
        servers = {}
        for name, ca in (("old", old), ("new", new)):
            files = CertificateFiles(*ca.server("127.0.0.1").write(tmp_path / name, "tls"))
            tls = ServingTLS(files, ClientAuth(), now)
            servers[ca] = await stack.enter_async_context(serving(api, tls.listening))
        environ = pod(tmp_path, servers[old].port, old.pem)
        client = await connect(environ=environ, service_account=tmp_path)
        await stack.enter_async_context(client)

        async def reaches(ca: Authority) -> bool:
            client.configuration.host = f"https://127.0.0.1:{servers[ca].port}"
            try:
                return await call(client, "GET", "/") == b"{}"
            except ClusterAnswerError as error:
                if "certificate verify failed" not in str(error):
                    raise
                return False

        assert (await reaches(old), await reaches(new)) == (True, False)
        (tmp_path / "ca.crt").write_bytes(old.pem + new.pem)
        assert (await reaches(old), await reaches(new)) == (True, True)
        (tmp_path / "ca.crt").write_bytes(b"half-written")
        assert await reaches(new), "the last good content stays in force"
        (tmp_path / "ca.crt").write_bytes(new.pem)
        assert (await reaches(old), await reaches(new)) == (False, True)


async def test_files_that_are_written_again_with_the_same_content_change_nothing(
    tmp_path: Path, api: FakeApiServer
) -> None:
    """kubelet does that with every new token: a connection each would pile up."""
    now = time.time()
    ca = Authority("kubernetes", now)
    files = CertificateFiles(*ca.server("127.0.0.1").write(tmp_path / "server", "tls"))
    tls = ServingTLS(files, ClientAuth(), now)
    async with serving(api, tls.listening) as server:
        environ = pod(tmp_path, server.port, ca.pem)
        async with await connect(environ=environ, service_account=tmp_path) as client:
            await call(client, "GET", "/a")
            before = client.rest_client
            (tmp_path / "ca.crt.new").write_bytes(ca.pem)
            (tmp_path / "ca.crt.new").rename(tmp_path / "ca.crt")
            await call(client, "GET", "/b")
            assert client.rest_client is before


@pytest.mark.parametrize("spoiled", ["token", "ca.crt"])
async def test_a_broken_service_account_is_an_error_that_names_it(
    tmp_path: Path, spoiled: str
) -> None:
    environ = pod(tmp_path, 1, Authority("ca", time.time()).pem)
    (tmp_path / spoiled).write_bytes(b"")

    with pytest.raises(ClusterError, match="automountServiceAccountToken") as caught:
        await connect(environ=environ, service_account=tmp_path)

    assert str(tmp_path) in str(caught.value)


@pytest.fixture
async def client(tmp_path: Path, server: Server) -> AsyncIterator[ApiClient]:
    path = write(tmp_path, kubeconfig(f"http://127.0.0.1:{server.port}", token="t"))
    async with await connect(path, environ=NOWHERE) as connected:
        yield connected


async def test_an_answer_other_than_2xx_carries_status_and_message(
    client: ApiClient, api: FakeApiServer
) -> None:
    api.answers = [(403, b'{"kind":"Status","message":"no rights"}'), (500, b"<html>")]

    with pytest.raises(ClusterAnswerError, match="403 no rights") as caught:
        await call(client, "GET", "/x")
    assert caught.value.status == 403
    with pytest.raises(ClusterAnswerError, match="500 <html>"):
        await call(client, "GET", "/x")


async def test_no_server_at_the_address_is_status_0(tmp_path: Path) -> None:
    async with await connect(write(tmp_path, kubeconfig()), environ=NOWHERE) as client:
        with pytest.raises(ClusterAnswerError, match="GET /x") as caught:
            await call(client, "GET", "/x")

    assert caught.value.status == 0


async def test_a_connection_with_unsolicited_bytes_does_not_wait_forever(
    tmp_path: Path,
) -> None:
    first, sent, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def answers_twice(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        await reader.readuntil(b"\r\n\r\n")
        writer.write(head % 2 + b"{}")
        await writer.drain()
        await first.wait()
        writer.write(head % 10)
        await writer.drain()
        sent.set()
        await reader.read()
        writer.close()
        ended.set()

    server = await asyncio.start_server(answers_twice, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    config = write(tmp_path, kubeconfig(f"http://127.0.0.1:{port}", token="t"))
    async with await connect(config) as client:
        assert await call(client, "GET", "/version") == b"{}"
        first.set()
        await sent.wait()
        with pytest.raises(ClusterAnswerError):
            await call(client, "GET", "/version", timeout_seconds=0.5)
    server.close()
    async with asyncio.timeout(PATIENCE):
        await ended.wait()


async def test_tls_to_the_api_server_is_checked(tmp_path: Path, api: FakeApiServer) -> None:
    now = time.time()
    good, other = Authority("good", now), Authority("other", now)
    files = CertificateFiles(*good.server("127.0.0.1").write(tmp_path, "tls"))
    tls = ServingTLS(files, ClientAuth(), now)
    async with serving(api, tls.listening) as server:
        for ca, works in ((good, True), (other, False)):
            config = with_ca_data(ca.pem)
            config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{server.port}"
            async with await connect(write(tmp_path, config), environ=NOWHERE) as client:
                if works:
                    assert await call(client, "GET", "/x") == b"{}"
                else:
                    with pytest.raises(ClusterAnswerError, match="certificate verify failed"):
                        await call(client, "GET", "/x")


TOKEN_ANSWERS: dict[str, tuple[dict[str, Any], tuple[str, ...], User | None]] = {
    "authenticated": (
        {
            "authenticated": True,
            "user": {"username": "u", "uid": "1", "groups": ["g"], "extra": {"k": ["v"]}},
        },
        (),
        User("u", "1", ("g",), {"k": ("v",)}),
    ),
    "not authenticated": ({"error": "bad"}, (), None),
    "authenticated as nobody": ({"authenticated": True, "user": {}}, (), None),
    "for one of our audiences": (
        {"authenticated": True, "user": {"username": "u"}, "audiences": ["a", "x"]},
        ("a", "b"),
        User("u"),
    ),
    "for another audience": (
        {"authenticated": True, "user": {"username": "u"}, "audiences": ["x"]},
        ("a",),
        None,
    ),
    "by a server that knows no audiences": (
        {"authenticated": True, "user": {"username": "u"}},
        ("a",),
        None,
    ),
}


@pytest.mark.parametrize(
    ("status", "audiences", "user"), TOKEN_ANSWERS.values(), ids=TOKEN_ANSWERS.keys()
)
async def test_token_review(
    client: ApiClient,
    api: FakeApiServer,
    status: dict[str, Any],
    audiences: tuple[str, ...],
    user: User | None,
) -> None:
    api.answers = [(201, json.dumps({"status": status}).encode())]

    assert await KubernetesReviews(client, audiences).review_token("secret") == user
    assert api.asked[0][:2] == ("POST", "/apis/authentication.k8s.io/v1/tokenreviews")


ACCESS_ANSWERS: dict[str, tuple[dict[str, Any], AccessDecision]] = {
    "allowed": ({"allowed": True, "reason": "RBAC"}, AccessDecision(True, "RBAC")),
    "no opinion": ({"allowed": False}, AccessDecision(False)),
    "allowed and denied": ({"allowed": True, "denied": True}, AccessDecision(False)),
}


@pytest.mark.parametrize(("status", "decision"), ACCESS_ANSWERS.values(), ids=ACCESS_ANSWERS.keys())
async def test_access_review(
    client: ApiClient, api: FakeApiServer, status: dict[str, Any], decision: AccessDecision
) -> None:
    api.answers = [(201, json.dumps({"status": status}).encode())]

    reviews = KubernetesReviews(client)
    assert await reviews.review_access(User("u"), Attributes("get", path="/x")) == decision
    assert api.asked[0][1] == "/apis/authorization.k8s.io/v1/subjectaccessreviews"


async def test_a_passing_failure_is_asked_again(client: ApiClient, api: FakeApiServer) -> None:
    good = b'{"status":{"allowed":true}}'
    api.answers = [(503, b"{}"), (201, good)]

    decision = await KubernetesReviews(client).review_access(User("u"), Attributes("get"))

    assert decision.allowed
    assert len(api.asked) == 2


ERRORS: dict[str, tuple[int, bytes, str]] = {
    "forbidden": (403, b'{"message":"no"}', "system:auth-delegator"),
    "credentials refused": (401, b'{"message":"Unauthorized"}', "system:auth-delegator"),
    "HTML": (200, b"<html>", "not a response of an API server"),
    "no status": (201, b'{"kind":"SubjectAccessReview"}', "not a response"),
    "a status without a decision": (201, b'{"status":{}}', "not a response"),
    "a decision that is not a boolean": (201, b'{"status":{"allowed":"yes"}}', "not a response"),
}


@pytest.mark.parametrize(("code", "body", "why"), ERRORS.values(), ids=ERRORS.keys())
async def test_no_answer_is_an_error_never_a_decision(
    client: ApiClient, api: FakeApiServer, code: int, body: bytes, why: str
) -> None:
    api.answers = [(code, body)]
    reviews = KubernetesReviews(client)

    with pytest.raises(ReviewError, match=why):
        await reviews.review_access(User("u"), Attributes("get"))
    assert reviews.asked["access", "error"] == 1


SPECS: dict[str, tuple[User, Attributes, dict[str, Any]]] = {
    "a resource": (
        User("u", "1", ("g",), {"k": ("v",)}),
        Attributes("get", "custom.metrics.k8s.io", "v1beta2", "pods", "m", "*", "ns"),
        {
            "user": "u",
            "uid": "1",
            "groups": ["g"],
            "extra": {"k": ["v"]},
            "resourceAttributes": {
                "namespace": "ns",
                "verb": "get",
                "group": "custom.metrics.k8s.io",
                "version": "v1beta2",
                "resource": "pods",
                "subresource": "m",
                "name": "*",
            },
        },
    ),
    "a path": (
        User("u"),
        Attributes("get", path="/metrics"),
        {"user": "u", "nonResourceAttributes": {"path": "/metrics", "verb": "get"}},
    ),
}


@pytest.mark.parametrize(("user", "wanted", "spec"), SPECS.values(), ids=SPECS.keys())
def test_access_spec(user: User, wanted: Attributes, spec: dict[str, Any]) -> None:
    assert access_spec(user, wanted) == spec
