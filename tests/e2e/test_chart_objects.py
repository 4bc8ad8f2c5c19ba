"""What the chart renders, set by set."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from adapter import __version__
from tests.e2e.apiservice import CHARTED, NAMESPACE, SERVICE
from tests.e2e.chart import one, pods, render
from tests.e2e.chartvalues import (
    CA,
    EXTERNAL_METRICS,
    KEDA,
    OWN_CERTIFICATE,
    RESOURCE_METRICS,
    every_value_set,
)
from tests.e2e.cluster import Object

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

NAME = "app.kubernetes.io/name"


def test_what_a_default_installation_is() -> None:
    """Two pods behind 443, both versions registered, and what keeps the certificate."""
    objects = render()
    assert Counter(obj["kind"] for obj in objects) == {
        "APIService": 3,
        "ClusterRole": 4,
        "ClusterRoleBinding": 3,
        "ConfigMap": 2,
        "CronJob": 1,
        "Deployment": 1,
        "Job": 1,
        "NetworkPolicy": 1,
        "PodDisruptionBudget": 1,
        "Role": 2,
        "RoleBinding": 3,
        "Secret": 2,
        "Service": 1,
        "ServiceAccount": 2,
    }
    assert {obj["metadata"].get("namespace") for obj in objects} == {None, NAMESPACE, "kube-system"}
    deployment, service = one(objects, "Deployment")["spec"], one(objects, "Service")["spec"]
    (container,) = deployment["template"]["spec"]["containers"]
    assert deployment["replicas"] == 2
    assert container["image"] == f"gpu-metrics-adapter:{__version__}"
    assert service["selector"].items() <= deployment["template"]["metadata"]["labels"].items()
    assert [(port["port"], port["targetPort"]) for port in service["ports"]] == [
        (443, "https"),
        (6000, "grpc"),
    ]
    assert [(port["name"], port["containerPort"]) for port in container["ports"]] == [
        ("https", 6443),
        ("grpc", 6000),
        ("probes", 8080),
    ]
    registered = {
        (row["spec"]["group"], row["spec"]["version"], row["spec"]["versionPriority"]): row["spec"]
        for row in objects
        if row["kind"] == "APIService"
    }
    assert registered.keys() == set(CHARTED)
    for spec in registered.values():
        assert spec["service"] == {"name": SERVICE, "namespace": NAMESPACE, "port": 443}
        assert "insecureSkipTLSVerify" not in spec


def test_external_metrics_are_registered_if_enabled() -> None:
    """One more APIService, behind the same certificate; the adapter may look whose it is."""
    objects = render(EXTERNAL_METRICS)
    rows = {obj["metadata"]["name"]: obj["spec"] for obj in objects if obj["kind"] == "APIService"}
    added = rows["v1beta1.external.metrics.k8s.io"]
    assert len(rows) == 4
    assert added["service"] == {"name": SERVICE, "namespace": NAMESPACE, "port": 443}
    assert environment(objects)["GMA_EXTERNAL__SERVICE"] == f"{NAMESPACE}/{SERVICE}"
    assert may(objects, "apiservices") == ["get"]
    assert may(render(), "apiservices") == []
    unregistered = render(EXTERNAL_METRICS | {"apiServices": {"create": False}})
    assert "GMA_EXTERNAL__SERVICE" not in environment(unregistered)
    assert may(unregistered, "apiservices") == []


def test_one_switch_serves_resource_metrics() -> None:
    """Its APIService, its role and its setting; metrics-server keeps the API by default."""

    def parts(values: Mapping[str, Any]) -> tuple[list[str], str | None]:
        objects = render(values)
        named = [
            obj["metadata"]["name"]
            for obj in objects
            if obj["kind"] in ("APIService", "ClusterRole")
            and (
                obj["metadata"]["name"] == "v1beta1.metrics.k8s.io"
                or obj["metadata"]["name"].endswith(":resource-metrics")
            )
        ]
        return sorted(named), environment(objects).get("GMA_RULES__RESOURCE_METRICS")

    assert parts({}) == ([], None)
    role = f"{SERVICE}:resource-metrics"
    assert parts(RESOURCE_METRICS) == ([role, "v1beta1.metrics.k8s.io"], "true")
    unregistered = RESOURCE_METRICS | {"apiServices": {"create": False}}
    assert parts(unregistered) == ([role], "true")


def test_one_switch_turns_the_view_api_off() -> None:
    """Its APIService, its roles, its setting, and the right that it needs."""

    def view(values: Mapping[str, Any]) -> tuple[list[str], str, list[str]]:
        objects = render(values)
        named = [
            obj["metadata"]["name"]
            for obj in objects
            if (
                obj["kind"] in ("APIService", "ClusterRole")
                and obj["metadata"]["name"].partition(":")[2] in ("view", "gpus")
            )
            or obj["metadata"]["name"].startswith("v1alpha1.view.")
        ]
        right = may(objects, "horizontalpodautoscalers")
        return sorted(named), environment(objects)["GMA_VIEW__ENABLED"], right

    roles = [f"{SERVICE}:gpus", f"{SERVICE}:view"]
    name = "v1alpha1.view.gpu-metrics-adapter.io"
    assert view({}) == ([*roles, name], "true", ["list", "watch"])
    assert view({"apiServices": {"create": False}}) == (roles, "true", ["list", "watch"])
    assert view({"view": {"enabled": False}}) == ([], "false", [])


def test_who_may_view_pods_may_view_their_gpus() -> None:
    """The roles view, edit and admin get the resources of namespaces, and no other."""
    roles = {
        obj["metadata"]["name"].partition(":")[2]: obj
        for obj in render(only=["viewroles"])
        if obj["kind"] == "ClusterRole"
    }

    def aggregated(role: Object) -> set[str]:
        prefix = "rbac.authorization.k8s.io/aggregate-to-"
        labels = role["metadata"]["labels"]
        return {key.removeprefix(prefix) for key in labels if key.startswith(prefix)}

    assert {name: aggregated(role) for name, role in roles.items()} == {
        "view": {"view", "edit", "admin"},
        "gpus": {"cluster-reader"},
    }
    assert {name: role["rules"][0]["resources"] for name, role in roles.items()} == {
        "view": ["gpupods", "gpuworkloads", "gpuhistories"],
        "gpus": ["gpus", "gpunodes", "gpupools"],
    }


def test_keda_finds_the_pods_through_the_service_or_one_by_one() -> None:
    service, headless = (obj for obj in render(KEDA) if obj["kind"] == "Service")
    assert {"name": "grpc", "port": 6000, "targetPort": "grpc"} in service["spec"]["ports"]
    assert headless["metadata"]["name"] == f"{SERVICE}-headless"
    assert headless["spec"]["clusterIP"] == "None"
    # Without an address of its own the port of the Service is the port of the pods.
    assert headless["spec"]["ports"] == [{"name": "grpc", "port": 6100, "targetPort": "grpc"}]
    assert headless["spec"]["selector"] == service["spec"]["selector"]
    without = one(render({"keda": {"enabled": False}}), "Service")
    assert [port["name"] for port in without["spec"]["ports"]] == ["https"]


def test_scaled_objects_are_read_only_in_the_configured_namespaces() -> None:
    assert may(render(KEDA), "scaledobjects") == ["list", "watch"]
    assert may(render(), "scaledobjects") == []


def environment(objects: list[Object]) -> dict[str, str]:
    (container,) = one(objects, "Deployment")["spec"]["template"]["spec"]["containers"]
    return {row["name"]: row["value"] for row in container["env"]}


def may(objects: list[Object], resource: str) -> list[str]:
    """What the adapter's own ClusterRole allows with a resource."""
    rules = one(objects, "ClusterRole", SERVICE)["rules"]
    return [verb for rule in rules if resource in rule["resources"] for verb in rule["verbs"]]


def test_a_supplied_certificate_replaces_all_others() -> None:
    objects = render(OWN_CERTIFICATE)
    assert not [obj for obj in objects if obj["kind"] == "Secret"]
    volumes = one(objects, "Deployment")["spec"]["template"]["spec"]["volumes"]
    assert "ours" in [row.get("secret", {}).get("secretName") for row in volumes]
    bundles = {obj["spec"]["caBundle"] for obj in objects if obj["kind"] == "APIService"}
    assert bundles == {base64.b64encode(CA.encode()).decode()}


@every_value_set
def test_each_selector_matches_the_pods_of_one_component(values: Mapping[str, Any]) -> None:
    """Those of Services, budgets, Deployments and spreads, in every set of values."""
    objects = render(values)
    labels = [pod["metadata"]["labels"].items() for pod in pods(objects)]
    for kind, selector in selectors(objects):
        names = {dict(pairs)[NAME] for pairs in labels if selector.items() <= pairs}
        assert len(names) == 1, kind


def selectors(objects: list[Object]) -> Iterator[tuple[str, Mapping[str, str]]]:
    for obj in objects:
        kind, spec = obj["kind"], obj.get("spec", {})
        if kind == "Service":
            yield kind, spec["selector"]
        if kind in ("PodDisruptionBudget", "Deployment"):
            yield kind, spec["selector"]["matchLabels"]
        if kind == "Deployment":
            for row in spec["template"]["spec"]["topologySpreadConstraints"]:
                yield f"spread of {obj['metadata']['name']}", row["labelSelector"]["matchLabels"]


@every_value_set
def test_a_service_uses_ports_of_its_pods(values: Mapping[str, Any]) -> None:
    objects = render(values)
    for service in (obj["spec"] for obj in objects if obj["kind"] == "Service"):
        (pod,) = [
            pod["spec"]
            for pod in pods(objects)
            if service["selector"].items() <= pod["metadata"]["labels"].items()
        ]
        ports = {port["name"]: port["containerPort"] for port in pod["containers"][0]["ports"]}
        for port in service["ports"]:
            assert port["targetPort"] in ports
            # Without an address of its own nothing changes a port on the way.
            assert service.get("clusterIP") != "None" or port["port"] == ports[port["targetPort"]]


def test_the_controller_survives_drains_as_the_server_does() -> None:
    """Both components: a budget that unhealthy pods do not hold up, over nodes and zones."""
    objects = render({"nodepool": {"enabled": True}})
    for name in (SERVICE, f"{SERVICE}-nodepool"):
        budget = one(objects, "PodDisruptionBudget", name)["spec"]
        assert (budget["maxUnavailable"], budget["unhealthyPodEvictionPolicy"]) == (
            1,
            "AlwaysAllow",
        )
        deployment = one(objects, "Deployment", name)["spec"]
        assert deployment["replicas"] == 2
        spread = deployment["template"]["spec"]["topologySpreadConstraints"]
        assert [row["topologyKey"] for row in spread] == [
            "kubernetes.io/hostname",
            "topology.kubernetes.io/zone",
        ]


@every_value_set
def test_probes_use_endpoints_of_the_pod(values: Mapping[str, Any]) -> None:
    """Live restarts and ready takes out of service: decision 2 says why they differ."""
    for obj in render(values):
        if obj["kind"] != "Deployment":
            continue
        container = obj["spec"]["template"]["spec"]["containers"][0]
        paths = {
            kind: container[f"{kind}Probe"]["httpGet"]["path"]
            for kind in ("startup", "liveness", "readiness")
        }
        assert paths == {"startup": "/livez", "liveness": "/livez", "readiness": "/readyz"}
        ports = {port["name"] for port in container["ports"]}
        assert {container[f"{kind}Probe"]["httpGet"]["port"] for kind in paths} <= ports
