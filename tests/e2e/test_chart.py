"""The Helm chart: what it renders, what it refuses, and what a real API server makes of it."""

from __future__ import annotations

import base64
import itertools
import json
import re
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from adapter import __version__
from adapter.config import load
from adapter.reload import RESTART
from adapter.settings import Settings
from tests.e2e.apiservice import CUSTOM, NAMESPACE, SERVICE
from tests.e2e.chart import FOLDER, helm, render
from tests.e2e.cluster import Cluster, Object, RefusedError, collection
from tests.e2e.process import Process, free_port
from tests.e2e.stage import Stage

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

CA = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
OWN_CERTIFICATE = {"certificate": {"existingSecret": "ours", "caBundle": CA}}
PROMETHEUS = {
    "config": {
        "server": {"port": 8443, "drain": "1m30s", "grace": 7.5},
        "source": {
            "kind": "prometheus",
            "prometheus": {
                "url": "https://prometheus.monitoring.svc:9090",
                "bearer_token_file": "/etc/prometheus-token/token",
                "max_bytes": 268435456,
            },
        },
    },
    "volumes": [{"name": "token", "secret": {"secretName": "token"}}],
    "volumeMounts": [{"name": "token", "mountPath": "/etc/prometheus-token"}],
}
SCHEDULING = {
    "fullnameOverride": "gma",
    "image": {"repository": "example/gma", "tag": "test", "pullSecrets": [{"name": "pull"}]},
    "replicas": 3,
    "podDisruptionBudget": {"maxUnavailable": "50%"},
    "serviceAccount": {"annotations": {"example/role": "reader"}},
    "podLabels": {"team": "ml"},
    "podAnnotations": {"example/note": "1"},
    "nodeSelector": {"pool": "system"},
    "tolerations": [{"key": "system", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
    "priorityClassName": "system-cluster-critical",
}
EXTERNAL_METRICS = {"externalMetrics": {"enabled": True}}
KEDA = {
    "keda": {"enabled": True, "headlessService": True, "scaledObjects": True},
    "config": {"keda": {"port": 6100, "max_connection_age": "1m"}},
}
NODEPOOL = {
    "nodepool": {
        "enabled": True,
        "apply": True,
        "namespaces": ["charted"],
        "replicas": 3,
        "priorityClass": {"create": False},
        "resources": {"requests": {"cpu": "10m"}},
    },
    "config": {
        "nodepool": {
            "port": 9090,
            "deletion_cost": True,
            "provisioning_request_pods": 10,
            "lease": {"name": "ours"},
        }
    },
}
VALUES: dict[str, dict[str, Any]] = {
    "defaults": {},
    "a certificate of one's own": OWN_CERTIFICATE,
    "without APIServices": {"apiServices": {"create": False}},
    "prometheus as the source": PROMETHEUS,
    "every value of scheduling": SCHEDULING,
    "external metrics": EXTERNAL_METRICS,
    "every value of KEDA": KEDA,
    "without KEDA": {"keda": {"enabled": False}},
    "the node-pool controller, dry": {"nodepool": {"enabled": True}},
    "every value of the node-pool controller": NODEPOOL,
}
every_value_set = pytest.mark.parametrize("values", VALUES.values(), ids=VALUES.keys())


def one(objects: list[Object], kind: str) -> Any:
    (found,) = (obj for obj in objects if obj["kind"] == kind)
    return found


def ensure(admin: Cluster, name: str, labels: Mapping[str, str] | None = None) -> None:
    """Create a namespace, unless it is there."""
    meta = {"name": name, "labels": dict(labels or {})}
    apply(admin, {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}, "")


def apply(admin: Cluster, obj: Object, more: str = "&dryRun=All") -> None:
    """Apply an object as `kubectl apply --server-side --validate=strict` does."""
    query = f"fieldManager=chart&force=true&fieldValidation=Strict{more}"
    path = f"{collection(obj)}/{obj['metadata']['name']}?{query}"
    admin.request("PATCH", path, obj, **{"Content-Type": "application/apply-patch+yaml"})


def pod_of(values: Mapping[str, Any]) -> Any:
    return one(render(values, only=["deployment"]), "Deployment")["spec"]["template"]


@every_value_set
def test_lint_finds_nothing(values: Mapping[str, Any]) -> None:
    done = helm("lint", "--strict", FOLDER, values=values)
    assert done.returncode == 0, done.stdout
    assert not re.search(r"WARNING|ERROR", done.stdout)


@every_value_set
def test_the_adapter_accepts_its_settings_as_they_were_given(
    values: Mapping[str, Any], tmp_path: Path
) -> None:
    """The ConfigMap is `config`, verbatim, and valid in the environment that the pod sets."""
    objects = render(values)
    file = tmp_path / "config.yaml"
    file.write_text(one(objects, "ConfigMap")["data"]["config.yaml"])
    assert yaml.safe_load(file.read_text()) == values.get("config", {})
    (container,) = pod_of(values)["spec"]["containers"]
    settings = load(file, environ={row["name"]: row["value"] for row in container["env"]})
    assert settings.server.port == container["ports"][0]["containerPort"]
    folders = {row["name"]: row["mountPath"] for row in container["volumeMounts"]}
    keda = values.get("keda", {})
    assert settings.keda.enabled == keda.get("enabled", True)
    assert settings.keda.scaled_objects == keda.get("scaledObjects", False)
    grpc = [row["containerPort"] for row in container["ports"] if row["name"] == "grpc"]
    assert grpc == ([settings.keda.port] if settings.keda.enabled else [])
    assert settings.external.enabled == values.get("externalMetrics", {}).get("enabled", False)
    assert settings.server.cert_file == Path(folders["certificate"], "tls.crt")
    assert settings.server.key_file == Path(folders["certificate"], "tls.key")
    assert container["args"] == ["serve", "--config", f"{folders['config']}/config.yaml"]


@pytest.mark.parametrize("values", [{}, NODEPOOL], ids=["dry", "every value"])
def test_the_controller_accepts_its_settings_as_they_were_given(
    values: Mapping[str, Any], tmp_path: Path
) -> None:
    values = {"nodepool": {"enabled": True}, **values}
    file = tmp_path / "config.yaml"
    file.write_text(one(render(values, only=["configmap"]), "ConfigMap")["data"]["config.yaml"])
    deployment = one(render(values, only=["nodepool/deployment"]), "Deployment")["spec"]
    (container,) = deployment["template"]["spec"]["containers"]
    settings = load(file, environ={row["name"]: row["value"] for row in container["env"]}).nodepool
    given = values["nodepool"]
    assert (settings.apply, list(settings.namespaces)) == (
        given.get("apply", False),
        given.get("namespaces", []),
    )
    assert settings.namespace == NAMESPACE
    assert settings.port == container["ports"][0]["containerPort"]
    assert deployment["replicas"] == given.get("replicas", 2)
    assert container["args"][0] == "nodepool"


def test_what_a_default_installation_is() -> None:
    """Two pods behind 443, both versions registered, one certificate in Secret and caBundle."""
    objects = render()
    assert sorted(obj["kind"] for obj in objects) == [
        "APIService",
        "APIService",
        "ClusterRole",
        "ClusterRoleBinding",
        "ClusterRoleBinding",
        "ConfigMap",
        "Deployment",
        "PodDisruptionBudget",
        "RoleBinding",
        "Secret",
        "Service",
        "ServiceAccount",
    ]
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
    ]
    registered = {
        (row["spec"]["group"], row["spec"]["version"], row["spec"]["versionPriority"]): row["spec"]
        for row in objects
        if row["kind"] == "APIService"
    }
    assert registered.keys() == set(CUSTOM)
    for spec in registered.values():
        assert spec["service"] == {"name": SERVICE, "namespace": NAMESPACE, "port": 443}
        assert spec["caBundle"] == one(objects, "Secret")["data"]["ca.crt"]
        assert "insecureSkipTLSVerify" not in spec


def test_external_metrics_are_registered_where_they_are_asked_for() -> None:
    """One more APIService, behind the same certificate; the adapter may look whose it is."""
    objects = render(EXTERNAL_METRICS)
    rows = {obj["metadata"]["name"]: obj["spec"] for obj in objects if obj["kind"] == "APIService"}
    added = rows["v1beta1.external.metrics.k8s.io"]
    assert len(rows) == 3
    assert added["service"] == {"name": SERVICE, "namespace": NAMESPACE, "port": 443}
    assert added["caBundle"] == rows["v1beta1.custom.metrics.k8s.io"]["caBundle"]
    assert environment(objects)["GMA_EXTERNAL__SERVICE"] == f"{NAMESPACE}/{SERVICE}"
    assert may(objects, "apiservices") == ["get"]
    assert may(render(), "apiservices") == []
    unregistered = render(EXTERNAL_METRICS | {"apiServices": {"create": False}})
    assert "GMA_EXTERNAL__SERVICE" not in environment(unregistered)
    assert may(unregistered, "apiservices") == []


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


def test_scaled_objects_are_read_only_where_they_are_asked_for() -> None:
    assert may(render(KEDA), "scaledobjects") == ["list", "watch"]
    assert may(render(), "scaledobjects") == []


def environment(objects: list[Object]) -> dict[str, str]:
    (container,) = one(objects, "Deployment")["spec"]["template"]["spec"]["containers"]
    return {row["name"]: row["value"] for row in container["env"]}


def may(objects: list[Object], resource: str) -> list[str]:
    """What the adapter's own ClusterRole allows with a resource."""
    rules = one(objects, "ClusterRole")["rules"]
    return [verb for rule in rules if resource in rule["resources"] for verb in rule["verbs"]]


def test_a_certificate_of_ones_own_is_all_that_is_used() -> None:
    objects = render(OWN_CERTIFICATE)
    assert not [obj for obj in objects if obj["kind"] == "Secret"]
    volumes = one(objects, "Deployment")["spec"]["template"]["spec"]["volumes"]
    assert {"secretName": "ours", "defaultMode": 0o440} in [row.get("secret") for row in volumes]
    bundles = {obj["spec"]["caBundle"] for obj in objects if obj["kind"] == "APIService"}
    assert bundles == {base64.b64encode(CA.encode()).decode()}


@pytest.mark.parametrize(
    ("server", "seconds"),
    [
        ({}, 35),
        ({"drain": 0, "grace": 1}, 11),
        ({"drain": "7", "grace": 2.5}, 20),
        # Text with units is rounded up by a whole second.
        ({"drain": "1m30s", "grace": "500ms"}, 102),
    ],
    ids=str,
)
def test_kubernetes_waits_longer_than_the_adapter_takes(
    server: Mapping[str, Any], seconds: int
) -> None:
    """The grace of the pod is that of `server.drain` and `server.grace`, and ten seconds."""
    pod = pod_of({"config": {"server": server}})
    assert pod["spec"]["terminationGracePeriodSeconds"] == seconds
    settings = Settings.model_validate({"server": server}).server
    assert seconds >= settings.drain + settings.grace + 10


def test_pods_are_replaced_for_what_they_cannot_take_up() -> None:
    """A change of source, values or log leaves the pods running: they take it up themselves."""
    changed = {
        "server": {"drain": 1},
        "authentication": {"cache": 1},
        "authorization": {"cache": 1},
        "cluster": {"services": False},
        "source": {"scrape": {"interval": 1}},
        "values": {"window": 1},
        "sharing": {"policy": "equal"},
        "metrics": [{"name": "queue"}],
        "external": {"unread": 1},
        "keda": {"port": 7000},
        "nodepool": {"interval": 30},
        "log": {"level": "debug"},
    }
    assert changed.keys() == Settings.model_fields.keys()
    before = pod_of({})["metadata"]
    replaced = [
        name
        for name, row in changed.items()
        if pod_of({"config": {name: row}})["metadata"] != before
    ]
    assert replaced == list(RESTART)


def test_the_chart_knows_every_section_and_the_adapters_release() -> None:
    schema = json.loads((FOLDER / "values.schema.json").read_text())
    assert schema["properties"]["config"]["properties"].keys() == Settings.model_fields.keys()
    chart = yaml.safe_load((FOLDER / "Chart.yaml").read_text())
    assert chart["appVersion"] == __version__


def test_every_value_is_documented_and_in_the_schema() -> None:
    """In values.yaml a comment stands above each key that is not a mere section."""
    lines = (FOLDER / "values.yaml").read_text().splitlines()
    bare = [
        line
        for above, line in itertools.pairwise(lines)
        if re.match(r" *\w+: ", line) and not above.lstrip().startswith("#")
    ]
    assert bare == []
    schema = json.loads((FOLDER / "values.schema.json").read_text())["properties"]
    values = yaml.safe_load("\n".join(lines))
    assert values.keys() == schema.keys() - {"global"}


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"replicas": "two"}, "at '/replicas': got string, want integer"),
        ({"replica": 1}, "additional properties 'replica' not allowed"),
        ({"image": {"pulPolicy": "x"}}, "at '/image': additional properties 'pulPolicy'"),
        ({"config": {"sorce": {}}}, "at '/config': additional properties 'sorce' not allowed"),
        ({"config": {"server": {"drain": "soon"}}}, "at '/config/server/drain'"),
        ({"config": {"server": {"port": 443}}}, "at '/config/server/port': minimum"),
        ({"config": {"keda": {"enabled": False}}}, "config.keda.enabled is set by the chart: use"),
        ({"config": {"keda": {"port": 80}}}, "at '/config/keda/port': minimum"),
        (
            {"config": {"external": {"enabled": True}}},
            "config.external.enabled is set by the chart: use externalMetrics.enabled",
        ),
        (
            {"config": {"nodepool": {"apply": True}}},
            "config.nodepool.apply is set by the chart: use nodepool.apply",
        ),
        ({"nodepool": {"aply": True}}, "at '/nodepool': additional properties 'aply' not allowed"),
        ({"keda": {"enable": True}}, "at '/keda': additional properties 'enable' not allowed"),
        ({"config": {"server": {"key_file": "/x"}}}, "config.server.key_file is set by the chart"),
        (
            {"config": {"source": {"prometheus": {"password": "x"}}}},
            "config.source.prometheus.password would lie open in a ConfigMap",
        ),
        ({"certificate": {"existingSecret": "ours"}}, "needs certificate.caBundle"),
        ({"certificate": {"caBundle": CA}}, "goes with certificate.existingSecret"),
        ({"certificate": {"caBundle": "/ca.crt"}}, "at '/certificate/caBundle'"),
        (
            {"podDisruptionBudget": {"maxUnavailable": 0}},
            "at '/podDisruptionBudget/maxUnavailable'",
        ),
        ({"fullnameOverride": "a.b"}, "at '/fullnameOverride'"),
    ],
    ids=str,
)
def test_a_wrong_value_is_refused_by_name(values: Mapping[str, Any], words: str) -> None:
    done = helm("template", SERVICE, FOLDER, values=values)
    assert done.returncode != 0
    assert words in done.stderr


def test_the_image_is_what_the_chart_runs() -> None:
    """User, entry point and port of the Dockerfile are those that the Deployment counts on."""
    text = (FOLDER.parents[1] / "Dockerfile").read_text()
    pod = pod_of({})["spec"]
    user, group = pod["securityContext"]["runAsUser"], pod["securityContext"]["runAsGroup"]
    (container,) = pod["containers"]
    assert f"\nUSER {user}:{group}\n" in text
    for port in container["ports"]:
        assert f"\nEXPOSE {port['containerPort']}\n" in text
    assert '\nENTRYPOINT ["gpu-metrics-adapter"]\n' in text
    assert "command" not in container
    kept = Settings().server.cert_dir
    assert any(kept.is_relative_to(row["mountPath"]) for row in container["volumeMounts"])


def test_the_pods_certificate_is_trusted_by_the_ca_bundle(tmp_path: Path) -> None:
    """`serve` runs with the Secret, and a client who knows the caBundle alone believes it."""
    objects = render()
    files = {
        name: base64.b64decode(content) for name, content in one(objects, "Secret")["data"].items()
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "pods.yaml").write_text("")
    config = tmp_path / "config.yaml"
    config.write_text(one(objects, "ConfigMap")["data"]["config.yaml"])
    port = free_port()
    environment = {
        "GMA_SERVER__CERT_FILE": str(tmp_path / "tls.crt"),
        "GMA_SERVER__KEY_FILE": str(tmp_path / "tls.key"),
        "GMA_SERVER__PORT": str(port),
        "GMA_CLUSTER__PODS_FILE": str(tmp_path / "pods.yaml"),
        "GMA_KEDA__ENABLED": "false",
    }
    command: list[str | Path] = [sys.executable, "-P", "-m", "adapter", "serve", "--config", config]
    process = Process(command, tmp_path / "serve.log", environment)
    host = f"{SERVICE}.{NAMESPACE}.svc"

    def listening() -> bool:
        socket.create_connection(("127.0.0.1", port), 5).close()
        return True

    def live(name: str) -> str:
        # A client each: a pooled connection would not look at the certificate again.
        cluster = Cluster(f"https://127.0.0.1:{port}", str(tmp_path / "ca.crt"))
        try:
            return cluster.client.get("/livez", extensions={"sni_hostname": name}).text
        finally:
            cluster.close()

    process.start()
    try:
        process.wait_ready(listening)
        assert live(host) == live(f"{host}.cluster.local") == "ok"
        with pytest.raises(httpx.ConnectError, match="certificate"):
            live("another.gpu-metrics.svc")
    finally:
        process.stop()


@every_value_set
def test_the_api_server_takes_every_object(stage: Stage, values: Mapping[str, Any]) -> None:
    """Server-side, strictly: no field is unknown, none is missing."""
    ensure(stage.admin, "charted")
    for obj in render(values, namespace="charted"):
        apply(stage.admin, obj)


def test_a_field_that_does_not_exist_would_be_noticed(stage: Stage) -> None:
    ensure(stage.admin, "charted")
    service = one(render(namespace="charted", only=["service"]), "Service")
    service["spec"]["sessionAfinity"] = "None"
    with pytest.raises(RefusedError, match="sessionAfinity"):
        apply(stage.admin, service)


@every_value_set
def test_the_pods_run_where_only_restricted_ones_may(
    stage: Stage, values: Mapping[str, Any]
) -> None:
    """The pod passes the Pod Security Standard `restricted`."""
    ensure(stage.admin, "restricted", {"pod-security.kubernetes.io/enforce": "restricted"})
    pod: Object = {"apiVersion": "v1", "kind": "Pod", **pod_of(values)}
    pod["metadata"] |= {"name": "pod", "namespace": "restricted"}
    created = stage.admin.request("POST", f"{collection(pod)}?dryRun=All", pod)
    assert created["spec"]["securityContext"]["runAsUser"] == 65532
    pod["spec"]["securityContext"].pop("seccompProfile")
    with pytest.raises(RefusedError, match="restricted"):
        stage.admin.request("POST", f"{collection(pod)}?dryRun=All", pod)


def test_a_foreign_apiservice_is_not_taken_over(stage: Stage) -> None:
    """The stage's adapter has them: an installation elsewhere fails and says whose they are."""
    cluster = (f"--kubeconfig={stage.plane.kubeconfig}", "--dry-run=server")
    done = helm("install", "second", FOLDER, "--namespace=elsewhere", *cluster, values={})
    assert done.returncode != 0
    assert (
        f"APIService v1beta1.custom.metrics.k8s.io belongs to Service {NAMESPACE}/{SERVICE} "
        "and is not taken over"
    ) in done.stderr
    # Not even when asked to adopt what is there.
    adopt = (*cluster, "--take-ownership")
    done = helm("install", "second", FOLDER, "--namespace=elsewhere", *adopt, values={})
    assert "is not taken over" in done.stderr
    # Neither is that of external metrics, whoever has it.
    theirs: Object = {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": "v1beta1.external.metrics.k8s.io"},
        "spec": {
            "group": "external.metrics.k8s.io",
            "version": "v1beta1",
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "service": {"namespace": "keda", "name": "keda-operator-metrics-apiserver"},
            "insecureSkipTLSVerify": True,
        },
    }
    stage.admin.create(theirs)
    try:
        to = (f"--namespace={NAMESPACE}", *adopt)
        done = helm("install", SERVICE, FOLDER, *to, values=EXTERNAL_METRICS)
        assert done.returncode != 0
        assert (
            "APIService v1beta1.external.metrics.k8s.io belongs to Service "
            "keda/keda-operator-metrics-apiserver and is not taken over"
        ) in done.stderr
    finally:
        stage.admin.delete(f"{collection(theirs)}/{theirs['metadata']['name']}")
    # Its own are its own.
    done = helm("install", SERVICE, FOLDER, f"--namespace={NAMESPACE}", *adopt, values={})
    assert done.returncode == 0, done.stderr
    assert "kubectl get apiservices v1beta1.custom.metrics.k8s.io" in done.stdout
    # And who registers nothing is in nobody's way.
    alone = {"apiServices": {"create": False}}
    done = helm("install", "second", FOLDER, "--namespace=elsewhere", *cluster, values=alone)
    assert done.returncode == 0, done.stderr


def test_upgrades_keep_the_certificate(stage: Stage) -> None:
    """Installed and upgraded for real; a deleted Secret is what makes a new one."""
    space = "installed"
    to = (f"--namespace={space}", f"--kubeconfig={stage.plane.kubeconfig}")
    path = f"/api/v1/namespaces/{space}/secrets/second-gpu-metrics-adapter-tls"
    values: dict[str, Any] = {"apiServices": {"create": False}}
    ensure(stage.admin, space)
    seen: list[Object] = []
    try:
        for command in ("install", "upgrade", "upgrade"):
            if len(seen) == 2:
                stage.admin.delete(path)
            done = helm(command, "second", FOLDER, *to, values=values | {"replicas": 1 + len(seen)})
            assert done.returncode == 0, done.stderr
            seen.append(stage.admin.get(path)["data"])
        assert "rollout status deployment/second-gpu-metrics-adapter" in done.stdout
    finally:
        helm("uninstall", "second", *to)
    assert seen[0] == seen[1] != seen[2]
    with pytest.raises(RefusedError):
        stage.admin.get(path)
