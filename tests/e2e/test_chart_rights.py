"""The permissions of `serve`: the chart grants exactly those that it uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.e2e import crds
from tests.e2e.adapterprocess import Adapter
from tests.e2e.apiservice import NAMESPACE, SERVICE
from tests.e2e.auditlog import Right, asked, granted
from tests.e2e.chart import one, render
from tests.e2e.chartvalues import EXTERNAL_METRICS, HPA_READER, KEDA, UNWATCHED
from tests.e2e.cluster import Cluster, RefusedError, collection
from tests.e2e.process import free_port, wait_until
from tests.e2e.serverside import apply
from tests.e2e.stage import METRIC, RIGHTS, SCRAPE, Stage

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

REVIEWS = {
    Right("create", "authentication.k8s.io", "tokenreviews"),
    Right("create", "authorization.k8s.io", "subjectaccessreviews"),
}
"""What Kubernetes' ClusterRole system:auth-delegator allows."""
TRUST = {Right(verb, "", "configmaps") for verb in ("list", "watch")}
"""Of what its Role extension-apiserver-authentication-reader allows; it allows get too."""
ACCOUNT = "rights"
ALL = RIGHTS | {"fullnameOverride": ACCOUNT}
USUAL = {
    ("list", "pods"),
    ("list", "services"),
    ("list", "nodes"),
    ("list", "horizontalpodautoscalers"),
    ("list", "gpuhistoryhours"),
}
OF_VIEW = {("list", "horizontalpodautoscalers"), ("list", "gpuhistoryhours")}
NOT_WATCHED = {"gpuhistoryhours"}
"""Read once, at the start."""


@pytest.fixture
def whole(stage: Stage) -> Iterator[Adapter]:
    """An adapter with every feature that needs a right, as an account that nobody else has."""
    crds.install(stage.admin, crds.KEDA)
    for row in render(ALL, only=("serviceaccount", "rbac")):
        apply(stage.admin, row, "")
    token = stage.admin.token(NAMESPACE, ACCOUNT)
    listener = {"enabled": True, "host": "127.0.0.1", "port": free_port(), "scaled_objects": True}
    adapter = Adapter(
        stage.folder,
        ACCOUNT,
        stage.plane.write_kubeconfig(ACCOUNT, token=token),
        SCRAPE,
        keda=listener,
        external={"enabled": True, "service": f"{NAMESPACE}/{ACCOUNT}"},
    )
    try:
        adapter.start()
        yield adapter
    finally:
        adapter.stop()


def test_the_permissions_are_exactly_those_in_use(stage: Stage, whole: Adapter) -> None:
    """By kube-apiserver's audit log: no rule of the chart's could be left out."""
    given = own(ALL) | REVIEWS | TRUST
    url, token = f"https://localhost:{whole.port}", stage.admin.token("default", "default")
    # Who shows a token is reviewed, and then what it may do.
    stranger = Cluster(url, str(whole.ca), token=token)
    try:
        path = f"/apis/custom.metrics.k8s.io/v1beta2/namespaces/default/pods/%2A/{METRIC}"
        wait_until(lambda: stranger.client.get(path).status_code == 403, "it is forbidden")
    finally:
        stranger.close()

    def used() -> set[Right]:
        user = f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}"
        return {row.right for row in asked(stage.plane.audit, user)}

    wait_until(lambda: used() >= given, "every right is used")
    assert used() == given


def own(values: Mapping[str, Any]) -> set[Right]:
    return granted([one(render(values, only=["rbac"]), "ClusterRole")])


@pytest.mark.parametrize(
    ("values", "rights"),
    [
        ({}, USUAL),
        (KEDA, USUAL | {("list", "scaledobjects")}),
        ({"keda": {"enabled": False, "scaledObjects": True}}, USUAL),
        (EXTERNAL_METRICS, USUAL | {("get", "apiservices")}),
        (EXTERNAL_METRICS | {"apiServices": {"create": False}}, USUAL),
        ({"view": {"enabled": False}}, USUAL - OF_VIEW),
        (UNWATCHED, {("list", "pods")}),
    ],
    ids=["usual", "keda", "no-keda", "external", "no-apiservices", "no-view", "unwatched"],
)
def test_a_permission_exists_only_with_its_feature(
    values: Mapping[str, Any], rights: set[tuple[str, str]]
) -> None:
    own_rights = {(right.verb, right.resource) for right in own(values)}
    listed = {name for verb, name in rights if verb == "list"}
    assert own_rights == rights | {("watch", name) for name in listed - NOT_WATCHED}


@pytest.mark.parametrize(
    ("settings", "right", "there"),
    [
        ({}, Right("patch", "", "pods"), False),
        ({"deletion_cost": True}, Right("patch", "", "pods"), True),
        ({}, Right("list", "batch", "jobs"), True),
        ({"jobs": False}, Right("list", "batch", "jobs"), False),
        ({"provisioning_method": "buffer"}, Right("create", "apps", "deployments"), False),
        ({"provisioning_method": "placeholder"}, Right("create", "apps", "deployments"), True),
        (
            {"provisioning_method": "placeholder"},
            Right("create", "autoscaling.x-k8s.io", "capacitybuffers"),
            False,
        ),
    ],
    ids=str,
)
def test_the_permissions_of_the_controller_follow_its_settings(
    settings: Mapping[str, Any], right: Right, there: bool
) -> None:
    values = {"nodepool": {"enabled": True, "apply": True}, "config": {"nodepool": settings}}
    assert (right in granted(render(values, only=["nodepool/rbac"]))) is there


@pytest.mark.parametrize("enabled", [False, True])
def test_what_is_learned_has_one_configmap(enabled: bool) -> None:
    rendered = [
        row
        for row in render({"memory": {"enabled": enabled}})
        if row["metadata"]["name"] == f"{SERVICE}-memory"
    ]
    rules = [rule for row in rendered if row["kind"] == "Role" for rule in row["rules"]]
    kept = {
        "apiGroups": [""],
        "resources": ["configmaps"],
        "resourceNames": [f"{SERVICE}-memory"],
        "verbs": ["get", "patch"],
    }
    assert rules == ([kept] if enabled else [])
    assert [row["kind"] for row in rendered].count("ConfigMap") == enabled


def test_without_authentication_no_review_permission_is_rendered() -> None:
    def bound(values: Mapping[str, Any]) -> set[str]:
        rows = render(values, only=["rbac"])
        return {row["roleRef"]["name"] for row in rows if row["kind"].endswith("Binding")}

    reviewed = {"system:auth-delegator", "extension-apiserver-authentication-reader"}
    assert bound({}) == {SERVICE, *reviewed}
    assert bound(UNWATCHED) == {SERVICE}


def test_an_old_clusters_controller_may_read_the_metrics(stage: Stage) -> None:
    """A user without any right gets both kinds of metrics once the chart's binding is there."""
    user = stage.plane.client("system:kube-controller-manager")
    stage.workload("oldcluster", replicas=1, demand=50)
    stage.wait_size("oldcluster", 1)
    custom = f"/apis/custom.metrics.k8s.io/v1beta2/namespaces/oldcluster/pods/%2A/{METRIC}"
    wait_until(lambda: allowed(stage.admin, custom), "the pod has a value")
    reader = [row for row in render(HPA_READER) if row["metadata"]["name"].endswith("hpa-reader")]
    try:
        with pytest.raises(RefusedError, match="cannot get resource"):
            user.get(custom)
        for row in reader:
            apply(stage.admin, row, "")
        wait_until(lambda: allowed(user, custom), "the custom metrics are served")
        rules = one(reader, "ClusterRole")["rules"]
        assert {(*rule["apiGroups"], *rule["verbs"]) for rule in rules} == {
            ("custom.metrics.k8s.io", "get"),
            ("external.metrics.k8s.io", "list"),
        }
        answer = user.request(
            "POST",
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SelfSubjectAccessReview",
                "spec": {
                    "resourceAttributes": {
                        "namespace": "oldcluster",
                        "verb": "list",
                        "group": "external.metrics.k8s.io",
                        "resource": METRIC.lower(),
                    }
                },
            },
        )
        assert answer["status"]["allowed"]
    finally:
        for row in reader:
            stage.admin.delete(f"{collection(row)}/{row['metadata']['name']}")
        user.close()


def allowed(user: Cluster, path: str) -> bool:
    try:
        return bool(user.get(path)["items"])
    except RefusedError:
        return False
