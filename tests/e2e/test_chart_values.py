"""What values become: the adapter takes them up, and each is documented."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from adapter.answers.rules.rulefile import read_rules
from adapter.config.process.config import load
from tests.e2e.apiservice import NAMESPACE, SERVICE
from tests.e2e.chart import FOLDER, helm, one, pod_of, render
from tests.e2e.chartvalues import (
    EVERYTHING,
    NODEPOOL,
    OWN_RULES,
    every_value_set,
)

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


@every_value_set
def test_lint_finds_nothing(values: Mapping[str, Any]) -> None:
    done = helm("lint", "--strict", FOLDER, values=values)
    assert done.returncode == 0, done.stdout
    assert not re.search(r"WARNING|ERROR", done.stdout)


@every_value_set
def test_the_adapter_accepts_its_rendered_settings(
    values: Mapping[str, Any], tmp_path: Path
) -> None:
    """The ConfigMap is `config`, verbatim, and valid in the environment that the pod sets."""
    objects = render(values)
    name = values.get("fullnameOverride", SERVICE)
    host = values.get("hostNetwork", {}).get("enabled", False)
    file = tmp_path / "config.yaml"
    file.write_text(one(objects, "ConfigMap", name)["data"]["config.yaml"])
    assert yaml.safe_load(file.read_text()) == values.get("config", {})
    container = pod_of(values)["spec"]["containers"][0]
    settings = load(file, environ=environment(container))
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
    assert container["args"][:3] == ["serve", "--config", f"{folders['config']}/config.yaml"]
    assert container["args"][3:] == values.get("extraArgs", [])
    ports = {row["name"]: row["containerPort"] for row in container["ports"]}
    assert ports["probes"] == settings.server.probe_port
    assert (ports["probes"] == 17808) is host


def environment(container: Mapping[str, Any]) -> dict[str, str]:
    """The variables that have a value in the manifest."""
    return {row["name"]: row["value"] for row in container["env"] if "value" in row}


@pytest.mark.parametrize("values", [{}, NODEPOOL], ids=["dry", "every value"])
def test_the_controller_accepts_its_rendered_settings(
    values: Mapping[str, Any], tmp_path: Path
) -> None:
    values = {"nodepool": {"enabled": True}, **values}
    file = tmp_path / "config.yaml"
    file.write_text(one(render(values, only=["configmap"]), "ConfigMap")["data"]["config.yaml"])
    deployment = one(render(values, only=["nodepool/deployment"]), "Deployment")["spec"]
    (container,) = deployment["template"]["spec"]["containers"]
    settings = load(file, environ=environment(container)).nodepool
    given = values["nodepool"]
    assert (settings.apply, list(settings.namespaces)) == (
        given.get("apply", False),
        given.get("namespaces", []),
    )
    assert settings.namespace == NAMESPACE
    assert settings.port == container["ports"][0]["containerPort"]
    assert deployment["replicas"] == given.get("replicas", 2)
    assert container["args"][0] == "nodepool"


def test_an_upgrade_with_the_values_of_an_earlier_chart_renders() -> None:
    """`helm upgrade --reuse-values` lacks the keys that are new since."""
    before = {
        "nodepool": {
            "enabled": True,
            "apply": True,
            "admissionPolicy": None,
            "claimNamespaces": None,
        },
        "networkPolicy": {"keda": {"enabled": None}},
    }
    objects = render(before)
    kinds = {obj["kind"] for obj in objects}
    assert "ValidatingAdmissionPolicy" in kinds
    assert "NetworkPolicy" not in kinds


def test_rules_in_values_are_a_file_that_serve_reads_without_a_mistake() -> None:
    """A ConfigMap of the release's, mounted where the environment says that the file is."""
    objects = render(OWN_RULES)
    (data,) = one(objects, "ConfigMap", f"{SERVICE}-rules")["data"].values()
    file = read_rules(data.encode())
    assert (len(file.custom), len(file.external), file.has_resource_rules) == (1, 1, True)
    assert [*file.problems, file.resource_problem] == [None]
    spec = pod_of(OWN_RULES)["spec"]
    container = spec["containers"][0]
    folders = {row["name"]: row["mountPath"] for row in container["volumeMounts"]}
    (volume,) = (row for row in spec["volumes"] if row["name"] == "prometheus-adapter-rules")
    assert volume["configMap"]["name"] == f"{SERVICE}-rules"
    path = f"{folders[volume['name']]}/{volume['configMap']['items'][0]['path']}"
    assert environment(container)["GMA_RULES__FILE"] == path
    assert f"{SERVICE}-rules" not in str(render(EVERYTHING))
