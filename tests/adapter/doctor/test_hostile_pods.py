"""A tenant's pod cannot choose the requests that ``doctor`` sends with its user's rights."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from adapter.client.access import cluster
from adapter.doctor.fetch import Fetched, Place, ProxyFetcher
from tests.adapter.clientapi import ApiServer, api_server

PROXY = "/api/v1/namespaces/t/pods/p:80/proxy"


async def _fetched(kubeconfig: Path, url: str) -> Fetched:
    async with cluster(kubeconfig) as api:
        return await ProxyFetcher(api).fetch(Place("pods", "t", "p", url), 1000)


def _asked(server: ApiServer, kubeconfig: Path, url: str) -> Fetched:
    server.asked.clear()
    return asyncio.run(_fetched(kubeconfig, url))


@pytest.mark.parametrize(
    "path", ["/../../../../secrets", "/a/%2e%2e/%2E%2E/secrets", "/..%2f..%2fsecrets", "/.."]
)
def test_a_path_does_not_lead_out_of_the_proxy(tmp_path: Path, path: str) -> None:
    with api_server(tmp_path) as (server, kubeconfig):
        found = _asked(server, kubeconfig, f"http://10.0.0.1:80{path}")
        assert server.asked == []
        assert (found.status, found.error) == (0, "its path has .., and is not requested")


def test_a_redirect_is_not_followed(tmp_path: Path) -> None:
    with api_server(tmp_path) as (server, kubeconfig):
        server.redirects[f"{PROXY}/metrics"] = f"{server.url}/api/v1/namespaces/x/secrets"
        found = _asked(server, kubeconfig, "http://10.0.0.1:80/metrics")
        assert server.asked == [f"GET {PROXY}/metrics"]
        assert found.status == 302
