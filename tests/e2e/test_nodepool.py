"""The node-pool controller on a real control plane, under the chart's own account."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adapter.nodepool.learn.historytext import decode
from adapter.nodepool.model.names import MANAGER
from tests.e2e import chart
from tests.e2e.apiservice import NAMESPACE, VIEW, ensure_namespace, register_group, unregister_group
from tests.e2e.auditlog import Right, asked, granted
from tests.e2e.cluster import DEPLOYMENTS, Object, RefusedError, collection
from tests.e2e.nodepoolstage import ACCOUNT, HEADROOM, LIFELINE, Controller, NodepoolStage
from tests.e2e.process import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/gpu-metrics-adapter-nodepool"
CRD: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "capacitybuffers.autoscaling.x-k8s.io"},
    "spec": {
        "group": "autoscaling.x-k8s.io",
        "scope": "Namespaced",
        "names": {
            "kind": "CapacityBuffer",
            "listKind": "CapacityBufferList",
            "plural": "capacitybuffers",
            "singular": "capacitybuffer",
        },
        "versions": [
            {
                "name": "v1beta1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "replicas": {"type": "integer"},
                                    "podTemplateRef": {
                                        "type": "object",
                                        "properties": {"name": {"type": "string"}},
                                    },
                                },
                            },
                            "status": {
                                "type": "object",
                                "x-kubernetes-preserve-unknown-fields": True,
                            },
                        },
                    }
                },
            }
        ],
    },
}
"""A CapacityBuffer's definition without anybody who serves it."""
BUFFERS = "/apis/autoscaling.x-k8s.io/v1beta1/namespaces/{ns}/capacitybuffers"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodepoolStage]:
    with NodepoolStage(tmp_path_factory.mktemp("nodepool")) as stage:
        yield stage


@pytest.fixture
def controllers(running: NodepoolStage) -> Iterator[list[Controller]]:
    """Appended processes are killed after the test in any case."""
    started: list[Controller] = []
    yield started
    for controller in started:
        controller.stop(signal.SIGKILL)
    running.admin.delete(LEASE)


def start(
    stage: NodepoolStage, controllers: list[Controller], name: str, **settings: Any
) -> Controller:
    controller = Controller(stage.folder, name, stage.kubeconfig(), **settings)
    controllers.append(controller)
    controller.start()
    return controller


def test_headroom_follows_the_metric(running: NodepoolStage, controllers: list[Controller]) -> None:
    """Two pods at 145 % of a target of 50 % need six: the HPA adds two, two more are ordered."""
    limits = {"hold_seconds": 2, "decay_seconds": 1}
    one = start(running, controllers, "follows", limits=limits)
    running.workload("follows", 2, 145)
    running.wait_headroom("follows", [2])
    (deployment,) = running.placeholders("follows")
    pod = deployment["spec"]["template"]["spec"]
    assert (pod["priorityClassName"], pod["preemptionPolicy"]) == (
        "gpu-metrics-adapter-headroom",
        "Never",
    )
    assert pod["terminationGracePeriodSeconds"] == 0
    assert pod["nodeSelector"] == {"agentpool": "gput4"}
    assert pod["tolerations"] == [
        {"key": "sku", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}
    ]
    assert deployment["metadata"]["annotations"]["gpu-metrics-adapter.io/workloads"] == (
        "Deployment/inference"
    )
    assert one.metric("gma_nodepool_headroom_gpus") == 2
    events = running.admin.get(f"/api/v1/namespaces/{NAMESPACE}/events")["items"]
    own = [
        row for row in events if row["involvedObject"].get("uid") == deployment["metadata"]["uid"]
    ]
    (event,) = [row for row in own if row["reason"] == "HeadroomOrdered"]
    assert "for Deployment/inference of namespace follows" in event["message"]
    # The namespace's Pod Security level is `restricted`.
    wait_until(lambda: len(placed(running)) == 2, "its pods run")
    theirs = running.admin.get("/api/v1/namespaces/follows/events")["items"]
    assert MANAGER not in {row["source"].get("component") for row in theirs}
    # Down after the hold, and then the object goes too.
    running.load("follows", 30)
    running.wait_headroom("follows", [])
    running.clear("follows")


def test_explain_shows_the_headroom_and_the_forecast_behind_it(
    running: NodepoolStage, controllers: list[Controller]
) -> None:
    start(running, controllers, "explained")
    running.workload("explained", 2, 145)
    running.wait_headroom("explained", [2])
    register_group(running.admin, running.api.port, running.plane.ca.cert.read_bytes(), VIEW)
    try:
        done = subprocess.run(
            [
                *(sys.executable, "-P", "-m", "adapter", "explain", "hpa", "inference"),
                *("-n", "explained", "--kubeconfig", str(running.plane.kubeconfig)),
            ],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        unregister_group(running.admin, VIEW)
    text = " ".join(done.stdout.split())
    (deployment,) = running.placeholders("explained")
    meta = deployment["metadata"]
    why = meta["annotations"]["gpu-metrics-adapter.io/why"]
    held = f"held by Deployment {NAMESPACE}/{meta['name']}: {why}"
    assert "headroom: 2 pods in pool" in text, done.stderr
    assert " ".join(held.split()) in text
    running.clear("explained")


def placed(stage: NodepoolStage) -> list[str]:
    """The placeholder pods that run."""
    return [
        pod.name
        for pod in stage.kubelet.running()
        if pod.namespace == NAMESPACE and pod.name.startswith("gpu-headroom-")
    ]


def test_headroom_of_a_dead_controller_is_deleted(
    running: NodepoolStage, controllers: list[Controller]
) -> None:
    """Only the Job controller, the TTL controller and the garbage collector run."""
    one = start(running, controllers, "dead", lifeline=12)
    running.workload("dead", 2, 145)
    running.wait_headroom("dead", [2])
    # Prolonged while it lives: it is there after twice its deadline.
    begun = time.monotonic()
    wait_until(lambda: time.monotonic() - begun > 24, "two deadlines have passed", 60)
    running.wait_headroom("dead", [2], 1)
    one.stop(signal.SIGKILL)
    running.wait_headroom("dead", [], 40)
    with pytest.raises(RefusedError):
        running.admin.get(LIFELINE)
    running.clear("dead")


def test_one_of_two_controllers_acts_and_the_other_takes_over(
    running: NodepoolStage, controllers: list[Controller]
) -> None:
    first = start(running, controllers, "first")
    wait_until(lambda: first.metric("gma_nodepool_leading") == 1, "the first leads")
    second = start(running, controllers, "second")
    running.workload("pair", 2, 145)
    running.wait_headroom("pair", [2])
    assert second.metric("gma_nodepool_leading") == 0
    assert second.metric("gma_nodepool_rounds_total") == 0
    first.stop(signal.SIGKILL)
    wait_until(lambda: second.metric("gma_nodepool_leading") == 1, "the second leads", 30)
    running.load("pair", 170)
    running.wait_headroom("pair", [3])
    running.clear("pair")


def test_a_graceful_shutdown_releases_the_lease_immediately(
    running: NodepoolStage, controllers: list[Controller]
) -> None:
    first = start(running, controllers, "leaves")
    wait_until(lambda: first.metric("gma_nodepool_leading") == 1, "it leads")
    assert first.stop() == 0
    assert running.admin.get(LEASE)["spec"].get("holderIdentity", "") == ""


def test_a_field_of_another_manager_is_not_changed(
    running: NodepoolStage, controllers: list[Controller]
) -> None:
    one = start(running, controllers, "conflict", lifeline=30)
    running.workload("conflict", 2, 145)
    running.wait_headroom("conflict", [2])
    (deployment,) = running.placeholders("conflict")
    path = f"{DEPLOYMENTS.format(ns=NAMESPACE)}/{deployment['metadata']['name']}"
    running.admin.request(
        "PATCH",
        f"{path}?fieldManager=an-admin&force=true",
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": deployment["metadata"]["name"], "namespace": NAMESPACE},
            "spec": {"replicas": 1},
        },
        **{"Content-Type": "application/apply-patch+yaml"},
    )
    series = 'gma_nodepool_failed_total{kind="Deployment",reason="conflict"}'
    wait_until(lambda: (one.metric(series) or 0) >= 1, "the conflict is counted")
    running.wait_headroom("conflict", [1], 1)
    assert "an-admin" in one.process.tail()
    wait_until(
        lambda: one.metric('gma_nodepool_orders_refused{reason="conflict"}') == 1,
        "the order is reported as refused",
    )
    # Neither is it tried again each second.
    tries = one.metric(series)
    rounds = one.metric("gma_nodepool_rounds_total") or 0
    wait_until(lambda: (one.metric("gma_nodepool_rounds_total") or 0) > rounds + 3, "more rounds")
    assert one.metric(series) == tries
    running.clear("conflict")


def test_a_dry_run_writes_nothing(running: NodepoolStage, controllers: list[Controller]) -> None:
    running.workload("dry", 2, 145)
    before = everything(running)
    one = start(running, controllers, "dry", apply=False)
    wait_until(lambda: (one.metric("gma_nodepool_rounds_total") or 0) >= 3, "it has planned")
    assert one.metric("gma_nodepool_headroom_gpus") == 2
    assert everything(running) == before
    assert "dry run: nothing is written" in one.process.log.read_text()
    running.clear("dry")


def everything(stage: NodepoolStage) -> dict[str, list[str]]:
    """Names of all objects of the kinds that a controller writes."""
    return {
        path: sorted(row["metadata"]["name"] for row in stage.admin.get(path)["items"])
        for path in (
            "/apis/apps/v1/deployments",
            "/apis/batch/v1/jobs",
            "/apis/coordination.k8s.io/v1/leases",
            "/api/v1/configmaps",
            "/api/v1/podtemplates",
            "/api/v1/events",
        )
    }


def once(stage: NodepoolStage, kubeconfig: Path) -> subprocess.CompletedProcess[str]:
    config = stage.folder / "once.yaml"
    config.write_text("nodepool: {namespace: gpu-metrics}\n")
    command: list[str | Path] = [sys.executable, "-P", "-m", "adapter", "nodepool", "--once"]
    return subprocess.run(
        [*command, "--config", config, "--kubeconfig", kubeconfig],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )


def test_once_prints_the_plan_as_a_table(running: NodepoolStage) -> None:
    running.workload("once", 2, 145)
    done = once(running, running.kubeconfig())
    assert done.returncode == 0, done.stderr
    (row,) = [line for line in done.stdout.splitlines() if line.startswith("once ")]
    assert row.split()[:5] == ["once", "Deployment/inference", "gput4", "1", "nvidia.com/gpu"]
    assert "the API server serves no CapacityBuffer" in done.stdout
    running.clear("once")


def test_once_names_the_missing_permission(running: NodepoolStage) -> None:
    nobody = running.plane.write_kubeconfig("nobody", pair=running.plane.user("nobody"))
    done = once(running, nobody)
    assert done.returncode == 2
    assert "cannot list resource" in done.stderr
    assert "grant list and watch on it" in done.stderr


def test_the_kill_switch_removes_all_headroom_without_a_restart(
    running: NodepoolStage, controllers: list[Controller]
) -> None:
    one = start(running, controllers, "killed", limits={"hold_seconds": 3600})
    running.workload("killed", 2, 145)
    running.wait_headroom("killed", [2])
    text = one.config.read_text()
    one.config.write_text(text.replace("nodepool:\n", "nodepool:\n  stop: true\n"))
    running.wait_headroom("killed", [])
    running.clear("killed")


def test_an_outage_of_the_api_server_changes_no_headroom(
    running: NodepoolStage, controllers: list[Controller]
) -> None:
    """It freezes, gives the lease up by the clock, and goes on when the API server is back."""
    one = start(running, controllers, "outage")
    running.workload("outage", 2, 145)
    running.wait_headroom("outage", [2])
    running.plane.apiserver.stop(signal.SIGKILL)
    wait_until(lambda: one.metric("gma_nodepool_leading") == 0, "it no longer acts", 30)
    running.plane.start_apiserver()
    running.wait_headroom("outage", [2], 5)
    wait_until(lambda: one.metric("gma_nodepool_leading") == 1, "it leads again")
    running.load("outage", 170)
    running.wait_headroom("outage", [3])
    running.clear("outage")


def test_deletion_costs_have_one_writer_and_apply_to_the_observed_pod(
    running: NodepoolStage, controllers: list[Controller]
) -> None:
    ensure_namespace(running.admin, "costs")
    running.workload("costs", 2, 10)
    config = running.plane.kubeconfig
    one = Controller(running.folder, "costs", config, deletion_cost=True)
    controllers.append(one)
    one.start()
    path = "/api/v1/namespaces/costs/pods?labelSelector=app%3Dinference"
    key = "controller.kubernetes.io/pod-deletion-cost"

    def costed() -> list[Object]:
        rows: list[Object] = running.admin.get(path)["items"]
        with_cost = [row for row in rows if key in row["metadata"].get("annotations", {})]
        return with_cost if len(with_cost) == 2 else []

    for row in wait_until(costed, "both pods have a cost"):
        (ours,) = [
            entry
            for entry in row["metadata"]["managedFields"]
            if entry["manager"] == "gpu-metrics-adapter-nodepool"
        ]
        assert ours["fieldsV1"] == {"f:metadata": {"f:annotations": {f"f:{key}": {}}}}
        assert int(row["metadata"]["annotations"][key]) // 100 == 1
    running.clear("costs")


def test_a_restart_keeps_the_history(running: NodepoolStage, controllers: list[Controller]) -> None:
    one = start(running, controllers, "before", history={"interval": 1})
    running.workload("remembered", 2, 90)
    path = f"/api/v1/namespaces/{NAMESPACE}/configmaps/gpu-metrics-adapter-nodepool"

    def stored(obj: Object) -> bool:
        rows = [json.loads(line) for line in obj["data"]["workloads"].splitlines()]
        return any(row["namespace"] == "remembered" for row in rows)

    running.admin.wait(path, stored, "its history is stored")
    one.stop()
    running.clear("remembered")
    two = start(running, controllers, "after", history={"interval": 1})
    series = 'gma_nodepool_wanted_pods{kind="Deployment",name="inference",namespace="remembered"}'
    wait_until(lambda: two.metric(series) == 3.6, "the new one knows what the old one learned")


def test_controllers_that_are_killed_lose_no_history_and_order_nothing_twice(
    running: NodepoolStage, controllers: list[Controller]
) -> None:
    """SIGKILL in the rounds after the ledger was stored, at another moment of each."""
    path = f"/api/v1/namespaces/{NAMESPACE}/configmaps/gpu-metrics-adapter-nodepool"

    def learned(obj: Object) -> float | None:
        """When the stored history begins; None before there is one."""
        for line in obj["data"]["workloads"].splitlines():
            row = json.loads(line)
            if row["namespace"] == "spared":
                read = decode(row["history"])
                assert read.problem is None
                return read.history.recent[0].time if read.history.recent else None
        return None

    def stored_again(obj: Object) -> bool:
        return obj["metadata"]["resourceVersion"] != version and learned(obj) is not None

    running.workload("spared", 2, 145)
    first: float | None = None
    version = ""
    for number in range(4):
        one = start(running, controllers, f"mortal-{number}", history={"interval": 1})
        stored = running.admin.wait(path, stored_again, "the ledger is stored")
        first = first or learned(stored)
        assert learned(stored) == first, "the next one knows what the killed one learned"
        running.wait_headroom("spared", [2])
        time.sleep(number / 4)
        one.stop(signal.SIGKILL)
        ledger = running.admin.get(path)
        assert learned(ledger) == first
        assert [row["spec"]["replicas"] for row in running.placeholders("spared")] == [2]
        version = ledger["metadata"]["resourceVersion"]
    running.clear("spared")


def test_a_capacity_buffer_counts_only_after_a_controller_accepts_it(
    running: NodepoolStage, controllers: list[Controller]
) -> None:
    """A CRD without a controller: placeholders. When a controller accepts the probe, buffers."""
    admin = running.admin
    admin.create(CRD)
    name = CRD["metadata"]["name"]
    try:
        wait_until(lambda: served(running), "the API server serves CapacityBuffers")
        one = start(running, controllers, "probe", probe_wait=3)
        running.workload("probed", 2, 145)
        running.wait_headroom("probed", [2])
        assert "no controller accepts it" in one.process.tail()
        probe = f"{BUFFERS.format(ns=NAMESPACE)}/gpu-headroom-probe"
        assert admin.get(probe)["spec"] == {
            "replicas": 0,
            "podTemplateRef": {"name": "gpu-headroom-probe"},
        }
        ready = {"type": "ReadyForProvisioning", "status": "True", "reason": "Resolved"}
        admin.patch(f"{probe}/status", {"status": {"conditions": [ready]}})
        path = BUFFERS.format(ns=NAMESPACE) + HEADROOM.format(ns="probed")
        (row,) = wait_until(lambda: admin.get(path)["items"], "a buffer instead")
        assert row["spec"]["replicas"] == 2
        template = admin.get(
            f"/api/v1/namespaces/{NAMESPACE}/podtemplates/{row['metadata']['name']}"
        )
        owner = template["metadata"]["ownerReferences"][0]
        assert (owner["kind"], owner["name"]) == ("Job", "gpu-headroom-lifeline")
        running.wait_headroom("probed", [])
        text = one.config.read_text()
        one.config.write_text(text.replace("nodepool:\n", "nodepool:\n  stop: true\n"))
        templates = f"/api/v1/namespaces/{NAMESPACE}/podtemplates" + HEADROOM.format(ns="probed")
        wait_until(
            lambda: not admin.get(path)["items"] + admin.get(templates)["items"],
            "all of it is gone",
        )
    finally:
        running.clear("probed")
        admin.delete(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}")


def served(stage: NodepoolStage) -> bool:
    try:
        return bool(stage.admin.get(BUFFERS.format(ns="default")))
    except RefusedError:
        return False


def test_the_account_may_not_change_other_jobs(running: NodepoolStage) -> None:
    """Of Jobs it may write the lifeline alone, and nothing beyond its own namespace: asked of the
    API server itself."""
    ensure_namespace(running.admin, "rights")

    def may(verb: str, group: str, resource: str, name: str = "", where: str = NAMESPACE) -> bool:
        attributes = {
            "namespace": where,
            "verb": verb,
            "group": group,
            "resource": resource,
            "name": name,
        }
        answer = running.admin.request(
            "POST",
            "/apis/authorization.k8s.io/v1/subjectaccessreviews",
            {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SubjectAccessReview",
                "spec": {
                    "user": f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}",
                    "resourceAttributes": attributes,
                },
            },
        )
        return bool(answer["status"]["allowed"])

    for where in ("rights", "kube-system"):
        assert not may("patch", "batch", "jobs", "gpu-headroom-lifeline", where)
        for verb in ("create", "patch", "delete"):
            assert not may(verb, "apps", "deployments", "a", where)
            assert not may(verb, "", "podtemplates", "a", where)
            assert not may(verb, "autoscaling.x-k8s.io", "capacitybuffers", "a", where)
        assert not may("create", "", "events", "", where)
    assert may("create", "apps", "deployments", "a")
    assert may("patch", "batch", "jobs", "gpu-headroom-lifeline")
    assert may("patch", "batch", "jobs", "gpu-headroom-probe")
    assert not may("patch", "batch", "jobs", "training")
    assert not may("delete", "", "pods", "a")
    assert not may("create", "", "pods", "a")
    assert not may("patch", "", "pods", "a")
    assert not may("create", "policy", "poddisruptionbudgets")
    assert not may("get", "", "secrets", "a")
    assert not may("update", "", "configmaps", "other", NAMESPACE)
    assert not may("patch", "", "nodes")


def test_the_api_server_accepts_every_object_of_it(running: NodepoolStage) -> None:
    for row in chart.render({"nodepool": {"enabled": True, "apply": True}}):
        if "nodepool" not in row["metadata"]["name"]:
            continue
        path = f"{collection(row)}/{row['metadata']['name']}"
        query = "fieldManager=chart&force=true&fieldValidation=Strict&dryRun=All"
        kind = {"Content-Type": "application/apply-patch+yaml"}
        running.admin.request("PATCH", f"{path}?{query}", row, **kind)


def test_the_notes_explain_how_to_see_its_orders(running: NodepoolStage) -> None:
    to = ("--namespace=elsewhere", f"--kubeconfig={running.plane.kubeconfig}", "--dry-run=server")
    for apply in (False, True):
        nodepool = {"enabled": True, "apply": apply, "priorityClass": {"create": False}}
        values = {"nodepool": nodepool, "apiServices": {"create": False}}
        done = chart.helm("install", "second", chart.FOLDER, *to, values=values)
        assert done.returncode == 0, done.stderr
        assert "logs deployment/second-gpu-metrics-adapter-nodepool" in done.stdout
        assert ("It is a dry run and writes nothing" in done.stdout) is not apply


UNASKED = {
    # Karpenter's kinds are not defined here; the lab has them.
    *(
        Right(verb, "karpenter.sh", kind)
        for verb in ("list", "watch")
        for kind in ("nodepools", "nodeclaims")
    ),
    # No HPA here has an External metric.
    Right("list", "external.metrics.k8s.io", "*"),
    # The HPAs here scale Deployments, which are read whole; test_groups.py asks for scales.
    Right("get", "*", "*/scale"),
}


def test_every_permission_of_the_account_was_used(
    running: NodepoolStage, request: pytest.FixtureRequest
) -> None:
    """By kube-apiserver's audit log, over all tests above: no rule of the chart's is too much."""
    names = {item.name.partition("[")[0] for item in request.session.items}
    if missing := {name for name in globals() if name.startswith("test_")} - names:
        pytest.skip(f"it looks back on all tests of this module, and these did not run: {missing}")
    rows = chart.render({"nodepool": {"enabled": True, "apply": True}}, only=["nodepool/rbac"])
    user = f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}"
    used = {row.right for row in asked(running.plane.audit, user)}
    # The chart grants every metric: RBAC knows no pattern for those of pods.
    metrics = {right for right in used if right.group == "custom.metrics.k8s.io"}
    used = used - metrics | {right._replace(resource="*") for right in metrics}
    assert used == granted(rows) - UNASKED
