"""Headroom objects are accepted only as this controller wrote them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.nodepool.act.methods import capacitybuffer, placeholder
from adapter.nodepool.model import names
from adapter.nodepool.model.capacity import ProvisioningMethod
from adapter.nodepool.model.shape import Shape, key
from adapter.nodepool.seen import headroom
from adapter.nodepool.seen.headroom import HeadroomObject, read_shape, shape_text
from adapter.nodepool.seen.podspec import shape_of
from tests.adapter.nodepool.manifests import GPU, HOME, SPEC, T0, found, managed, raw
from tests.adapter.nodepool.orders import LIFELINE, PROBE_JOB, SHAPE, order

Object = dict[str, Any]


def written(shape: Shape = SHAPE) -> Object:
    """A Deployment of placeholders as this controller applies it, before its managedFields."""
    return placeholder.manifest(order(shape=shape), LIFELINE, "pause", "low")


def test_objects_written_by_this_controller_are_accepted() -> None:
    buffer = capacitybuffer.manifests(order(), "v1beta1", LIFELINE, "pause", T0)[1]
    for method, obj in (
        (ProvisioningMethod.PLACEHOLDER, written()),
        (ProvisioningMethod.BUFFER, buffer),
    ):
        row = found(method, obj)
        assert (row.problem, row.shape, row.replicas, row.pods) == ("", SHAPE, 2, 2)


def test_the_probe_is_accepted_and_has_no_shape() -> None:
    obj = capacitybuffer.probe("ns", "v1beta1", PROBE_JOB, "pause")[1]
    assert (
        found(ProvisioningMethod.BUFFER, obj).problem,
        found(ProvisioningMethod.BUFFER, obj).shape,
    ) == ("", None)
    obj["spec"]["replicas"] = 3
    assert found(ProvisioningMethod.BUFFER, obj).problem == "a probe must have 0 replicas"


def test_a_probe_that_ends_with_the_headroom_is_written_again() -> None:
    """Earlier versions gave it the lifeline as its owner."""
    obj = capacitybuffer.probe("ns", "v1beta1", LIFELINE, "pause")[1]
    problem = found(ProvisioningMethod.BUFFER, obj).problem
    assert problem == "its only owner must be Job gpu-headroom-probe"


def test_a_status_written_by_another_manager_is_accepted() -> None:
    obj = written()
    status = {"manager": "kube-controller-manager", "operation": "Update", "subresource": "status"}
    obj["metadata"]["managedFields"] = [*managed(obj), status | {"fieldsV1": {"f:status": {}}}]
    obj["metadata"]["uid"] = "uid"
    assert headroom.decoder(ProvisioningMethod.PLACEHOLDER, HOME)(raw(obj)).problem == ""


def label_only(obj: Object) -> Object:
    return {"metadata": {"name": "mine", "namespace": "team", "labels": obj["metadata"]["labels"]}}


FORGED: dict[str, tuple[Any, str]] = {
    "the label alone": (label_only, "its only owner must be Job gpu-headroom-lifeline"),
    "kubectl apply of a copy": (
        lambda obj: (
            obj | {"metadata": obj["metadata"] | {"managedFields": managed(obj, "kubectl")}}
        ),
        "did not apply metadata.annotations",
    ),
    "kubectl scale": (
        lambda obj: (
            obj
            | {
                "spec": {"replicas": 2**31 - 1},
                "metadata": obj["metadata"] | {"managedFields": managed(obj | {"spec": {}})},
            }
        ),
        "did not apply spec.replicas",
    ),
    "an update under our name": (
        lambda obj: (
            obj
            | {"metadata": obj["metadata"] | {"managedFields": managed(obj, operation="Update")}}
        ),
        "did not apply metadata.annotations",
    ),
}


@pytest.mark.parametrize(("forge", "words"), FORGED.values(), ids=FORGED)
def test_objects_of_other_writers_are_named_and_ignored(forge: Any, words: str) -> None:
    obj = written()
    obj["metadata"] |= {"uid": "uid", "managedFields": managed(obj)}
    row = headroom.decoder(ProvisioningMethod.PLACEHOLDER, HOME)(raw(forge(obj)))
    assert words in row.problem
    assert (row.shape, row.replicas, row.conditions) == (None, 0, {})


def shaped(**fields: Any) -> str:
    return shape_text(replace(SHAPE, **fields))


WRONG: dict[str, tuple[str, str]] = {
    "no shape": ("", "Input data was truncated"),
    "a list": ("[]", "Expected `object`"),
    "no requests": (shaped(requests=()), "no pod has exactly this shape"),
    "a request of 0": (shaped(requests=((GPU, 0), ("pods", 1000))), "no pod has exactly"),
    "a negative request": (shaped(requests=((GPU, -1000), ("pods", 1000))), "is negative"),
    "no GPU": (shaped(requests=(("cpu", 1000), ("pods", 1000))), "its pods hold no GPU"),
    "affinity that is not JSON": (shaped(node_affinity="{"), "JSONDecodeError"),
    "affinity without a key": (
        shaped(node_affinity='{"nodeSelectorTerms":[{"matchExpressions":[{}]}]}'),
        "KeyError",
    ),
    "negative claim_devices": (shaped(claims=("a",), claim_devices=-8), "claim_devices is -8"),
    "claim_devices without claims": (shaped(claim_devices=2**31), "claim_devices is 2147483648"),
    "tolerations in another order": (
        shaped(tolerations=(*SHAPE.tolerations, *SHAPE.tolerations)),
        "no pod has exactly this shape",
    ),
}


@pytest.mark.parametrize(("text", "words"), WRONG.values(), ids=WRONG)
def test_an_object_with_an_impossible_shape_is_ignored(text: str, words: str) -> None:
    """Even with our field manager and owner: anyone can write both."""
    obj = written()
    obj["metadata"]["annotations"][names.SHAPE] = text
    row = found(ProvisioningMethod.PLACEHOLDER, obj)
    assert words in row.problem
    assert row.shape is None


def test_an_object_whose_name_does_not_match_its_shape_is_ignored() -> None:
    obj = written()
    obj["metadata"]["name"] = "gpu-headroom-0123456789"
    assert (
        found(ProvisioningMethod.PLACEHOLDER, obj).problem
        == "its name or label does not match its shape and namespace"
    )


def test_an_object_whose_namespace_does_not_match_its_name_is_ignored() -> None:
    """The headroom of one workload does not count for another."""
    obj = written()
    obj["metadata"]["labels"][names.SERVES] = "other"
    assert (
        "does not match its shape and namespace"
        in found(ProvisioningMethod.PLACEHOLDER, obj).problem
    )


CLAIMS = replace(SHAPE, claims=("one-gpu",), claim_devices=1)


@pytest.mark.parametrize(
    ("shape", "workload", "there", "words"),
    [
        (SHAPE, "team", "gpu-metrics", ""),
        (SHAPE, "team", "team", "headroom for workloads of team must be in gpu-metrics"),
        (SHAPE, "dra", "dra", "headroom for workloads of dra must be in gpu-metrics"),
        (CLAIMS, "dra", "dra", ""),
        (CLAIMS, "dra", "gpu-metrics", "headroom for workloads of dra must be in dra"),
        (CLAIMS, "team", "team", "nodepool.claim_namespaces does not list namespace team"),
        (CLAIMS, "dra", "team", "headroom for workloads of dra must be in dra"),
    ],
)
def test_headroom_is_accepted_only_in_its_namespace(
    shape: Shape, workload: str, there: str, words: str
) -> None:
    made = order(shape=shape, namespace=workload)
    obj = placeholder.manifest(made, replace(LIFELINE, namespace=there), "pause", "low")
    row = found(ProvisioningMethod.PLACEHOLDER, obj)
    assert words in row.problem
    assert (row.namespace, row.serves) == (there, "" if words else workload)
    assert bool(words) is (row.shape is None)


@pytest.mark.parametrize("pods", ["-1", "many"])
def test_an_object_with_an_invalid_number_of_pods_is_ignored(pods: str) -> None:
    obj = written()
    obj["metadata"]["annotations"][names.PODS] = pods
    assert found(ProvisioningMethod.PLACEHOLDER, obj).problem


amounts = st.integers(0, 1 << 50).map(str) | st.sampled_from(["100m", "1.5", "8Gi", "3e3", "500k"])
resources = st.fixed_dictionaries(
    {
        "requests": st.dictionaries(
            st.sampled_from(["cpu", "memory", "ephemeral-storage", "hugepages-2Mi"]), amounts
        ),
        "limits": st.fixed_dictionaries({GPU: st.integers(1, 16).map(str)}),
    }
)
words = st.text(max_size=8)
expressions = st.lists(
    st.builds(
        lambda key, values: {"key": key, "operator": "In", "values": values},
        words,
        st.lists(words, max_size=3),
    ),
    max_size=2,
)
specs = st.builds(
    lambda containers, inits, selector, tolerations, terms, claims, runtime, overhead: {
        "containers": [{"resources": amounts} for amounts in containers],
        "initContainers": [{"resources": amounts, "restartPolicy": "Always"} for amounts in inits],
        "nodeSelector": selector,
        "tolerations": tolerations,
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}
            }
        },
        "resourceClaims": [{"resourceClaimTemplateName": claim} for claim in claims],
        "runtimeClassName": runtime,
        "overhead": overhead,
    },
    st.lists(resources, min_size=1, max_size=2),
    st.lists(resources, max_size=1),
    st.dictionaries(words, words, max_size=2),
    st.lists(
        st.builds(
            lambda key, operator, value, effect, seconds: {
                "key": key,
                "operator": operator,
                "value": value,
                "effect": effect,
                "tolerationSeconds": seconds,
            },
            words | st.just("node.kubernetes.io/not-ready"),
            st.sampled_from(["Equal", "Exists", ""]),
            words,
            words,
            st.none() | st.just(300),
        ),
        max_size=3,
    ),
    st.lists(
        st.builds(lambda a, b: {"matchExpressions": a, "matchFields": b}, expressions, expressions),
        max_size=2,
    ),
    st.lists(words.filter(bool), max_size=2),
    words,
    st.dictionaries(st.sampled_from(["cpu", "memory"]), amounts, max_size=1),
)


@given(specs, st.integers(-(1 << 31), 1 << 31), st.none() | st.integers(1, 8))
def test_the_shape_of_any_pod_survives_its_annotation(
    spec: Object, priority: int, devices: int | None
) -> None:
    """The controller must accept its own objects, to count and to delete them."""
    shape = shape_of(spec, priority=priority)
    if shape.claims:
        shape = replace(shape, claim_devices=devices)
    assert read_shape(shape_text(shape)) == shape


def test_placeholders_with_only_defaults_are_accepted() -> None:
    shape = shape_of(SPEC)
    row: HeadroomObject = found(ProvisioningMethod.PLACEHOLDER, written(shape))
    assert row.name == names.headroom_name(names.headroom_key("team", key(shape)))
    assert row.shape == shape
