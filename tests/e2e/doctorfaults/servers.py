"""Faults of inference servers (GMA501 to GMA505)."""

from __future__ import annotations

from collections.abc import Iterator

from tests.adapter.world import own_page
from tests.e2e.cluster import PODS
from tests.e2e.doctorfaults.register import CHAT, VLLM, configured, fault, server, without
from tests.e2e.pagestand import made, stand
from tests.e2e.site import Site


@fault("GMA501")
def a_server_that_does_not_opt_in(site: Site) -> Iterator[None]:
    with stand(site, server(), 8000, own_page(VLLM).encode()):
        yield


@fault("GMA502")
def a_server_at_another_port(site: Site) -> Iterator[None]:
    with stand(site, server(scrape="true", port="9999"), 8000, b""):
        yield


@fault("GMA502")
def a_port_that_the_server_does_not_have(site: Site) -> Iterator[None]:
    with stand(site, server(scrape="true", port="metrics"), 8000, b""):
        yield


@fault("GMA503")
def a_server_at_another_path(site: Site) -> Iterator[None]:
    with stand(site, server(scrape="true"), 8000, b"not found", 404):
        yield


@fault("GMA504")
def a_server_without_a_queue(site: Site) -> Iterator[None]:
    page = without(own_page(VLLM).encode(), "num_requests_waiting")
    with stand(site, server(scrape="true"), 8000, page):
        yield


@fault("GMA505")
def a_server_that_the_settings_leave_out(site: Site) -> Iterator[None]:
    off = "source: {scrape: {interval: 1s, inference: {enabled: false}}}\n"
    page = own_page(VLLM).encode()
    with configured(site, off), stand(site, server(scrape="true"), 8000, page):
        yield


@fault("GMA505")
def two_servers_with_one_address(site: Site) -> Iterator[None]:
    """As with ``hostNetwork``."""
    with stand(site, server(scrape="true"), 8000, own_page(VLLM).encode()):
        address = site.admin.get(f"{PODS.format(ns=CHAT)}/vllm")["status"]["podIP"]
        site.kubelet.reserve(CHAT, "twin", address)
        with made(site, server("twin", scrape="true")):
            path = f"{PODS.format(ns=CHAT)}/twin"
            site.admin.wait(path, lambda obj: obj["status"].get("podIP") == address, "it runs")
            yield
