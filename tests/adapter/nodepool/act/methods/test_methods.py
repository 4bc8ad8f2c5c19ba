"""The objects that each method writes for an order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from adapter.nodepool.act.methods import (
    capacitybuffer,
    headroomobjects,
    placeholder,
)
from adapter.nodepool.model import names
from adapter.nodepool.model.capacity import ProvisioningMethod
from adapter.nodepool.model.shape import Shape, key
from adapter.nodepool.plan.order import Tie
from adapter.nodepool.seen.headroom import decoder
from adapter.nodepool.seen.podspec import shape_of
from adapter.nodepool.seen.priorityclasses import PriorityClass
from tests.adapter.nodepool.manifests import HOME, T0, found, managed, priority_class, raw
from tests.adapter.nodepool.orders import LIFELINE, SHAPE, order

NAME = names.headroom_name(names.headroom_key("team", key(SHAPE)))
OWNER = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "name": "gpu-headroom-lifeline",
    "uid": "uid-lifeline",
}


def test_a_buffer_sets_only_replicas_and_the_lifeline_owns_both_objects() -> None:
    template, buffer = capacitybuffer.manifests(order(), "v1beta1", LIFELINE, "pause", None)
    assert buffer["apiVersion"] == "autoscaling.x-k8s.io/v1beta1"
    assert buffer["spec"] == {"podTemplateRef": {"name": NAME}, "replicas": 2}
    for obj in (template, buffer):
        assert obj["metadata"]["name"] == NAME
        assert obj["metadata"]["ownerReferences"] == [OWNER]
    pod = template["template"]["spec"]
    assert pod["nodeSelector"] == {"agentpool": "gput4"}
    assert pod["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": "1"}
    assert pod["containers"][0]["image"] == "pause"


OWN = (
    '{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"Exists"}]},'
    '{"matchFields":[{"key":"metadata.name","operator":"NotIn","values":["c"]}]}]}'
)


def named(operator: str, name: str) -> dict[str, Any]:
    return {"key": "metadata.name", "operator": operator, "values": [name]}


def terms_of(template: Any) -> Any:
    affinity = template["template"]["spec"]["affinity"]["nodeAffinity"]
    return affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]


def test_a_buffer_that_is_tied_to_nodes_fits_on_no_other_node() -> None:
    made = order(tie=Tie(True, ("a", "b"), 2), shape=replace(SHAPE, node_affinity=OWN))
    template, buffer = capacitybuffer.manifests(made, "v1beta1", LIFELINE, "pause", None)
    zone = [{"key": "zone", "operator": "Exists"}]
    assert terms_of(template) == [
        {"matchExpressions": zone, "matchFields": [named("In", "a")]},
        {"matchExpressions": zone, "matchFields": [named("In", "b")]},
        {"matchFields": [named("NotIn", "c"), named("In", "a")]},
        {"matchFields": [named("NotIn", "c"), named("In", "b")]},
    ]
    row = found(ProvisioningMethod.BUFFER, buffer)
    assert (row.problem, row.tie, row.replicas) == ("", ("only a,b", 2), 2)


def test_a_buffer_whose_nodes_all_boot_fits_nowhere() -> None:
    made = order(tie=Tie(True, (), 2))
    template, buffer = capacitybuffer.manifests(made, "v1beta1", LIFELINE, "pause", None)
    assert terms_of(template) == [{"matchFields": [named("In", "gpu-headroom-none")]}]
    assert found(ProvisioningMethod.BUFFER, buffer).tie == ("only ", 2)


def test_a_buffer_for_missing_nodes_orders_only_those_and_remembers_all() -> None:
    made = order(5, tie=Tie(False, ("a", "b"), 3))
    template, buffer = capacitybuffer.manifests(made, "v1beta1", LIFELINE, "pause", None)
    assert terms_of(template) == [{"matchFields": [named("NotIn", "a"), named("NotIn", "b")]}]
    assert buffer["spec"]["replicas"] == 3
    row = found(ProvisioningMethod.BUFFER, buffer)
    assert (row.problem, row.tie, row.replicas) == ("", ("beside a,b", 3), 5)


def test_the_number_of_a_buffer_for_missing_nodes_must_be_ours() -> None:
    made = order(5, tie=Tie(False, ("a",), 4))
    _, buffer = capacitybuffer.manifests(made, "v1beta1", LIFELINE, "pause", None)
    rows = managed(buffer)
    del rows[0]["fieldsV1"]["f:metadata"]["f:annotations"]["f:gpu-metrics-adapter.io/replicas"]
    buffer["metadata"] |= {"managedFields": rows, "uid": "uid"}
    read = decoder(ProvisioningMethod.BUFFER, HOME)(raw(buffer))
    assert "did not apply metadata.annotations.gpu-metrics-adapter.io/replicas" in read.problem


def test_an_object_names_its_reason_and_its_workloads() -> None:
    _, buffer = capacitybuffer.manifests(order(), "v1alpha1", LIFELINE, "pause", T0)
    notes = buffer["metadata"]["annotations"]
    prefix = "gpu-metrics-adapter.io"
    assert notes[f"{prefix}/why"] == "4 pods are needed now"
    assert notes[f"{prefix}/workloads"] == "Deployment/inference"
    assert notes[f"{prefix}/needed-at"] == "2026-01-01T00:00:00Z"
    assert notes[f"{prefix}/nudged-at"] == "2026-01-01T00:00:00Z"


def test_written_headroom_is_read_back() -> None:
    _, buffer = capacitybuffer.manifests(order(3), "v1beta1", LIFELINE, "pause", T0)
    row = found(ProvisioningMethod.BUFFER, buffer)
    assert (row.shape, row.replicas, row.pool, row.pods) == (SHAPE, 3, "gput4", 2)
    assert (row.needed_at, row.nudged_at) == (T0, T0)


def test_placeholders_have_low_priority_no_grace_and_explicit_tolerations() -> None:
    spec = placeholder.manifest(order(), LIFELINE, "pause", "low")["spec"]
    pod = spec["template"]["spec"]
    assert spec["replicas"] == 2
    assert pod["priorityClassName"] == "low"
    assert pod["preemptionPolicy"] == "Never"
    assert pod["terminationGracePeriodSeconds"] == 0
    assert pod["tolerations"] == [
        {"key": "sku", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}
    ]
    assert spec["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()


REFUSED: dict[str, tuple[PriorityClass | None, Shape, str]] = {
    "right": (priority_class(), SHAPE, ""),
    "right for a low workload": (priority_class(), replace(SHAPE, priority=-9), ""),
    "not there": (None, SHAPE, "does not exist: create it"),
    "below the cut-off": (priority_class(-1000), SHAPE, "removes their nodes"),
    "not below the workload": (priority_class(0), SHAPE, "could not preempt the placeholders"),
    "the workload's is as low": (
        priority_class(),
        replace(SHAPE, priority=-10),
        "give the workload a higher priority",
    ),
    "it preempts": (priority_class(policy="PreemptLowerPriority"), SHAPE, "set it to Never"),
}


@pytest.mark.parametrize(("cls", "shape", "words"), REFUSED.values(), ids=REFUSED)
def test_an_unsuitable_priority_class_is_refused(
    cls: PriorityClass | None, shape: Shape, words: str
) -> None:
    text = placeholder.refusal("gpu-metrics-adapter-headroom", cls, shape)
    assert words in text
    assert bool(words) is bool(text)


def conditions(*rows: tuple[str, str, str, str]) -> dict[str, object]:
    return {
        "conditions": [
            dict(zip(("type", "status", "reason", "message"), row, strict=True)) for row in rows
        ]
    }


RESOLVED = ("ReadyForProvisioning", "True", "Resolved", "Pod template resolved successfully")
SHORT = {
    "karpenter, ordering": (
        [
            RESOLVED,
            (
                "Provisioning",
                "False",
                "RequiresNewCapacity",
                "2/2 virtual pods required new capacity, 0 failed",
            ),
        ],
        "",
    ),
    "karpenter, at its limit": (
        [
            RESOLVED,
            (
                "Provisioning",
                "False",
                "RequiresNewCapacity",
                "0/5 virtual pods required new capacity, 2 failed",
            ),
        ],
        "pool at its limit",
    ),
    "karpenter, empty": ([RESOLVED, ("Provisioning", "False", "BufferEmpty", "zero")], ""),
    "cluster-autoscaler": (
        [
            ("ReadyForProvisioning", "True", "AttributesSetSuccessfully", "ready"),
            ("Provisioning", "True", "FakePodsInjected", "injected"),
            ("LimitedByQuotas", "False", "ResourceQuotasAllocated", "fits"),
        ],
        "",
    ),
    "limited by a quota": (
        [RESOLVED, ("LimitedByQuotas", "True", "ResourceQuotaLimited", "gpus")],
        "ResourceQuotaLimited: gpus",
    ),
    "not ready": (
        [("ReadyForProvisioning", "False", "PodTemplateNotFound", "missing")],
        "PodTemplateNotFound",
    ),
    "nobody serves it": ([], ""),
}


@pytest.mark.parametrize(("rows", "words"), SHORT.values(), ids=SHORT)
def test_a_shortfall_of_the_autoscaler_is_reported(
    rows: list[tuple[str, str, str, str]], words: str
) -> None:
    _, buffer = capacitybuffer.manifests(order(), "v1beta1", LIFELINE, "pause", None)
    text = capacitybuffer.shortfall(found(ProvisioningMethod.BUFFER, buffer, conditions(*rows)))
    assert words in text
    assert bool(words) is bool(text)


def test_a_change_of_texts_alone_is_not_written() -> None:
    _, buffer = capacitybuffer.manifests(order(), "v1beta1", LIFELINE, "pause", None)
    current = found(ProvisioningMethod.BUFFER, buffer)

    def worth(**changed: Any) -> bool:
        return headroomobjects.worth_a_write(
            order(**changed), current, ProvisioningMethod.BUFFER, LIFELINE
        )

    assert not worth()
    assert not worth(reasons=order(reasons=()).reasons, needed_at=T0 + 59)
    assert worth(needed_at=T0 + 60)
    assert worth(needed_at=T0 - 60), "a freeze or a clock set back brings it forward"
    assert worth(replicas=3)
    assert worth(reckoned=3)
    assert worth(nudge=True)
    assert worth(tie=Tie(True, (), 2))
    assert worth(tie=Tie(False, ("a",), 1))
    assert headroomobjects.worth_a_write(order(), None, ProvisioningMethod.BUFFER, LIFELINE)
    assert headroomobjects.worth_a_write(order(), current, ProvisioningMethod.PLACEHOLDER, LIFELINE)


def test_headroom_of_a_deleted_lifeline_gets_the_new_one() -> None:
    _, buffer = capacitybuffer.manifests(order(), "v1beta1", LIFELINE, "pause", None)
    another = replace(LIFELINE, uid="uid-another")
    current = found(ProvisioningMethod.BUFFER, buffer)
    assert headroomobjects.worth_a_write(order(), current, ProvisioningMethod.BUFFER, another)


def test_the_template_has_the_claims_of_the_shape() -> None:
    shape = shape_of({"containers": [], "resourceClaims": [{"resourceClaimTemplateName": "one"}]})
    template, _ = capacitybuffer.manifests(order(shape=shape), "v1beta1", LIFELINE, "pause", None)
    assert template["template"]["spec"]["resourceClaims"] == [
        {"name": "claim-0", "resourceClaimTemplateName": "one"}
    ]
