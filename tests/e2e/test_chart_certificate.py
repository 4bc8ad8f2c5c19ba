"""Who keeps the serving certificate: what the chart renders for each way."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest
from click.testing import CliRunner

from adapter.__main__ import main
from tests.e2e.apiservice import NAMESPACE, SERVICE
from tests.e2e.chart import FOLDER, helm, one, render
from tests.e2e.chartvalues import EXTERNAL_METRICS, every_value_set
from tests.e2e.cluster import Object

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

UNREGISTERED: dict[str, Any] = {"apiServices": {"create": False}}


def of_kind(objects: list[Object], kind: str) -> list[Any]:
    return [obj for obj in objects if obj["kind"] == kind]


def arguments(job: Object) -> list[str]:
    (container,) = job["spec"]["template"]["spec"]["containers"]
    return [str(argument) for argument in container["args"]]


@every_value_set
def test_manifests_are_reproducible_and_contain_no_key(values: Mapping[str, Any]) -> None:
    command = ("template", SERVICE, FOLDER, f"--namespace={NAMESPACE}")
    first, second = (helm(*command, values=values).stdout for _ in range(2))
    assert first == second
    assert not re.search("PRIVATE KEY|UFJJVkFURSBLRVk", first)


def test_the_rotator_fills_secrets_that_are_applied_empty() -> None:
    objects = render()
    secrets = of_kind(objects, "Secret")
    assert {row["metadata"]["name"] for row in secrets} == {
        f"{SERVICE}-ca",
        f"{SERVICE}-certificate",
    }
    # Opaque: the type of TLS Secrets wants its keys to be there.
    assert all(row["type"] == "Opaque" and "data" not in row for row in secrets)
    assert not [row for row in of_kind(objects, "APIService") if "caBundle" in row["spec"]]
    volumes = one(objects, "Deployment")["spec"]["template"]["spec"]["volumes"]
    (mounted,) = (row["secret"] for row in volumes if "secret" in row)
    assert mounted["secretName"] == f"{SERVICE}-certificate"
    assert [row["key"] for row in mounted["items"]] == ["tls.crt", "tls.key"], "they are waited for"
    assert "optional" not in mounted


@pytest.mark.parametrize("values", [{}, EXTERNAL_METRICS, UNREGISTERED], ids=str)
def test_both_jobs_run_valid_commands(values: Mapping[str, Any]) -> None:
    """The first one's and the CronJob's pods are the same, for the release's APIServices."""
    objects = render(values)
    job, cron = one(objects, "Job"), one(objects, "CronJob")
    template = cron["spec"]["jobTemplate"]["spec"]["template"]
    assert job["spec"]["template"] == template
    given = arguments(job)
    named = [given[n + 1] for n, argument in enumerate(given) if argument == "--apiservice"]
    assert named == [row["metadata"]["name"] for row in of_kind(objects, "APIService")]
    done = CliRunner().invoke(main, [*given, "--kubeconfig", "/none/config"])
    assert done.exit_code == 1
    assert "kubeconfig /none/config does not exist" in done.output


def test_the_rotators_rights_are_two_secrets_and_the_releases_apiservices() -> None:
    objects = render(EXTERNAL_METRICS)
    name = f"{SERVICE}-certificates"
    (rule,) = one(objects, "Role", name)["rules"]
    assert (rule["resources"], rule["verbs"]) == (["secrets"], ["get", "patch"])
    assert set(rule["resourceNames"]) == {f"{SERVICE}-ca", f"{SERVICE}-certificate"}
    (rule,) = one(objects, "ClusterRole", name)["rules"]
    assert (rule["resources"], rule["verbs"]) == (["apiservices"], ["get", "patch"])
    assert len(rule["resourceNames"]) == 4
    unregistered = of_kind(render(UNREGISTERED), "ClusterRole")
    assert name not in {row["metadata"]["name"] for row in unregistered}


def test_a_ca_without_rotation_lasts_ten_years() -> None:
    given = arguments(one(render(UNREGISTERED), "Job"))
    assert given[given.index("--ca-valid-days") + 1] == "3650"


def test_a_changed_job_gets_a_new_name() -> None:
    """A Job that is there cannot be changed."""
    names = [
        one(render(values), "Job")["metadata"]["name"]
        for values in ({}, {"replicas": 3}, EXTERNAL_METRICS, {"image": {"tag": "next"}})
    ]
    assert names[0] == names[1]
    assert len(set(names)) == 3


@pytest.mark.parametrize("kind", ["Job", "CronJob"])
def test_long_names_leave_room_for_pod_names(kind: str) -> None:
    """A CronJob's name has at most 52 characters, a Job's 63."""
    name = one(render({"fullnameOverride": "a" * 63}), kind)["metadata"]["name"]
    assert len(name) <= (52 if kind == "CronJob" else 63)


@pytest.mark.parametrize(
    ("issuer", "chain"),
    [({}, 2), ({"name": "corporate", "kind": "ClusterIssuer"}, 0)],
    ids=["a CA of its own", "an issuer that is there"],
)
def test_cert_manager_issues_publishes_and_renews(issuer: Mapping[str, str], chain: int) -> None:
    own = {"mode": "certManager", "certManager": {"issuerRef": issuer}}
    objects = render({"certificate": own})
    assert not [obj for obj in objects if obj["kind"] in ("Secret", "Job", "CronJob")]
    certificate = one(objects, "Certificate", SERVICE)["spec"]
    host = f"{SERVICE}.{NAMESPACE}.svc"
    assert certificate["dnsNames"] == [host, f"{host}.cluster.local"]
    volumes = one(objects, "Deployment")["spec"]["template"]["spec"]["volumes"]
    assert certificate["secretName"] in [row.get("secret", {}).get("secretName") for row in volumes]
    assert len(of_kind(objects, "Issuer")) == chain
    wanted = dict(issuer) or {"name": f"{SERVICE}-ca", "kind": "Issuer"}
    assert certificate["issuerRef"] == {"group": "cert-manager.io", **wanted}
    for row in of_kind(objects, "APIService"):
        notes = row["metadata"]["annotations"]
        assert notes["cert-manager.io/inject-ca-from"] == f"{NAMESPACE}/{SERVICE}"
        assert "caBundle" not in row["spec"]
