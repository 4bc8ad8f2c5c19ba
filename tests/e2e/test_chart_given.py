"""An installation with names, a namespace, accounts, roles and pod parts of the user's own."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml

from tests.e2e.apiservice import CHARTED, ensure_namespace, wait_available
from tests.e2e.chart import FOLDER, RIGHTS
from tests.e2e.chartvalues import ACCOUNTS
from tests.e2e.cluster import DEPLOYMENTS
from tests.e2e.installation import (
    METRIC,
    apiservices,
    audited,
    refusals,
    values,
    wait_keda,
    workload,
)
from tests.e2e.privatenetwork import GATEWAY
from tests.e2e.process import wait_until
from tests.e2e.serverside import apply
from tests.e2e.site import IMAGE, Site
from tests.e2e.stage import autoscaler

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

HOME, RELEASE = "given-home", ("given", FOLDER, "--namespace=given-releases")
REGISTRY, _, REPOSITORY = IMAGE.partition("/")
WRITE = "from pathlib import Path; Path('/shared/ready').write_text('yes')"
WAIT = "import time; print('a sidecar runs', flush=True); time.sleep(3600)"
GIVEN: dict[str, Any] = ACCOUNTS | {
    "nameOverride": "conventional",
    "fullnameOverride": "ours",
    "namespaceOverride": HOME,
    "commonLabels": {"team": "ml"},
    "commonAnnotations": {"example/owner": "ml"},
    "image": {"registry": REGISTRY, "repository": REPOSITORY},
    "replicas": 1,
    "hostNetwork": {"enabled": True},
    "revisionHistoryLimit": 1,
    "service": {"annotations": {"example/topology": "auto"}},
    "env": [{"name": "GMA_VALUES__WINDOW", "value": "20"}],
    "envFrom": [{"configMapRef": {"name": "ours-settings"}}],
    "extraArgs": ["--log-level", "debug"],
    "extraVolumes": [{"name": "shared", "emptyDir": {}}],
    "extraVolumeMounts": [{"name": "shared", "mountPath": "/shared"}],
    "initContainers": [
        {
            "name": "first",
            "image": IMAGE,
            "command": ["python", "-c", WRITE],
            "volumeMounts": [{"name": "shared", "mountPath": "/shared"}],
        }
    ],
    "sidecars": [{"name": "beside", "image": IMAGE, "command": ["python", "-c", WAIT]}],
    "podSecurityContext": {"supplementalGroups": [65531]},
    "securityContext": {"privileged": False},
    "topologySpreadConstraints": [
        {
            "topologyKey": "kubernetes.io/hostname",
            "maxSkew": 1,
            "whenUnsatisfiable": "ScheduleAnyway",
        }
    ],
    "config": {"source": {"scrape": {"interval": "1s"}}, "nodepool": {"interval": 1}},
    "extraObjects": [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "ours-settings", "namespace": HOME},
            "data": {"GMA_VALUES__COLLECT_INTERVAL": "12"},
        }
    ],
}


def test_everything_works_with_what_is_given(site: Site) -> None:
    """Its values become what pods do; hooks, Jobs, `nodepool` and doctor find their way."""
    before, since = apiservices(site), audited(site)
    ensure_namespace(site.admin, HOME)
    for row in given_rights(site):
        apply(site.admin, row, "")
    site.helm("install", *RELEASE, "--create-namespace", "--wait", values=GIVEN)
    wait_available(site.admin, CHARTED)
    registered = {name: owner for name, owner in apiservices(site).items() if name not in before}
    assert set(registered.values()) == {f"{HOME}/ours"}
    (pod,) = site.pods("app.kubernetes.io/name=conventional")
    assert (pod.namespace, pod.address) == (HOME, GATEWAY)
    log = pod.log.read_text()
    assert "a sidecar runs" in log
    assert '"level": "debug"' in log
    ensure_namespace(site.admin, "given")
    site.load.set("given", 80, expected=2)
    workload(site, "given", 2)
    hpa = autoscaler("given", low=2, metric=METRIC)
    hpa["metadata"]["annotations"] = {"gpu-metrics-adapter.io/headroom": "1"}
    site.admin.create(hpa)
    wait_until(lambda: len(values(site, "given")) == 2, "every pod has a value")
    path = f"/apis/custom.metrics.k8s.io/v1beta2/namespaces/given/pods/%2A/{METRIC}"
    assert {row["windowSeconds"] for row in site.admin.get(path)["items"]} == {20}
    wait_keda(GATEWAY, 17600, "given")
    kept = f"{DEPLOYMENTS.format(ns=HOME)}?labelSelector=gpu-metrics-adapter.io%2Fheadroom"
    wait_until(lambda: site.admin.get(kept)["items"], "there is headroom")
    site.helm("test", "given", "--namespace=given-releases", check=False)
    report = site.kubectl("logs", "job/ours-doctor", f"--namespace={HOME}", check=False)
    (job,) = [
        row
        for row in site.admin.get(f"/apis/batch/v1/namespaces/{HOME}/jobs")["items"]
        if row["metadata"]["name"] == "ours-doctor"
    ]
    assert job["status"].get("succeeded") == 1, (report.stdout, doctors(site))
    assert refusals(site, since) == []
    site.helm("uninstall", "given", "--namespace=given-releases", "--wait")
    assert apiservices(site) == before


def doctors(site: Site) -> str:
    """What the doctor in the cluster wrote."""
    return "".join(
        file.read_text() for file in (site.folder / "pods").glob(f"{HOME}_ours-doctor*.log")
    )


def given_rights(site: Site) -> list[Any]:
    """The accounts and roles that the chart would create, for somebody else to create."""
    asked: dict[str, Any] = copy.deepcopy(GIVEN) | {"rbac": {"create": True}}
    for section in (
        asked["serviceAccount"],
        asked["nodepool"]["serviceAccount"],
        asked["certificate"]["selfSigned"]["serviceAccount"],
        asked["hooks"]["serviceAccount"],
        asked["tests"]["serviceAccount"],
    ):
        section["create"] = True
    made = site.helm("template", *RELEASE, "--dry-run=server", values=asked)
    rows = [row for row in yaml.safe_load_all(made.stdout) if row is not None]
    return [row for row in rows if row["kind"] in RIGHTS | {"ServiceAccount"}]
