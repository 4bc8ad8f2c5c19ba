"""The NetworkPolicies: what they let through is what the pods need."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from adapter.pipeline.sources.scrape.discovery import DISCOVERY_RULES
from tests.e2e.apiservice import NAMESPACE, SERVICE
from tests.e2e.chart import FOLDER, pods, render
from tests.e2e.chartvalues import (
    EXTERNAL_METRICS,
    NETWORK,
    NETWORK_OF_A_CLOUD,
    NETWORK_OF_A_STORE,
)
from tests.e2e.networkpolicy import End, lets_through

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

NAME = "app.kubernetes.io/name"
INSTANCE = "app.kubernetes.io/instance"
OPEN: dict[str, Any] = {"networkPolicy": {"keda": {"enabled": False}}}
ON: dict[str, Any] = {"networkPolicy": {"enabled": True}, "nodepool": {"enabled": True}}


def ours(name: str) -> End:
    return End("10.244.0.9", NAMESPACE, {NAME: name, INSTANCE: SERVICE})


SERVE = ours("gpu-metrics-adapter")
NODEPOOL = ours("gpu-metrics-adapter-nodepool")
MAINTAIN = ours("gpu-metrics-adapter-maintain")
# kube-apiserver of a managed cluster, or a static pod on its node's network.
CONTROL_PLANE = End("192.0.2.8")
# Where the control plane reaches pods through a tunnel.
KONNECTIVITY = End("10.244.0.2", "kube-system", {"app": "konnectivity-agent"})
KEDA = End("10.244.0.3", "keda", {"app": "keda-operator"})
PROMETHEUS = End("10.244.0.4", "monitoring", {NAME: "prometheus"})
TENANT = End("10.244.0.5", "team-a", {"app": "shell"})
RESOLVER = End("10.244.0.6", "kube-system", {"k8s-app": "kube-dns"})
NODE_RESOLVER = End("169.254.20.10")
EXPORTER = End("10.244.0.7", "gpu-operator", {"app": "nvidia-dcgm-exporter"})
HOST_EXPORTER = End("192.0.2.77")
VLLM = End("10.244.0.8", "ml", {"app": "vllm"}, {"vllm": 8123})
METADATA = End("169.254.169.254")
INTERNET = End("203.0.113.7")
OTHER = End("198.51.100.1")


@pytest.mark.parametrize(
    ("source", "to", "port"),
    [
        (CONTROL_PLANE, SERVE, 6443),
        (KONNECTIVITY, SERVE, 6443),
        (PROMETHEUS, SERVE, 6443),
        (KEDA, SERVE, 6000),
        (PROMETHEUS, NODEPOOL, 8081),
        (SERVE, RESOLVER, 53),
        (SERVE, NODE_RESOLVER, 53),
        (SERVE, CONTROL_PLANE, 6443),
        (SERVE, CONTROL_PLANE, 443),
        (SERVE, EXPORTER, 9400),
        (SERVE, HOST_EXPORTER, 9400),
        (SERVE, VLLM, 8000),
        (NODEPOOL, RESOLVER, 53),
        (NODEPOOL, CONTROL_PLANE, 443),
        (MAINTAIN, CONTROL_PLANE, 6443),
    ],
)
def test_the_policies_allow_required_traffic(source: End, to: End, port: int) -> None:
    assert lets_through(render(ON), source, to, port)


@pytest.mark.parametrize(
    ("source", "to", "port"),
    [
        # KEDA's listener asks nobody who they are.
        (TENANT, SERVE, 6000),
        (CONTROL_PLANE, SERVE, 6000),
        (TENANT, NODEPOOL, 8081),
        (TENANT, SERVE, 22),
        (TENANT, MAINTAIN, 443),
        (SERVE, TENANT, 22),
        (SERVE, TENANT, 5432),
        (SERVE, METADATA, 80),
        (SERVE, HOST_EXPORTER, 8000),
        (NODEPOOL, EXPORTER, 9400),
        (NODEPOOL, METADATA, 80),
        (MAINTAIN, EXPORTER, 9400),
        (MAINTAIN, TENANT, 8080),
    ],
)
def test_the_policies_block_other_traffic(source: End, to: End, port: int) -> None:
    assert not lets_through(render(ON), source, to, port)
    # It is the policies that hold it back.
    assert lets_through(render(OPEN), source, to, port)


@pytest.mark.parametrize(
    ("source", "port", "passes"),
    [
        (KEDA, 6000, True),
        (End("10.244.0.3", "kube-system", {"app": "keda-operator"}), 6000, True),
        (End("10.244.0.3", "openshift-keda", {"app": "keda-operator"}), 6000, True),
        (TENANT, 6000, False),
        (CONTROL_PLANE, 6000, False),
        (CONTROL_PLANE, 6443, True),
        (KONNECTIVITY, 6443, True),
        (PROMETHEUS, 6443, True),
        (TENANT, 6443, True),
    ],
)
def test_by_default_only_keda_reaches_its_port_and_the_apis_port_is_open(
    source: End, port: int, passes: bool
) -> None:
    assert lets_through(render(), source, SERVE, port) is passes


def test_the_default_policy_follows_ports_and_peers_of_the_values() -> None:
    peers = [{"podSelector": {"matchLabels": {"app": "keda-operator"}}}]
    values: dict[str, Any] = {
        "networkPolicy": {"keda": {"from": peers}},
        "config": {"keda": {"port": 6001}, "server": {"port": 6444}},
    }
    asking = End("10.244.0.4", NAMESPACE, {"app": "keda-operator"})
    assert lets_through(render(values), asking, SERVE, 6001)
    assert lets_through(render(values), TENANT, SERVE, 6444)
    assert not lets_through(render(values), KEDA, SERVE, 6001)


def test_the_default_policy_allows_all_requests_of_the_pods() -> None:
    for to, port in ((EXPORTER, 9400), (INTERNET, 443), (RESOLVER, 53)):
        assert lets_through(render(), SERVE, to, port)


def test_dns_is_allowed_over_udp_and_tcp() -> None:
    for protocol in ("UDP", "TCP"):
        assert lets_through(render(ON), SERVE, RESOLVER, 53, protocol)
        # OpenShift's resolver pods.
        assert lets_through(render(ON), NODEPOOL, RESOLVER, 5353, protocol)


@pytest.mark.parametrize(
    ("source", "to", "port", "passes"),
    [
        (CONTROL_PLANE, SERVE, 6443, True),
        # Narrowed to where kube-apiserver is, and to Prometheus.
        (KONNECTIVITY, SERVE, 8081, False),
        (OTHER, SERVE, 6443, False),
        (End("10.244.0.4", NAMESPACE, {"app": "keda-operator"}), SERVE, 6000, True),
        (KEDA, SERVE, 6000, False),
        (SERVE, CONTROL_PLANE, 8443, True),
        (SERVE, OTHER, 8443, False),
        (SERVE, CONTROL_PLANE, 443, False),
        # Added by the discovery rules and fixed targets of the settings.
        (SERVE, EXPORTER, 9500, True),
        (SERVE, HOST_EXPORTER, 9600, True),
        (SERVE, EXPORTER._replace(named={"metrics": 9777}), 9777, True),
        (SERVE, EXPORTER, 5000, False),
        # Pods' own pages: of one namespace, at the settings' port and port names.
        (SERVE, VLLM, 9700, True),
        (SERVE, VLLM, 8123, True),
        (SERVE, TENANT, 9700, False),
        # What is added by hand.
        (TENANT, SERVE, 6443, True),
        (SERVE, INTERNET, 25, True),
        # The history's Prometheus, at its pods' port.
        (NODEPOOL, End("fd00::1"), 9090, True),
        (NODEPOOL, OTHER, 9090, False),
    ],
)
def test_each_value_of_the_policies_has_an_effect(
    source: End, to: End, port: int, passes: bool
) -> None:
    assert lets_through(render(NETWORK), source, to, port) is passes


@pytest.mark.parametrize(
    ("values", "to", "port", "passes"),
    [
        (NETWORK_OF_A_STORE, PROMETHEUS, 9090, True),
        (NETWORK_OF_A_STORE, PROMETHEUS, 9091, False),
        # Exporters are asked by that Prometheus alone then.
        (NETWORK_OF_A_STORE, EXPORTER, 9400, False),
        (NETWORK_OF_A_STORE, METADATA, 80, False),
        (NETWORK_OF_A_CLOUD, INTERNET, 443, True),
        (NETWORK_OF_A_CLOUD, METADATA, 80, True),
        (NETWORK_OF_A_CLOUD, TENANT, 80, False),
    ],
)
def test_the_configured_source_is_reachable(
    values: Mapping[str, Any], to: End, port: int, passes: bool
) -> None:
    assert lets_through(render(values), SERVE, to, port) is passes


@pytest.mark.parametrize(
    ("url", "port"),
    [
        ("http://prometheus.monitoring", 80),
        ("https://mimir.example/prometheus", 443),
        ("http://prometheus.monitoring.svc:9090/", 9090),
        ("http://[fd00::1]:9091", 9091),
        ("http://[fd00::1]", 80),
    ],
)
def test_the_port_of_a_url_is_allowed(url: str, port: int) -> None:
    source = {"kind": "prometheus", "prometheus": {"url": url}}
    policies = render({"networkPolicy": {"enabled": True}, "config": {"source": source}})
    assert lets_through(policies, SERVE, PROMETHEUS, port)
    assert not lets_through(policies, SERVE, PROMETHEUS, port + 1)


def test_the_ports_of_every_discovered_exporter_are_open() -> None:
    """The default is that of the discovery rules, so that a new rule needs a new port."""
    ports = yaml.safe_load((FOLDER / "values.yaml").read_text())["networkPolicy"]["exporterPorts"]
    assert set(ports) == {rule.fallback for rule in DISCOVERY_RULES}


def test_each_pod_has_a_policy() -> None:
    """The labels of every pod template are those that one of the policies selects."""
    objects = render(ON)
    policies = [row["spec"]["podSelector"] for row in objects if row["kind"] == "NetworkPolicy"]
    for pod in pods(objects):
        labels = pod["metadata"]["labels"].items()
        chosen = [row for row in policies if row["matchLabels"].items() <= labels]
        assert len(chosen) == 1, pod["metadata"]


def test_policies_exist_only_if_enabled() -> None:
    for values in (OPEN, {"keda": {"enabled": False}}):
        rows = [row for row in render(EXTERNAL_METRICS | values) if row["kind"] == "NetworkPolicy"]
        assert not rows
    without = render({"networkPolicy": {"enabled": True}, "keda": {"enabled": False}})
    assert not lets_through(without, KEDA, SERVE, 6000)
