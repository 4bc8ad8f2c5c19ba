"""The stand-in as a process: it follows a cluster, and keeps its page during an outage of it."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from click.testing import CliRunner

from adapter.__main__ import main
from adapter.pipeline.exposition.page import parse
from apiservice.http.server import Server
from tests.adapter.commandline import invoke
from tests.adapter.failingapi import WELL, failing
from tests.apiservice.rawhttp import serving


class Api:
    """Answers two lists, or 503."""

    def __init__(self) -> None:
        self.lists: dict[str, list[Any]] = {
            "/api/v1/pods": [],
            "/apis/apps/v1/deployments": [],
        }
        self.away = False
        self.refusals: asyncio.Queue[None] = asyncio.Queue()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = json.dumps({"items": self.lists[scope["path"]]}).encode()
        status = 200
        if self.away:
            status = 503
            self.refusals.put_nowait(None)
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


@pytest.fixture
def api() -> Api:
    return Api()


@pytest.fixture
async def server(api: Api) -> AsyncIterator[Server]:
    async with serving(api) as running:
        yield running


def pod(name: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "default", "uid": name, "labels": {"app": "a"}},
        "spec": {
            "nodeName": "worker",
            "containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}],
        },
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }


def deployment(load: str) -> dict[str, Any]:
    return {
        "metadata": {
            "name": "inference",
            "namespace": "default",
            "annotations": {"gpu-metrics-adapter.io/simulated-load": load},
        },
        "spec": {"selector": {"matchLabels": {"app": "a"}}},
    }


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


async def wait_for(port: int, wanted: dict[str, float]) -> None:
    """Until the page says this about the pods."""
    seen: object = None
    async with httpx.AsyncClient(trust_env=False) as client:
        for _ in range(1800):
            await asyncio.sleep(0.1)
            try:
                page = (await client.get(f"http://127.0.0.1:{port}/metrics")).content
            except httpx.TransportError as error:
                seen = error
                continue
            seen = {
                row.labels["pod"]: row.value
                for row in parse(page, time=1.0).samples
                if row.name == "DCGM_FI_DEV_GPU_UTIL" and "pod" in row.labels
            }
            if seen == wanted:
                return
    raise AssertionError(f"the page says {seen}")


@pytest.fixture
def kubeconfig(server: Server, tmp_path: Path) -> Path:
    cluster = {"server": f"http://127.0.0.1:{server.port}"}
    file = tmp_path / "kubeconfig"
    file.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "main",
                "clusters": [{"name": "c", "cluster": cluster}],
                "users": [{"name": "u", "user": {}}],
                "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u"}}],
            }
        )
    )
    return file


async def start(kubeconfig: Path, port: int) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "adapter", "demo", "--exporter", "worker"),
        *("--port", str(port)),
        env={"KUBECONFIG": str(kubeconfig), "PATH": ""},
        stderr=asyncio.subprocess.PIPE,
    )


async def test_it_follows_the_cluster_and_keeps_its_page_without_it(
    api: Api, kubeconfig: Path
) -> None:
    port = free_port()
    api.lists["/api/v1/pods"] = [pod("a"), pod("b")]
    api.lists["/apis/apps/v1/deployments"] = [deployment("140")]
    process = await start(kubeconfig, port)
    try:
        await wait_for(port, {"a": 70, "b": 70})
        api.lists["/apis/apps/v1/deployments"] = [deployment("60")]
        await wait_for(port, {"a": 30, "b": 30})
        api.lists["/apis/apps/v1/deployments"] = [deployment("a lot")]
        await wait_for(port, {"a": 0, "b": 0})
        api.away = True
        for _ in range(2):
            await asyncio.wait_for(api.refusals.get(), 60)
        await wait_for(port, {"a": 0, "b": 0})
        process.send_signal(signal.SIGTERM)
        _, log = await asyncio.wait_for(process.communicate(), 60)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0
    assert log.decode().count("the page stays as it was") == 1


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with failing(WELL, tmp_path) as cluster, socket.socket() as taken:
        taken.bind(("", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        ended = invoke(
            *("demo", "--exporter", "worker", "--port", port), KUBECONFIG=str(cluster.kubeconfig)
        )
    assert ended.code == 1
    assert "cannot listen" in ended.output
    assert "choose another --port" in ended.output


def test_without_a_cluster_it_says_so(tmp_path: Path) -> None:
    nowhere = {"KUBECONFIG": str(tmp_path / "none")}
    done = CliRunner().invoke(main, ["demo", "--exporter", "worker", "--port", "0"], env=nowhere)
    assert done.exit_code == 1
    assert "not running in a pod" in done.output
