"""Connecting to a cluster: every broken kubeconfig names its file and its fix."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import ssl
import tempfile
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from apiservice.auth.clientauth import ClientAuth
from apiservice.http.server import Server
from apiservice.kube import clusterclient, credentials
from apiservice.kube.client import ClusterAnswerError, call
from apiservice.kube.connection import connect
from apiservice.kube.failures import ClusterError, NoKubeconfigError
from apiservice.kube.kubeconfig import context_names
from apiservice.tls.certificates import CertificateFiles
from apiservice.tls.context import ServingTLS
from tests.apiservice.kubeapi import NOWHERE, FakeApiServer, kubeconfig, write
from tests.apiservice.pki import Authority, Issued
from tests.apiservice.rawhttp import serving
from tests.needs import NOT_ROOT, needs


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
    "clusters that are a number": ("clusters: 5\ncurrent-context: x\n", "at `clusters`"),
    "an impossible date": (
        "clusters: [{name: c, cluster: {server: 2001-99-99}}]",
        "no current-con",
    ),
    "a tag that does not fit": ("clusters: []\nx: !!int ''", "is not YAML: line 2: a tag such as"),
    "a value within itself": ("clusters: &a [*a]", "is not YAML: line 1"),
    "a number for a server": (
        {**kubeconfig(), "clusters": [{"name": "c", "cluster": {"server": 5}}]},
        r"at `clusters\[0\]\.cluster\.server`",
    ),
    "a list for a context": ({**kubeconfig(), "current-context": [1]}, "at `current-context`"),
    "a number for a credential plugin": (kubeconfig(exec=5), r"at `users\[0\]\.user\.exec`"),
    "a list for a token": (kubeconfig(token=[1]), r"at `users\[0\]\.user\.token`"),
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
    assert " object at 0x" not in message


ODD: tuple[Any, ...] = (None, 5, 1e300, True, "", "\x1b[2J", [], [None], {}, {"a": 1}, {"name": 5})


def mutations(value: Any) -> Iterator[Any]:
    """The value with each of its parts, and itself, replaced by each odd one, or left out."""
    yield from ODD
    parts: Iterable[tuple[Any, Any]] = value.items() if isinstance(value, dict) else []
    parts = enumerate(value) if isinstance(value, list) else parts
    for key, part in parts:
        for odd in mutations(part):
            changed: Any = value.copy()
            changed[key] = odd
            yield changed
        shorter: Any = value.copy()
        del shorter[key]
        yield shorter


async def test_no_content_of_a_kubeconfig_is_a_traceback(tmp_path: Path) -> None:
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "/none", "args": ["a"]}
    known = [kubeconfig(token="t"), kubeconfig(exec=plugin), kubeconfig(username="a", password="b")]
    for content in (mutation for config in known for mutation in mutations(config)):
        path = write(tmp_path, content)
        message = str(path)
        try:
            await (await connect(path, environ=NOWHERE)).close()
        except ClusterError as error:
            message = str(error)
        assert str(path) in message
        assert len(message.splitlines()) == 1


async def test_a_time_in_a_kubeconfig_is_a_text(tmp_path: Path) -> None:
    """Credential plugins and dashboards add fields of their own."""
    path = write(tmp_path, yaml.safe_dump(kubeconfig()) + "expires: 2001-99-99\n")
    client = await connect(path, environ=NOWHERE)
    await client.close()


async def test_the_first_file_names_the_current_context(tmp_path: Path) -> None:
    """As kubectl: kubernetes.io, "Organizing Cluster Access Using kubeconfig Files"."""
    names = ["", "one", "two"]
    for name in names:
        content = kubeconfig()
        content["contexts"][0]["name"] = name or "none"
        (tmp_path / f"file{name}").write_text(
            yaml.safe_dump(content | {"current-context": name}), encoding="utf-8"
        )
    listed = os.pathsep.join(str(tmp_path / f"file{name}") for name in names)
    client: Any = await connect(environ={"KUBECONFIG": listed})
    assert (client.context, context_names(listed)) == ("one", ["none", "one", "two"])
    await client.close()


async def test_an_unknown_context_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, kubeconfig())

    with pytest.raises(ClusterError, match=r"context 'other' is not in .*get-contexts"):
        await connect(path, "other", environ=NOWHERE)
    with pytest.raises(ClusterError, match=r"did you mean main\?"):
        await connect(path, "mian", environ=NOWHERE)


async def test_a_named_kubeconfig_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="does not exist"):
        await connect(tmp_path / "none", environ=NOWHERE)


async def test_no_cluster_at_all_says_what_can_be_done(tmp_path: Path) -> None:
    missing = str(tmp_path / "none")

    with pytest.raises(NoKubeconfigError, match="set KUBECONFIG or name") as caught:
        await connect(environ={"KUBECONFIG": missing})

    assert missing in str(caught.value)


@needs(NOT_ROOT)
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
    async with serving(api, tls.listening_context) as server:
        environ = pod(tmp_path, server.port, ca.pem)
        async with await connect(environ=environ, service_account=tmp_path) as client:
            await call(client, "GET", "/a")
            (tmp_path / "token").write_text("two")
            await call(client, "GET", "/b")

    assert api.tokens == [b"Bearer one", b"Bearer two"]


async def test_a_pod_follows_its_cluster_to_another_ca(
    tmp_path: Path, api: FakeApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clusterclient, "LOOK", 0.0)
    now = time.time()
    old, new = Authority("old", now, old=True), Authority("new", now, old=True)
    async with AsyncExitStack() as stack:
        servers = {}
        for name, ca in (("old", old), ("new", new)):
            files = CertificateFiles(*ca.server("127.0.0.1").write(tmp_path / name, "tls"))
            tls = ServingTLS(files, ClientAuth(), now)
            servers[ca] = await stack.enter_async_context(serving(api, tls.listening_context))
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
    tmp_path: Path, api: FakeApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """kubelet does that with every new token: a connection each would pile up."""
    monkeypatch.setattr(clusterclient, "LOOK", 0.0)
    now = time.time()
    ca = Authority("kubernetes", now)
    files = CertificateFiles(*ca.server("127.0.0.1").write(tmp_path / "server", "tls"))
    tls = ServingTLS(files, ClientAuth(), now)
    async with serving(api, tls.listening_context) as server:
        environ = pod(tmp_path, server.port, ca.pem)
        async with await connect(environ=environ, service_account=tmp_path) as client:
            await call(client, "GET", "/a")
            before = client.connections
            (tmp_path / "ca.crt.new").write_bytes(ca.pem)
            (tmp_path / "ca.crt.new").rename(tmp_path / "ca.crt")
            await call(client, "GET", "/b")
            assert client.connections is before


@pytest.mark.parametrize("spoiled", ["token", "ca.crt"])
async def test_a_broken_service_account_is_an_error_that_names_it(
    tmp_path: Path, spoiled: str
) -> None:
    environ = pod(tmp_path, 1, Authority("ca", time.time()).pem)
    (tmp_path / spoiled).write_bytes(b"")

    with pytest.raises(ClusterError, match="automountServiceAccountToken") as caught:
        await connect(environ=environ, service_account=tmp_path)

    assert str(tmp_path) in str(caught.value)


async def test_tls_to_the_api_server_is_checked(tmp_path: Path, api: FakeApiServer) -> None:
    now = time.time()
    good, other = Authority("good", now, old=True), Authority("other", now)
    files = CertificateFiles(*good.server("127.0.0.1").write(tmp_path, "tls"))
    tls = ServingTLS(files, ClientAuth(), now)
    async with serving(api, tls.listening_context) as server:
        for ca, works in ((good, True), (other, False)):
            config = with_ca_data(ca.pem)
            config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{server.port}"
            async with await connect(write(tmp_path, config), environ=NOWHERE) as client:
                if works:
                    assert await call(client, "GET", "/x") == b"{}"
                else:
                    with pytest.raises(ClusterAnswerError, match="certificate verify failed"):
                        await call(client, "GET", "/x")


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files, which is empty."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def left(folder: Path) -> list[str]:
    """The names of what is in a folder."""
    return [path.name for path in folder.iterdir()]


def _in_data(authority: Authority, folder: Path, port: int) -> Path:
    """A kubeconfig that contains the CA, and a client's certificate and key."""
    issued = authority.server("client")
    config = with_ca_data(authority.pem)
    config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{port}"
    config["users"][0]["user"] = {
        f"client-{name}-data": base64.b64encode(data).decode()
        for name, data in (("certificate", issued.pem), ("key", issued.key_pem))
    }
    return write(folder, config)


async def test_no_key_of_a_kubeconfig_is_left_in_the_folder_for_temporary_files(
    tmp_path: Path, api: FakeApiServer, temporary: Path
) -> None:
    now = time.time()
    authority = Authority("good", now)
    files = CertificateFiles(*authority.server("127.0.0.1").write(tmp_path, "tls"))
    tls = ServingTLS(files, ClientAuth(), now)
    async with serving(api, tls.listening_context) as server:
        file = _in_data(authority, tmp_path, server.port)
        for _ in range(2):
            async with await connect(file, environ=NOWHERE) as client:
                assert left(temporary) == []
                for _ in range(2):
                    assert await call(client, "GET", "/x") == b"{}"


async def test_no_key_is_left_if_a_certificate_cannot_be_used(
    tmp_path: Path, temporary: Path
) -> None:
    with pytest.raises(ClusterError):
        await connect(write(tmp_path, with_ca_data(b"nonsense")), environ=NOWHERE)
    assert left(temporary) == []


@pytest.mark.parametrize("ca", ["data", "file"])
async def test_the_certificate_that_a_credential_plugin_renews_is_used_and_leaves_no_copy(
    tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch, ca: str
) -> None:
    monkeypatch.setattr(clusterclient, "LOOK", 0.0)
    monkeypatch.setattr(credentials, "_REFRESH", 0.0)
    authority = Authority("ca", time.time())
    serials: list[int] = []
    async with asking_for_certificates(authority, tmp_path, serials) as port:
        config = with_ca_data(authority.pem)
        if ca == "file":
            (tmp_path / "ca.pem").write_bytes(authority.pem)
            config = with_ca(str(tmp_path / "ca.pem"))
        config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{port}"
        config["users"][0]["user"] = {"exec": plugin_of_certificates(tmp_path)}
        issued = [authority.issue(f"client-{number}") for number in range(2)]
        give(tmp_path, issued[0])
        async with await connect(write(tmp_path, config), environ=NOWHERE) as client:
            assert left(temporary) == []
            for _ in range(3):
                await call(client, "GET", "/a")
            assert set(serials) == {issued[0].certificate.serial_number}
            give(tmp_path, issued[1])
            await call(client, "GET", "/b")
            assert serials[-1] == issued[1].certificate.serial_number
            assert left(temporary) == []


def give(folder: Path, issued: Issued) -> None:
    """Have the plugin return this certificate."""
    status = {
        "clientCertificateData": issued.pem.decode(),
        "clientKeyData": issued.key_pem.decode(),
    }
    content = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": status,
    }
    (folder / "credential.json").write_text(json.dumps(content))


def plugin_of_certificates(folder: Path) -> dict[str, str]:
    plugin = folder / "plugin"
    plugin.write_text(f"#!/bin/sh\ncat '{folder / 'credential.json'}'\n")
    plugin.chmod(0o755)
    return {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": str(plugin),
        "interactiveMode": "Never",
    }


@asynccontextmanager
async def asking_for_certificates(
    authority: Authority, folder: Path, serials: list[int]
) -> AsyncIterator[int]:
    """Answer every request, and note the serial number of the client's certificate."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=authority.pem.decode())
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(*authority.server("127.0.0.1").write(folder, "server"))

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while await reader.readuntil(b"\r\n\r\n"):
                serials.append(int(writer.get_extra_info("peercert")["serialNumber"], 16))
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1]
