"""A connected client of an API server that gives configured answers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from apiservice.http.server import Server
from apiservice.kube.clusterclient import ClusterClient
from apiservice.kube.connection import connect
from tests.apiservice.kube.reflectorrig import Rig, running
from tests.apiservice.kubeapi import NOWHERE, FakeApiServer, kubeconfig, write
from tests.apiservice.rawhttp import serving


@pytest.fixture
def api() -> FakeApiServer:
    return FakeApiServer()


@pytest.fixture
async def server(api: FakeApiServer) -> AsyncIterator[Server]:
    async with serving(api) as running:
        yield running


@pytest.fixture
async def client(tmp_path: Path, server: Server) -> AsyncIterator[ClusterClient]:
    path = write(tmp_path, kubeconfig(f"http://127.0.0.1:{server.port}", token="t"))
    async with await connect(path, environ=NOWHERE) as connected:
        yield connected


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    async with running() as made:
        yield made
