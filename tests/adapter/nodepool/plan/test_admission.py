"""The nodes that admit a shape."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from adapter.nodepool.plan.packing import admits, count_fitting_pods, room
from adapter.nodepool.seen.podspec import shape_of
from adapter.pipeline.cluster.taints import Taint
from tests.adapter.nodepool.planning import GPU, node, pod

LABELS = {"pool": "gpu", "zone": "a", "gen": "4", "empty": ""}


def affine(*terms: str) -> dict[str, Any]:
    required = {"nodeSelectorTerms": [yaml.safe_load(term) for term in terms]}
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    }


def rule(operator: str, *values: str, key: str = "gen") -> str:
    listed = f", values: [{', '.join(map(repr, values))}]" if values else ""
    return f"{{matchExpressions: [{{key: {key}, operator: {operator}{listed}}}]}}"


AFFINITY: dict[str, tuple[tuple[str, ...], bool]] = {
    "In, one of the values": ((rule("In", "3", "4"),), True),
    "In, none of the values": ((rule("In", "3"),), False),
    "In, no such label": ((rule("In", "4", key="other"),), False),
    "NotIn, none of the values": ((rule("NotIn", "3"),), True),
    "NotIn, one of the values": ((rule("NotIn", "4"),), False),
    "NotIn, no such label": ((rule("NotIn", "4", key="other"),), True),
    "Exists": ((rule("Exists"),), True),
    "Exists, with an empty value": ((rule("Exists", key="empty"),), True),
    "Exists, no such label": ((rule("Exists", key="other"),), False),
    "DoesNotExist": ((rule("DoesNotExist", key="other"),), True),
    "DoesNotExist, but it does": ((rule("DoesNotExist"),), False),
    "Gt": ((rule("Gt", "3"),), True),
    "Gt, equal": ((rule("Gt", "4"),), False),
    "Gt, no such label": ((rule("Gt", "3", key="other"),), False),
    "Gt, label is not a number": ((rule("Gt", "3", key="zone"),), False),
    "Lt": ((rule("Lt", "5"),), True),
    "Lt, equal": ((rule("Lt", "4"),), False),
    "Lt, bound is not a number": ((rule("Lt", "x"),), False),
    "an operator that nobody knows": ((rule("Like", "4"),), False),
    "terms are alternatives": ((rule("In", "9"), rule("In", "4")), True),
    "rules of a term hold together": (
        (
            """{matchExpressions: [{key: gen, operator: Exists},
            {key: zone, operator: In, values: [b]}]}""",
        ),
        False,
    ),
    "an empty term matches nothing": (("{}",), False),
    "by the node's name": (
        ("{matchFields: [{key: metadata.name, operator: In, values: [n]}]}",),
        True,
    ),
    "by another node's name": (
        ("{matchFields: [{key: metadata.name, operator: In, values: [m]}]}",),
        False,
    ),
    "not by the node's name": (
        ("{matchFields: [{key: metadata.name, operator: NotIn, values: [n]}]}",),
        False,
    ),
}


@pytest.mark.parametrize(("terms", "taken"), AFFINITY.values(), ids=AFFINITY)
def test_required_node_affinity(terms: tuple[str, ...], taken: bool) -> None:
    assert admits(shape_of(affine(*terms)), LABELS, (), "n") is taken


SELECTED = {
    "every label": ({"pool": "gpu", "zone": "a"}, True),
    "another value": ({"pool": "gpu", "zone": "b"}, False),
    "no such label": ({"other": "x"}, False),
    "an empty value is a value": ({"empty": ""}, True),
    "but none is not an empty one": ({"other": ""}, False),
}


@pytest.mark.parametrize(("selector", "taken"), SELECTED.values(), ids=SELECTED)
def test_node_selector(selector: dict[str, str], taken: bool) -> None:
    assert admits(shape_of({"nodeSelector": selector}), LABELS, ()) is taken


HARD = Taint("sku", "gpu", "NoSchedule")
TAINTS: dict[str, tuple[str, Taint, bool]] = {
    "not tolerated": ("[]", HARD, False),
    "only a preference": ("[]", HARD._replace(effect="PreferNoSchedule"), True),
    "NoExecute keeps away too": ("[]", HARD._replace(effect="NoExecute"), False),
    "Equal": ("[{key: sku, operator: Equal, value: gpu, effect: NoSchedule}]", HARD, True),
    "Equal is the default": ("[{key: sku, value: gpu, effect: NoSchedule}]", HARD, True),
    "another value": ("[{key: sku, value: cpu, effect: NoSchedule}]", HARD, False),
    "another effect": ("[{key: sku, value: gpu, effect: NoExecute}]", HARD, False),
    "any effect": ("[{key: sku, value: gpu}]", HARD, True),
    "Exists": ("[{key: sku, operator: Exists}]", HARD, True),
    "another key": ("[{key: other, operator: Exists}]", HARD, False),
    "everything": ("[{operator: Exists}]", HARD, True),
    "everything of an effect": ("[{operator: Exists, effect: NoExecute}]", HARD, False),
    "an operator that nobody knows": ("[{key: sku, operator: Gt, value: gpu}]", HARD, False),
}


@pytest.mark.parametrize(("tolerations", "taint", "taken"), TAINTS.values(), ids=TAINTS)
def test_taints_and_tolerations(tolerations: str, taint: Taint, taken: bool) -> None:
    shape = shape_of({"tolerations": yaml.safe_load(tolerations)})
    assert admits(shape, {}, (taint,)) is taken


def test_a_node_with_room_fits_and_a_full_one_does_not() -> None:
    assert count_fitting_pods(GPU, room(node())) > 0
    assert count_fitting_pods(GPU, room(node(used=GPU))) == 0
    assert count_fitting_pods(pod(gpus=2), room(node())) == 0


def test_a_node_without_a_resource_fits_no_pod_that_requests_it() -> None:
    assert (
        count_fitting_pods(
            GPU, room(node(allocatable={"cpu": 4000, "memory": 10**15, "pods": 110_000}))
        )
        == 0
    )


def test_the_maximum_pods_of_a_node_count() -> None:
    assert count_fitting_pods(shape_of({}), {"pods": 3000}) == 3


def test_an_overcommitted_node_fits_no_pod() -> None:
    assert (
        count_fitting_pods(
            GPU, {"cpu": -1000, "memory": 10**15, "nvidia.com/gpu": 1000, "pods": 1000}
        )
        == 0
    )
