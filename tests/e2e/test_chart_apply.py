"""What a real API server makes of every rendered object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from tests.e2e import crds
from tests.e2e.apiservice import NAMESPACE, SERVICE
from tests.e2e.chart import FOLDER, helm, one, pods, render
from tests.e2e.chartvalues import MONITOR, every_value_set
from tests.e2e.cluster import Object, RefusedError, collection
from tests.e2e.serverside import apply, ensure
from tests.e2e.stage import Stage

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def defined(running_stage: Stage) -> Stage:
    """The stage, with the kinds of other projects that the chart makes objects of."""
    crds.install(running_stage.admin, crds.MONITORING, crds.CERT_MANAGER)
    ensure(running_stage.admin, "charted")
    ensure(running_stage.admin, "restricted", {"pod-security.kubernetes.io/enforce": "restricted"})
    return running_stage


@every_value_set
def test_the_api_server_accepts_every_object(defined: Stage, values: Mapping[str, Any]) -> None:
    """Server-side, strictly: no field is unknown, none is missing."""
    for obj in render(values, namespace="charted"):
        apply(defined.admin, obj)


def test_objects_of_an_installation_are_accepted_too(defined: Stage) -> None:
    """With a cluster in sight there is a hook: its Job, and its pod."""
    cluster = ("--dry-run=server", f"--kubeconfig={defined.plane.kubeconfig}")
    done = helm("template", SERVICE, FOLDER, f"--namespace={NAMESPACE}", *cluster, values={})
    assert done.returncode == 0, done.stderr
    rows = [row for row in yaml.safe_load_all(done.stdout) if row is not None]
    hooks = [row for row in rows if "helm.sh/hook" in row["metadata"].get("annotations", {})]
    assert hooks
    for row in hooks:
        apply(defined.admin, row)
    for pod in pods(hooks):
        create(defined, pod)


@pytest.mark.parametrize(
    ("kind", "field"),
    [("Service", "sessionAfinity"), ("ServiceMonitor", "endpoint"), ("NetworkPolicy", "ingres")],
)
def test_a_field_that_does_not_exist_would_be_noticed(
    defined: Stage, kind: str, field: str
) -> None:
    values = MONITOR | {"networkPolicy": {"enabled": True}, "nodepool": {"enabled": False}}
    rows = [row for row in render(values, namespace="charted") if row["kind"] == kind]
    rows[0]["spec"][field] = []
    with pytest.raises(RefusedError, match=f"spec.{field}"):
        apply(defined.admin, rows[0])


@every_value_set
def test_the_pods_run_in_a_restricted_namespace(defined: Stage, values: Mapping[str, Any]) -> None:
    """Every pod passes the Pod Security Standard `restricted`, Jobs' as well.

    The network of a node is what that standard forbids.
    """
    for pod in pods(render(values)):
        if pod["spec"].get("hostNetwork"):
            with pytest.raises(RefusedError, match="host namespaces"):
                create(defined, pod)
            continue
        created = create(defined, pod)
        assert created["spec"]["securityContext"]["runAsUser"] == 65532
        assert all(row["resources"]["requests"] for row in created["spec"]["containers"])


def test_a_pod_that_is_not_restricted_would_be_noticed(defined: Stage) -> None:
    pod = one(render(only=["deployment"]), "Deployment")["spec"]["template"]
    pod["spec"]["securityContext"].pop("seccompProfile")
    with pytest.raises(RefusedError, match="restricted"):
        create(defined, pod)


def create(stage: Stage, template: Object) -> Object:
    pod: Object = {"apiVersion": "v1", "kind": "Pod", **template}
    pod["metadata"] = pod["metadata"] | {"name": "pod", "namespace": "restricted"}
    created: Object = stage.admin.request("POST", f"{collection(pod)}?dryRun=All", pod)
    return created
