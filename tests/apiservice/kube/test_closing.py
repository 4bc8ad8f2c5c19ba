"""A client that is closed leaves no connection, even if the server does not end TLS."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import ssl
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
import uvloop
import yaml

from apiservice.kube.client import ClusterAnswerError, call
from apiservice.kube.connection import connect
from apiservice.kube.listwatch import ListWatch, ListWatchOptions
from apiservice.runtime import connector
from tests.apiservice.pki import SERVER, Authority

Handler = Callable[[socket.socket, ssl.SSLContext, threading.Event], None]


@contextlib.contextmanager
def answering(folder: Path, *handlers: Handler) -> Iterator[Path]:
    """A kubeconfig of a server that handles each new connection with the next handler.

    A handler gets the connection before TLS, and an event that is set when the client has closed.
    """
    authority = Authority("lab", time.time())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue(usage=SERVER, hosts=["127.0.0.1"]).write(folder, "s"))
    over = threading.Event()
    threads = []

    def serve() -> None:
        for handler in handlers:
            accepted, _ = listener.accept()
            threads.append(threading.Thread(target=handler, args=(accepted, context, over)))
            threads[-1].start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(60)
        threads.append(threading.Thread(target=serve))
        threads[-1].start()
        cluster = {
            "server": f"https://127.0.0.1:{listener.getsockname()[1]}",
            "certificate-authority": str(folder / "ca.crt"),
        }
        (folder / "ca.crt").write_bytes(authority.pem)
        file = folder / "kubeconfig"
        content = {
            "current-context": "lab",
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": {"token": "secret-token"}}],
            "contexts": [{"name": "lab", "context": {"cluster": "c", "user": "u"}}],
        }
        file.write_text(yaml.safe_dump(content))
        yield file
        over.set()
        for thread in threads:
            thread.join()


def stall(accepted: socket.socket, context: ssl.SSLContext, over: threading.Event) -> None:
    """Begin to answer a watch, and read nothing any more."""
    with context.wrap_socket(accepted, server_side=True) as line:
        line.recv(1 << 16)
        line.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        over.wait(10)


def refuse(accepted: socket.socket, context: ssl.SSLContext, over: threading.Event) -> None:
    """Answer 403, and read nothing any more."""
    with contextlib.suppress(OSError), context.wrap_socket(accepted, server_side=True) as line:
        line.recv(1 << 16)
        line.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
        over.wait(10)


def refuse_and_go(accepted: socket.socket, context: ssl.SSLContext, over: threading.Event) -> None:
    """Answer 403, say that the connection ends, and do not end TLS."""
    with context.wrap_socket(accepted, server_side=True) as line:
        line.recv(1 << 16)
        line.sendall(b"HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
        over.wait(10)


def connect_late(accepted: socket.socket, context: ssl.SSLContext, over: threading.Event) -> None:
    """End the handshake after others have been answered, and do not end TLS."""
    time.sleep(0.3)
    with contextlib.suppress(OSError), context.wrap_socket(accepted, server_side=True):
        over.wait(10)


def left_open() -> list[str]:
    """Python's warnings about connections that nobody closed."""
    with warnings.catch_warnings(record=True) as recorded:
        warnings.simplefilter("always")
        gc.collect()
    return [str(warning.message) for warning in recorded]


def test_a_watch_that_is_cancelled_leaves_no_connection_when_the_loop_closes(
    tmp_path: Path,
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

    with answering(tmp_path, stall) as kubeconfig:
        uvloop.run(body())


LOOPS: Final = pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])


@LOOPS
@pytest.mark.parametrize("wait", [0.0, 0.6], ids=["ends at once", "ends after the handshake"])
def test_lists_side_by_side_leave_no_connection_when_the_first_fails(
    tmp_path: Path, run: Callable[..., None], wait: float
) -> None:
    """As a command whose user lacks a right: the other list connects while the client closes."""

    async def body() -> None:
        client = await connect(kubeconfig)
        try:
            await asyncio.gather(*(call(client, "GET", path) for path in ("/a", "/b")))
        finally:
            await client.close()
            await asyncio.sleep(wait)

    with answering(tmp_path, refuse, connect_late) as kubeconfig:
        with pytest.raises(ClusterAnswerError, match=r"403|closed"):
            run(body())
        assert left_open() == []


@LOOPS
def test_a_task_that_is_cancelled_as_the_handshake_is_complete_leaves_no_connection(
    tmp_path: Path, run: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """asyncio ends the connection, and nobody else knows that it exists."""
    opened = connector._Protocol.connection_made

    def cancel(protocol: connector._Protocol, transport: asyncio.BaseTransport) -> None:
        opened(protocol, transport)
        for task in tasks:
            task.cancel()

    async def body() -> None:
        async with await connect(kubeconfig) as client:
            tasks.append(asyncio.create_task(call(client, "GET", "/a")))
            with pytest.raises(asyncio.CancelledError):
                await tasks[0]

    tasks: list[asyncio.Task[bytes]] = []
    monkeypatch.setattr(connector._Protocol, "connection_made", cancel)
    with answering(tmp_path, refuse) as kubeconfig:
        run(body())
        assert left_open() == []


@LOOPS
def test_a_connection_that_the_server_ends_is_closed_when_the_loop_closes(
    tmp_path: Path, run: Callable[..., None]
) -> None:
    """The client keeps no such connection, so that its end waits for none."""

    async def body() -> None:
        async with await connect(kubeconfig) as client:
            await call(client, "GET", "/a")

    with answering(tmp_path, refuse_and_go) as kubeconfig:
        with pytest.raises(ClusterAnswerError, match="403"):
            run(body())
        assert left_open() == []


def test_a_request_after_the_client_has_closed_opens_no_connection(tmp_path: Path) -> None:
    async def body() -> None:
        client = await connect(kubeconfig)
        await client.close()
        with pytest.raises(ClusterAnswerError, match="the client is closed"):
            await call(client, "GET", "/a")

    with answering(tmp_path) as kubeconfig:
        asyncio.run(body())
