"""Rules of prometheus-adapter and delegates: what the chart renders for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from adapter.config.process.config import load
from tests.e2e.apiservice import NAMESPACE, SERVICE
from tests.e2e.auditlog import Right, granted
from tests.e2e.chart import FOLDER, helm, one, pod_of, render
from tests.e2e.chartvalues import DELEGATION, RULES
from tests.e2e.networkpolicy import End, lets_through
from tests.e2e.stage import Stage

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

ACCOUNT = f"{SERVICE}-delegation"
NAME = "prometheus-adapter-rules"


def environment(values: dict[str, Any]) -> dict[str, str]:
    (container,) = pod_of(values)["spec"]["containers"]
    return {row["name"]: row["value"] for row in container["env"]}


def test_an_existing_configmap_is_mounted_as_the_rules_file(tmp_path: Path) -> None:
    spec = pod_of(RULES)["spec"]
    (volume,) = [row for row in spec["volumes"] if row["name"] == NAME]
    assert volume["configMap"] == {
        "name": "prometheus-adapter",
        "items": [{"key": "rules.yaml", "path": "rules.yaml"}],
    }
    (mount,) = [row for row in spec["containers"][0]["volumeMounts"] if row["name"] == NAME]
    # A mount with subPath would not follow changes of the ConfigMap.
    assert "subPath" not in mount
    empty = tmp_path / "config.yaml"
    empty.write_text("source: {prometheus: {url: 'http://prometheus:9090'}}")
    settings = load(empty, environ=environment(RULES))
    assert settings.rules.file == Path(mount["mountPath"], "rules.yaml")


def test_the_resource_rules_of_an_existing_configmap_can_be_served() -> None:
    values = RULES | {"resourceMetrics": {"enabled": True}}
    assert environment(values)["GMA_RULES__RESOURCE_METRICS"] == "true"


def test_without_the_value_nothing_is_mounted() -> None:
    assert "GMA_RULES__FILE" not in environment({})
    assert NAME not in [row["name"] for row in pod_of({})["spec"]["volumes"]]


def test_the_policy_opens_the_port_of_the_rules_store() -> None:
    values = RULES | {"networkPolicy": {"enabled": True}}
    labels = {
        "app.kubernetes.io/name": "gpu-metrics-adapter",
        "app.kubernetes.io/instance": SERVICE,
    }
    serve, store = End("10.244.0.9", NAMESPACE, labels), End("10.244.0.4", "monitoring")
    assert lets_through(render(values), serve, store, 9091)
    closed = values | {"rules": {"existingConfigMap": {"name": ""}}}
    assert not lets_through(render(closed), serve, store, 9091)


def test_the_account_of_delegates_may_read_metrics_and_nothing_else() -> None:
    objects = render(DELEGATION)
    account = one(objects, "ServiceAccount", ACCOUNT)
    assert account["automountServiceAccountToken"] is False
    rights = granted([one(objects, "ClusterRole", ACCOUNT)])
    groups = ("custom.metrics.k8s.io", "external.metrics.k8s.io")
    assert rights == {Right(verb, group, "*") for group in groups for verb in ("get", "list")}
    binding = one(objects, "ClusterRoleBinding", ACCOUNT)
    assert [row["name"] for row in binding["subjects"]] == [ACCOUNT]
    # The adapter may request tokens of this account, and of no other.
    (rule,) = one(objects, "Role", ACCOUNT)["rules"]
    assert rule["resources"] == ["serviceaccounts/token"]
    assert rule["resourceNames"] == [ACCOUNT]
    assert [row["name"] for row in one(objects, "RoleBinding", ACCOUNT)["subjects"]] == [SERVICE]
    variables = environment(DELEGATION)
    assert variables["GMA_DELEGATION__SERVICE_ACCOUNT"] == f"{NAMESPACE}/{ACCOUNT}"
    assert variables["GMA_DELEGATION__OWN_SERVICE"] == f"{NAMESPACE}/{SERVICE}"


def test_a_token_file_replaces_the_account_of_delegates() -> None:
    delegation = DELEGATION["config"]["delegation"] | {"token_file": "/etc/token"}
    values = {"config": {"delegation": delegation}}
    assert ACCOUNT not in [obj["metadata"]["name"] for obj in render(values)]
    variables = environment(values)
    assert "GMA_DELEGATION__SERVICE_ACCOUNT" not in variables
    assert variables["GMA_DELEGATION__OWN_SERVICE"] == f"{NAMESPACE}/{SERVICE}"
    assert "GMA_DELEGATION__OWN_SERVICE" not in environment({})


def test_the_notes_name_a_configmap_that_does_not_exist(stage: Stage) -> None:
    where = (f"--namespace={NAMESPACE}", f"--kubeconfig={stage.plane.kubeconfig}")
    # The stage's adapter has the APIServices.
    values = RULES | {"apiServices": {"create": False}}
    command = ("install", "rules", FOLDER, *where, "--dry-run=server")
    words = "has no ConfigMap prometheus-adapter with key rules.yaml"
    done = helm(*command, values=values)
    assert done.returncode == 0, done.stderr
    assert words in done.stdout
    meta = {"name": "prometheus-adapter", "namespace": NAMESPACE}
    rules = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"rules.yaml": ""}}
    stage.admin.create(rules)
    try:
        done = helm(*command, values=values)
    finally:
        stage.admin.delete(f"/api/v1/namespaces/{NAMESPACE}/configmaps/prometheus-adapter")
    assert "serve the rules of key rules.yaml in ConfigMap prometheus-adapter" in done.stdout
    assert words not in done.stdout
