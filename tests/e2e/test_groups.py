"""Replicas that are groups of pods, and other owners with a scale: the real HPA controller decides.

The kinds are custom resources with the scale subresource of the real ones, and no controller: a
test creates pods and status as kubernetes-sigs/lws, Argo Rollouts and ai-dynamo/grove do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from tests.e2e import chart
from tests.e2e.apiservice import (
    EXTERNAL,
    NAMESPACE,
    SERVICE,
    VIEW,
    ensure_namespace,
    register_group,
    wait_available,
)
from tests.e2e.cluster import HPAS, PODS, Cluster, Object, RefusedError, condition
from tests.e2e.process import wait_until
from tests.e2e.stage import Stage

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

LWS: Final = "leaderworkerset.sigs.k8s.io"
SETS: Final = "disaggregatedset.x-k8s.io"


class Kind(NamedTuple):
    """A kind with a scale subresource."""

    kind: str
    plural: str
    group: str
    version: str
    selector: str
    """Path of the selector below ``status``."""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}"

    def path(self, namespace: str) -> str:
        return f"/apis/{self.api_version}/namespaces/{namespace}/{self.plural}"

    def definition(self) -> Object:
        """The CustomResourceDefinition."""
        scale = {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": f".status.{self.selector}",
        }
        anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        version = {
            "name": self.version,
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": anything},
            "subresources": {"status": {}, "scale": scale},
        }
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{self.plural}.{self.group}"},
            "spec": {
                "group": self.group,
                "scope": "Namespaced",
                "names": {"kind": self.kind, "plural": self.plural},
                "versions": [version],
            },
        }


GROUPS: Final = Kind(
    *("LeaderWorkerSet", "leaderworkersets", "leaderworkerset.x-k8s.io", "v1", "hpaPodSelector")
)
SCALER: Final = Kind(
    *("DisaggregatedSetRoleScaler", "disaggregatedsetrolescalers", SETS, "v1", "selector")
)
ROLLOUT: Final = Kind("Rollout", "rollouts", "argoproj.io", "v1alpha1", "selector")
CLIQUES: Final = Kind(
    *("PodCliqueScalingGroup", "podcliquescalinggroups", "grove.io", "v1alpha1", "selector")
)
UNKNOWN: Final = Kind("ModelPolicy", "modelpolicies", "inference.example", "v1", "selector")
KINDS: Final = (GROUPS, SCALER, ROLLOUT, CLIQUES, UNKNOWN)


@pytest.fixture
def groups(running_groups: Stage) -> Iterator[Stage]:
    """The stage; what a test has created there is deleted, so that its GPUs are free."""
    yield running_groups
    admin = running_groups.admin
    spaces = {running.namespace for running in running_groups.pods() if running.gpus}
    for space in spaces:
        for path in (HPAS.format(ns=space), f"/apis/apps/v1/namespaces/{space}/replicasets"):
            for row in admin.get(path)["items"]:
                admin.delete(f"{path}/{row['metadata']['name']}")
        for row in admin.get(PODS.format(ns=space))["items"]:
            with suppress(RefusedError):  # its owner is gone too
                admin.delete(f"{PODS.format(ns=space)}/{row['metadata']['name']}")
    wait_until(
        lambda: not any(running.gpus for running in running_groups.pods()), "every GPU is free"
    )


@pytest.fixture(scope="module")
def running_groups(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A stage with the kinds."""
    folder: Path = tmp_path_factory.mktemp("groups")
    with Stage(folder) as made:
        for kind in KINDS:
            made.admin.create(kind.definition())
        served = EXTERNAL + VIEW
        register_group(made.admin, made.adapter.port, made.adapter.ca.read_bytes(), served)
        wait_available(made.admin, served)
        for kind in KINDS:
            made.admin.wait(kind.path("default"), bool, f"{kind.kind} is served")
        yield made


def target(
    stage: Stage, kind: Kind, space: str, replicas: int, selector: str, name: str = "llm"
) -> Object:
    """An object of a kind with its scale."""
    ensure_namespace(stage.admin, space)
    meta = {"name": name, "namespace": space}
    body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta}
    made: Object = stage.admin.request(
        "POST", kind.path(space), body | {"spec": {"replicas": replicas}}
    )
    status = {"replicas": replicas, kind.selector: selector}
    stage.admin.patch(f"{kind.path(space)}/{name}/status", {"status": status})
    return made


def owner(stage: Stage, space: str, kind: str, name: str, **labels: str) -> Object:
    """A StatefulSet that owns pods and makes none, or a ReplicaSet, which makes a pod."""
    selector = {"owner": name}
    template = {
        "metadata": {"labels": {**selector, **labels}},
        "spec": {"containers": [MAIN], "terminationGracePeriodSeconds": 0},
    }
    replicas = int(kind == "ReplicaSet")
    spec = {"replicas": replicas, "selector": {"matchLabels": selector}, "template": template}
    meta = {"name": name, "namespace": space}
    body = {"apiVersion": "apps/v1", "kind": kind, "metadata": meta, "spec": spec}
    path = f"/apis/apps/v1/namespaces/{space}/{kind.lower()}s"
    made: Object = stage.admin.request("POST", path, body)
    return made


MAIN: Final[Object] = {
    "name": "main",
    "image": "none",
    "resources": {"limits": {"nvidia.com/gpu": "1"}},
}


def pod(
    stage: Stage, of: Object, name: str, labels: Mapping[str, str], notes: Mapping[str, str]
) -> None:
    """A pod of an owner."""
    space = of["metadata"]["namespace"]
    reference = {
        "apiVersion": of["apiVersion"],
        "kind": of["kind"],
        "name": of["metadata"]["name"],
        "uid": of["metadata"]["uid"],
        "controller": True,
    }
    meta = {
        "name": name,
        "namespace": space,
        "labels": dict(labels),
        "annotations": dict(notes),
        "ownerReferences": [reference],
    }
    spec = {"containers": [MAIN], "terminationGracePeriodSeconds": 0}
    stage.admin.create({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})


def lws(stage: Stage, space: str, **more: str) -> None:
    """Two groups of three pods: idle leaders and busy workers."""
    stage.load.pin(space, "leader", 2)
    stage.load.pin(space, "worker", 95)
    for group in (0, 1):
        for worker in (0, 1, 2):
            name = f"llm-{group}-{worker}" if worker else f"llm-{group}"
            of = owner(stage, space, "StatefulSet", f"of-{name}")
            labels = {
                f"{LWS}/name": "llm",
                f"{LWS}/group-index": str(group),
                f"{LWS}/worker-index": str(worker),
                "app": "worker" if worker else "leader",
                **more,
            }
            pod(stage, of, name, labels, {f"{LWS}/size": "3"})


def hpa(stage: Stage, kind: Kind, space: str, metric: Object, name: str = "llm") -> None:
    """An HPA of an object."""
    reference = {"apiVersion": kind.api_version, "kind": kind.kind, "name": name}
    spec = {"scaleTargetRef": reference, "minReplicas": 1, "maxReplicas": 8, "metrics": [metric]}
    behavior = {"scaleDown": {"stabilizationWindowSeconds": 0}}
    meta = {"name": "llm", "namespace": space}
    body = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": meta}
    stage.admin.create(body | {"spec": spec | {"behavior": behavior}})


def pods_metric(target: str, aggregate: str = "") -> Object:
    metric: dict[str, Any] = {"name": "gpu_utilization"}
    if aggregate:
        metric["selector"] = {"matchLabels": {"aggregate": aggregate}}
    goal = {"type": "AverageValue", "averageValue": target}
    return {"type": "Pods", "pods": {"metric": metric, "target": goal}}


def object_metric(kind: Kind, target: str, name: str) -> Object:
    described = {"apiVersion": kind.api_version, "kind": kind.kind, "name": name}
    goal = {"type": "Value", "value": target}
    source = {"describedObject": described, "metric": {"name": "gpu_utilization"}, "target": goal}
    return {"type": "Object", "object": source}


def external_metric(target: str, **labels: str) -> Object:
    metric = {"name": "gpu_utilization", "selector": {"matchLabels": labels}}
    goal = {"type": "AverageValue", "averageValue": target}
    return {"type": "External", "external": {"metric": metric, "target": goal}}


def wait_replicas(stage: Stage, kind: Kind, space: str, wanted: int, name: str = "llm") -> None:
    """Wait until the HPA has set this size."""

    def size() -> int:
        replicas: int = stage.admin.get(f"{kind.path(space)}/{name}")["spec"]["replicas"]
        return replicas

    wait_until(lambda: size() == wanted, f"{space} is scaled to {wanted}; it has {size()}", 60)


LEADERS: Final = f"{LWS}/name=llm,{LWS}/worker-index=0"


def test_an_hpa_on_leaders_scales_in_while_the_workers_are_busy(groups: Stage) -> None:
    target(groups, GROUPS, "leaders", 2, LEADERS)
    lws(groups, "leaders")
    hpa(groups, GROUPS, "leaders", pods_metric("40"))
    wait_replicas(groups, GROUPS, "leaders", 1)


def test_an_hpa_that_asks_for_the_value_of_each_group_scales_out(groups: Stage) -> None:
    """(2 + 95 + 95) / 3 is 64: 2 groups × 64 / 40 is 3.2."""
    target(groups, GROUPS, "grouped", 2, LEADERS)
    lws(groups, "grouped")
    hpa(groups, GROUPS, "grouped", pods_metric("40", "mean"))
    wait_replicas(groups, GROUPS, "grouped", 4)
    path = (
        "/apis/custom.metrics.k8s.io/v1beta2/namespaces/grouped/pods/%2A/gpu_utilization"
        f"?labelSelector={LEADERS.replace('=', '%3D')}&metricLabelSelector=aggregate%3Dmean"
    )

    def values() -> dict[str, str]:
        items = groups.admin.get(path)["items"]
        return {item["describedObject"]["name"]: item["value"] for item in items}

    assert values() == {"llm-0": "64", "llm-1": "64"}
    groups.admin.delete(f"{PODS.format(ns='grouped')}/llm-0-2")
    wait_until(lambda: values() == {"llm-1": "64"}, "the group without a worker has no value")


def test_a_sum_from_outside_has_the_target_of_a_group(groups: Stage) -> None:
    """2 × 192 of a target of 3 × 40 is 3.2 groups."""
    target(groups, GROUPS, "outside", 2, LEADERS)
    lws(groups, "outside")
    labels = {"workload": "llm", "workload_kind": "LeaderWorkerSet"}
    hpa(groups, GROUPS, "outside", external_metric("120", **labels))
    wait_replicas(groups, GROUPS, "outside", 4)


def cliques(stage: Stage, space: str) -> None:
    """Two groups of Grove, of two pods each; the PodClique has no controller either."""
    stage.load.pin(space, "clique", 60)
    for group in (0, 1):
        for number in (0, 1):
            labels = {
                "grove.io/podcliquescalinggroup": "llm",
                "grove.io/podcliquescalinggroup-replica-index": str(group),
                "app": "clique",
            }
            meta = {"name": f"llm-{group}-{number}", "namespace": space}
            clique = {"apiVersion": CLIQUE.api_version, "kind": CLIQUE.kind, "metadata": meta}
            of = stage.admin.request("POST", CLIQUE.path(space), clique)
            pod(stage, of, f"llm-{group}-{number}", labels, {})


CLIQUE: Final = Kind("PodClique", "podcliques", "grove.io", "v1alpha1", "selector")


def test_every_pod_of_a_group_is_taken_for_a_replica_where_the_selector_matches_it(
    groups: Stage,
) -> None:
    """60 of 40 is 1.5: three groups are right. The controller multiplies the four pods: six."""
    groups.admin.create(CLIQUE.definition())
    groups.admin.wait(CLIQUE.path("default"), bool, "PodClique is served")
    selector = "grove.io/podcliquescalinggroup=llm"
    for space, metric, wanted in (
        ("cliques", pods_metric("40"), 6),
        ("cliques-sum", external_metric("80", workload="llm"), 3),
    ):
        target(groups, CLIQUES, space, 2, selector)
        cliques(groups, space)
        hpa(groups, CLIQUES, space, metric)
        wait_replicas(groups, CLIQUES, space, wanted)


OWNERS: Final = {
    "a Rollout": (
        ROLLOUT,
        ("ReplicaSet", "llm-5d9"),
        {"rollouts-pod-template-hash": "5d9"},
    ),
    "a role of a DisaggregatedSet": (
        SCALER,
        ("StatefulSet", "llm-0"),
        {f"{SETS}/name": "chat", f"{SETS}/role": "decode"},
    ),
    "an object that owns its pods": (UNKNOWN, None, {}),
}


@pytest.mark.parametrize("case", OWNERS.values(), ids=OWNERS)
def test_an_object_metric_of_what_is_scaled_decides(
    groups: Stage, case: tuple[Kind, tuple[str, str] | None, dict[str, str]]
) -> None:
    kind, between, labels = case
    space = f"of-{kind.plural}"
    name = "chat-decode" if kind is SCALER else "llm"
    groups.load.pin(space, "inference", 80)
    made = target(groups, kind, space, 1, "app=inference", name)
    of = made
    own = {"app": "inference", **labels}
    if between is not None:
        of = owner(groups, space, *between, **own)
    if of["kind"] != "ReplicaSet":
        pod(groups, of, "a", own, {})
    hpa(groups, kind, space, object_metric(kind, "40", name), name)
    wait_replicas(groups, kind, space, 2, name)
    # The controller writes the size first, and then what it read.
    wait_until(
        lambda: (
            condition(groups.admin.get(f"{HPAS.format(ns=space)}/llm"), "ScalingActive")
            == ("True", "ValidMetricFound")
        ),
        "the HPA says that it has the metric",
    )


def test_a_device_that_the_kubelet_reports_unhealthy_is_shown_at_its_pod(groups: Stage) -> None:
    space = "sick"
    groups.load.pin(space, "inference", 80)
    made = target(groups, UNKNOWN, space, 1, "app=inference")
    pod(groups, made, "a", {"app": "inference"}, {})
    wait_until(lambda: any(running.namespace == space for running in groups.pods()), "the pod runs")
    devices = [{"resourceID": "GPU-7", "health": "Unhealthy"}]
    held = {"name": "nvidia.com/gpu", "resources": devices}
    row = {"name": "main", "image": "none", "imageID": "", "ready": True, "restartCount": 0}
    path = f"{PODS.format(ns=space)}/a"
    status = {"containerStatuses": [row | {"allocatedResourcesStatus": [held]}]}
    groups.admin.patch(f"{path}/status", {"status": status})
    view = f"/apis/view.gpu-metrics-adapter.io/v1alpha1/namespaces/{space}/gpupods/a"
    kept = groups.admin.get(path)["status"]["containerStatuses"][0]
    assert kept["allocatedResourcesStatus"] == [held], "the API server keeps it (KEP-4680)"
    wait_until(
        lambda: groups.admin.get(view).get("unhealthyDevices") == ["GPU-7 of nvidia.com/gpu"],
        "the device is shown",
    )


def test_nodepool_may_read_every_scale_and_nothing_else_of_other_kinds(groups: Stage) -> None:
    target(groups, ROLLOUT, "scales", 3, "app=inference")
    values = {"nodepool": {"enabled": True}}
    for row in chart.render(values, only=("nodepool/rbac",)):
        groups.admin.create(row)
    account = f"{SERVICE}-nodepool"
    plane = groups.plane
    user = Cluster(plane.url, str(plane.ca.cert), token=groups.admin.token(NAMESPACE, account))
    scale = user.get(f"{ROLLOUT.path('scales')}/llm/scale")
    assert (scale["spec"]["replicas"], scale["status"]["selector"]) == (3, "app=inference")
    with pytest.raises(RefusedError, match="403"):
        user.get(f"{ROLLOUT.path('scales')}/llm")
