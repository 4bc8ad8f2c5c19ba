"""A client that is closed leaves no connection, even if the server does not end TLS."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvloop
import yaml

from apiservice.kube.connection import connect
from apiservice.kube.listwatch import ListWatch, ListWatchOptions
from tests.apiservice.pki import SERVER, Authority


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Iterator[Path]:
    """The way to a server that starts to answer a watch and then reads nothing any more."""
    authority = Authority("lab", time.time())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(
        *authority.issue(usage=SERVER, hosts=["127.0.0.1"]).write(tmp_path, "s")
    )
    over = threading.Event()

    def serve() -> None:
        accepted, _ = listener.accept()
        with context.wrap_socket(accepted, server_side=True) as line:
            line.recv(1 << 16)
            line.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            over.wait(10)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(60)
        thread = threading.Thread(target=serve)
        thread.start()
        cluster = {
            "server": f"https://127.0.0.1:{listener.getsockname()[1]}",
            "certificate-authority": str(tmp_path / "ca.crt"),
        }
        (tmp_path / "ca.crt").write_bytes(authority.pem)
        file = tmp_path / "kubeconfig"
        content = {
            "current-context": "lab",
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": {"token": "secret-token"}}],
            "contexts": [{"name": "lab", "context": {"cluster": "c", "user": "u"}}],
        }
        file.write_text(yaml.safe_dump(content))
        yield file
        over.set()
        thread.join()


def test_a_watch_that_is_cancelled_leaves_no_connection_when_the_loop_closes(
    kubeconfig: Path,
) -> None:
    """uvloop warns about an open connection at its end; here a warning is an error."""

    async def body() -> None:
        client = await connect(kubeconfig)
        requests = ListWatch(
            client, "/api/v1/pods", field_selector="", label_selector="", options=ListWatchOptions()
        )
        answered = asyncio.Event()

        async def watch() -> None:
            async for _ in requests.watch("1", answered.set):
                pass

        task = asyncio.create_task(watch())
        async with asyncio.timeout(60):
            await answered.wait()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await client.close()

    uvloop.run(body())
