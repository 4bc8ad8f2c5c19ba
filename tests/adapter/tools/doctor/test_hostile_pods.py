"""A tenant's pod cannot choose the requests that ``doctor`` sends with its user's rights."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from adapter.pipeline.cluster.objects import ApiService, read
from adapter.tools.client.access import cluster
from adapter.tools.doctor import release
from adapter.tools.doctor.fetch import Fetched, Place, ProxyFetcher
from tests.adapter.clientapi import ApiServer, api_server
from tests.adapter.tools.doctor.clean import workload

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
        answer = _asked(server, kubeconfig, f"http://10.0.0.1:80{path}")
        assert server.asked == []
        assert (answer.status, answer.error) == (0, "its path has .., and is not requested")


def test_a_redirect_is_not_followed(tmp_path: Path) -> None:
    with api_server(tmp_path) as (server, kubeconfig):
        server.redirects[f"{PROXY}/metrics"] = f"{server.url}/api/v1/namespaces/x/secrets"
        answer = _asked(server, kubeconfig, "http://10.0.0.1:80/metrics")
        assert server.asked == [f"GET {PROXY}/metrics"]
        assert answer.status == 302


def test_a_deployment_of_a_tenant_is_not_taken_for_the_adapter() -> None:
    """Its settings name the Prometheus that doctor asks."""
    labels = {release.NAME_LABEL: release.SERVE}
    forged = workload("forged", "a-tenant", meta=labels)
    ours = workload("gma", "gpu-metrics", meta=labels)
    registered = {
        "metadata": {"name": "v1alpha1.view.gpu-metrics-adapter.io"},
        "spec": {
            "group": "view.gpu-metrics-adapter.io",
            "service": {"name": "gma", "namespace": "gpu-metrics"},
        },
    }
    trusted = release.homes([read(registered, ApiService), ApiService()])
    assert release.find([forged, ours], release.SERVE, trusted) == ours
    assert release.find([forged], release.SERVE, trusted) is None
    assert release.find([ours], release.SERVE, release.homes([])) == ours


def test_an_installation_with_another_name_label_is_found() -> None:
    """`nameOverride` of the chart changes that label, and `namespaceOverride` the namespace."""
    labels = {release.NAME_LABEL: "gma", release.PART_OF_LABEL: release.SERVE}
    serve = workload("a", "here", meta={**labels, release.COMPONENT_LABEL: "serve"})
    pool = workload("b", "here", meta={**labels, release.COMPONENT_LABEL: "nodepool"})
    job = workload("c", "here", meta={**labels, release.COMPONENT_LABEL: "certificates"})
    everything = [job, pool, serve]
    assert release.find(everything, release.SERVE) == serve
    assert release.find(everything, release.NODEPOOL) == pool
    assert release.find([job], release.SERVE) is None
    assert release.helm_release(serve) == ("here", "a")
    noted = {"meta.helm.sh/release-namespace": "releases"}
    metadata = msgspec.structs.replace(serve.metadata, annotations=noted)
    moved = msgspec.structs.replace(serve, metadata=metadata)
    assert release.helm_test(moved).startswith("helm -n releases test a; kubectl -n here logs")
    for text in ("$(touch x)", "a;b", "a b", "A", "", "-a"):
        noted = {"meta.helm.sh/release-namespace": text}
        metadata = msgspec.structs.replace(serve.metadata, annotations=noted)
        forged = msgspec.structs.replace(serve, metadata=metadata)
        assert release.helm_release(forged) == ("here", "a"), text
