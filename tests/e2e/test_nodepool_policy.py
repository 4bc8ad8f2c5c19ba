"""The chart's admission policies: what the controller's account may write, and what others may not.

The account is made cluster-admin here: every rejection is from a policy.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from adapter.nodepool.act import lifeline
from adapter.nodepool.act.lifeline import Lifeline
from adapter.nodepool.act.methods import capacitybuffer, placeholder
from adapter.nodepool.model import names
from adapter.nodepool.plan.order import Tie
from tests.adapter.nodepool.orders import order
from tests.e2e import chart
from tests.e2e.apiservice import NAMESPACE, ensure_namespace
from tests.e2e.cluster import Cluster, Object, RefusedError, collection
from tests.e2e.controlplane import ControlPlane
from tests.e2e.nodepoolstage import ACCOUNT
from tests.e2e.process import wait_until
from tests.e2e.serverside import apply

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

QUIET = ("root-ca-certificate-publisher-controller",)
VALUES = {"nodepool": {"enabled": True, "apply": True, "claimNamespaces": ["dra"]}}
IMAGE = "registry.k8s.io/pause:3.10"
CLASS = "gpu-metrics-adapter-headroom"
OWNER = Lifeline(NAMESPACE, "11111111-2222-3333-4444-555555555555", 0.0)
TIE = Tie(True, ("gpu-a",), 2)
ALONE = "only nodepool may write objects"
Change = Callable[[Any], object]


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with ControlPlane(tmp_path_factory.mktemp("policy"), QUIET) as plane:
        for name in (NAMESPACE, "team", "dra"):
            ensure_namespace(plane.admin, name)
        rows = chart.render(VALUES, only=("nodepool/rbac", "nodepool/policy"))
        for row in rows:
            plane.admin.create(row)
        plane.admin.create(_binding(OURS))
        plane.admin.create(_binding(TENANT))
        yield plane


OURS = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}
TENANT = {"kind": "User", "name": "mallory", "apiGroup": "rbac.authorization.k8s.io"}


def _binding(subject: Object) -> Object:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"all-{subject['name']}"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "cluster-admin",
        },
        "subjects": [subject],
    }


@pytest.fixture(scope="module")
def account(plane: ControlPlane) -> Iterator[Cluster]:
    """The API server as the controller's account."""
    token = plane.admin.token(NAMESPACE, ACCOUNT)
    cluster = Cluster(plane.url, str(plane.ca.cert), token=token)

    other = deployment(lambda obj: obj["metadata"].update(name="other"))
    wait_until(
        lambda: "with the name of headroom" in refusal(cluster, other),
        "the account's policy is in force",
    )
    yield cluster
    cluster.close()


@pytest.fixture(scope="module")
def tenant(plane: ControlPlane, account: Cluster) -> Iterator[Cluster]:
    """The API server as somebody who may write everything, and is not the account."""
    cluster = plane.client("mallory")
    wait_until(lambda: ALONE in refusal(cluster, deployment()), "the label's policy is in force")
    yield cluster
    cluster.close()


def refusal(cluster: Cluster, obj: Object) -> str:
    """Why an object is refused when it is applied; empty where it is taken. Nothing is kept."""
    try:
        apply(cluster, obj)
    except RefusedError as error:
        return error.text
    return ""


def deployment(change: Change = lambda _: None) -> Object:
    obj = copy.deepcopy(placeholder.manifest(order(), OWNER, IMAGE, CLASS))
    change(obj)
    return obj


def template(change: Change = lambda _: None) -> Object:
    obj = capacitybuffer.manifests(order(), "v1beta1", OWNER, IMAGE, None)[0]
    obj = copy.deepcopy(obj)
    change(obj)
    return obj


def job(change: Change = lambda _: None) -> Object:
    obj = copy.deepcopy(lifeline.manifest(NAMESPACE, 900, IMAGE))
    change(obj)
    return obj


def test_objects_of_the_controller_are_admitted(account: Cluster) -> None:
    probe = capacitybuffer.probe(NAMESPACE, "v1beta1", OWNER, IMAGE)[0]
    probe_job = lifeline.manifest(NAMESPACE, 1485, IMAGE, names.PROBE)
    tied = capacitybuffer.manifests(order(tie=TIE), "v1beta1", OWNER, IMAGE, None)[0]
    claims = deployment(lambda obj: obj["metadata"].update(namespace="dra"))
    for obj in (deployment(), template(), job(), probe, probe_job, tied, claims):
        assert refusal(account, obj) == ""


def pod(obj: Object) -> Object:
    spec: Object = (obj.get("template") or obj["spec"]["template"])["spec"]
    return spec


def container(obj: Object) -> Object:
    first: Object = pod(obj)["containers"][0]
    return first


HOST = {"volumes": [{"name": "root", "hostPath": {"path": "/"}}]}
MORE = {"name": "more", "image": IMAGE}
CHANGES: dict[str, tuple[Change, str]] = {
    "another name": (
        lambda obj: obj["metadata"].update(name="inference"),
        "with the name of headroom",
    ),
    "another namespace": (
        lambda obj: obj["metadata"].update(namespace="team"),
        f"headroom only in {NAMESPACE}, dra",
    ),
    "another image": (lambda obj: container(obj).update(image="evil"), f"of image {IMAGE}"),
    "a second container": (lambda obj: pod(obj)["containers"].append(MORE), "one container"),
    "an init container": (lambda obj: pod(obj).update(initContainers=[MORE]), "one container"),
    "a command": (lambda obj: container(obj).update(command=["sh"]), "no command"),
    "a variable": (lambda obj: container(obj).update(env=[{"name": "A", "value": "1"}]), "no comm"),
    "an account": (
        lambda obj: pod(obj).update(serviceAccountName="admin"),
        "default ServiceAccount without its token",
    ),
    "a token": (
        lambda obj: pod(obj).pop("automountServiceAccountToken"),
        "default ServiceAccount without its token",
    ),
    "hostPath": (lambda obj: pod(obj).update(HOST), "no volumes"),
    "hostNetwork": (lambda obj: pod(obj).update(hostNetwork=True), "no host access"),
    "hostPID": (lambda obj: pod(obj).update(hostPID=True), "no host access"),
    "hostIPC": (lambda obj: pod(obj).update(hostIPC=True), "no host access"),
    "a node by name": (lambda obj: pod(obj).update(nodeName="n1"), "no nodeName"),
    "more privileges": (
        lambda obj: container(obj)["securityContext"].update(allowPrivilegeEscalation=True),
        "without root, privileges",
    ),
    "root": (
        lambda obj: container(obj)["securityContext"].update(runAsNonRoot=False),
        "without root, privileges",
    ),
    "a capability": (
        lambda obj: container(obj)["securityContext"].update(
            capabilities={"drop": ["ALL"], "add": ["SYS_ADMIN"]}
        ),
        "without root, privileges",
    ),
    "no security context": (
        lambda obj: container(obj).pop("securityContext"),
        "without root, privileges",
    ),
}


@pytest.mark.parametrize("kind", [deployment, template, job], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(("change", "words"), CHANGES.values(), ids=CHANGES)
def test_other_writes_by_its_account_are_refused(
    account: Cluster, kind: Callable[[Change], Object], change: Change, words: str
) -> None:
    assert words in refusal(account, kind(change))


def test_a_lifeline_with_pods_and_a_class_of_another_kind_are_refused(account: Cluster) -> None:
    assert "parallelism 0" in refusal(account, job(lambda obj: obj["spec"].update(parallelism=1)))
    other = deployment(lambda obj: pod(obj).update(priorityClassName="system-node-critical"))
    assert CLASS in refusal(account, other)


def test_its_account_may_only_delete_headroom_and_change_deletion_costs(
    plane: ControlPlane, account: Cluster
) -> None:
    theirs = deployment(lambda obj: obj["metadata"].update(name="theirs", labels={}))
    theirs["metadata"].pop("ownerReferences")
    own = deployment(lambda obj: obj["metadata"].pop("ownerReferences"))
    bare = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "bare", "namespace": "team", "annotations": {"a": "b"}},
        "spec": {"containers": [MORE], "automountServiceAccountToken": False},
    }
    plane.admin.create(
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": "default", "namespace": "team"},
        }
    )
    for obj in (theirs, own, bare):
        plane.admin.create(obj)
    with pytest.raises(RefusedError, match="with the name of headroom"):
        account.request("DELETE", f"{collection(theirs)}/theirs")
    account.request("DELETE", f"{collection(own)}/{own['metadata']['name']}")
    path = f"{collection(bare)}/bare"
    cost = {"controller.kubernetes.io/pod-deletion-cost": "100"}
    account.patch(path, {"metadata": {"annotations": cost}})
    for body in (
        {"metadata": {"annotations": {"a": "c"}}},
        {"metadata": {"annotations": {"a": None}}},
        {"metadata": {"labels": {"app": "x"}}},
        {"metadata": {"finalizers": ["example.com/stay"]}},
    ):
        with pytest.raises(RefusedError, match=r"only the annotation .*pod-deletion-cost"):
            account.patch(path, body)
    other = [{"op": "replace", "path": "/spec/containers/0/image", "value": "evil"}]
    kind = {"Content-Type": "application/json-patch+json"}
    with pytest.raises(RefusedError, match=r"only the annotation .*pod-deletion-cost"):
        account.request("PATCH", path, other, **kind)


def test_other_accounts_may_not_create_or_change_headroom(
    plane: ControlPlane, tenant: Cluster
) -> None:
    """Not even under our field manager's name: the API server knows who asks."""
    assert ALONE in refusal(tenant, deployment())
    assert ALONE in refusal(tenant, template())
    obj = deployment(lambda obj: obj["metadata"].pop("ownerReferences"))
    plane.admin.create(obj)
    path = f"{collection(obj)}/{obj['metadata']['name']}"
    label = {"gpu-metrics-adapter.io/headroom": None}
    for body in (
        {"spec": {"replicas": 2**31 - 1}},
        {"metadata": {"annotations": {"gpu-metrics-adapter.io/shape": "{}"}}},
        {"metadata": {"labels": label}},
    ):
        with pytest.raises(RefusedError, match=ALONE):
            tenant.patch(path, body)
    tenant.patch(path, {"metadata": {"finalizers": ["example.com/stay"]}})
    tenant.patch(path, {"metadata": {"finalizers": []}})
    tenant.request("DELETE", path)
    plain = deployment(lambda obj: obj["metadata"].update(name="plain", labels={}))
    assert refusal(tenant, plain) == ""


def test_policies_are_not_rendered_for_an_api_server_without_them() -> None:
    done = chart.helm("template", "a", chart.FOLDER, values=VALUES)
    assert done.returncode == 0, done.stderr
    assert "ValidatingAdmissionPolicy" not in done.stdout
