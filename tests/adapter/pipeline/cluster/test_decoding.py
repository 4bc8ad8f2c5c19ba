"""An object is the same from its text and from its JSON: the full way is the short one's oracle."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.inspect import (
    AnyType,
    BoolType,
    CollectionType,
    DictType,
    FloatType,
    IntType,
    NoneType,
    StrType,
    StructType,
    Type,
    UnionType,
    type_info,
)

from adapter.pipeline.cluster import objects, podobjects, workloadobjects
from adapter.pipeline.cluster.manifest import PodManifest
from adapter.pipeline.cluster.objects import KubeObject, decode, read
from adapter.pipeline.cluster.podobjects import decode_pod, read_pod
from adapter.pipeline.cluster.workloadobjects import SeenWorkload, decode_workload, read_workload

WORDS = st.sampled_from(
    ("", "a", "1", "1.5", "true", "null", "Always", "2026-11-27T01:00:00Z", "é")
)
NUMBERS = st.integers(-3, 3) | st.sampled_from((1 << 40, 1 << 70, 1.0, 2.5, 1e300))
ANY: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | NUMBERS | WORDS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(WORDS, inner, max_size=2),
    max_leaves=6,
)
OURS = {"kind", "writers", "origin", "setsReplicas"}
"""Fields of a workload that its text does not have."""


SCALARS: dict[type[Type], st.SearchStrategy[Any]] = {
    NoneType: st.none(),
    StrType: WORDS,
    BoolType: st.booleans(),
    IntType: NUMBERS,
    FloatType: NUMBERS,
    AnyType: ANY,
}


def wire(kind: Type) -> st.SearchStrategy[Any]:
    """What a server may send for a type: usually of it, and sometimes null or of another."""
    return st.integers(0, 99).flatmap(
        lambda chance: st.none() if chance == 50 else ANY if chance == 99 else _fitting(kind)
    )


def _fitting(kind: Type) -> st.SearchStrategy[Any]:
    match kind:
        case StructType():
            fields = [row for row in kind.fields if row.encode_name not in OURS]
            needed = {row.encode_name: wire(row.type) for row in fields if row.required}
            rest = {row.encode_name: wire(row.type) for row in fields if not row.required}
            return st.fixed_dictionaries(needed, optional=rest | {"unknown": ANY})
        case DictType():
            return st.dictionaries(WORDS, wire(kind.value_type), max_size=2)
        case CollectionType():
            return st.lists(wire(kind.item_type), max_size=2)
        case UnionType():
            return st.one_of(*map(_fitting, kind.types))
    return SCALARS[type(kind)]


def outcome(look: Callable[[], object]) -> object:
    """What a reader returns, or the text of its refusal."""
    try:
        return look()
    except (msgspec.MsgspecError, TypeError, ValueError, AttributeError, OverflowError) as error:
        return str(error)


def same(content: Any, short: Callable[[bytes], object], full: Callable[[Any], object]) -> None:
    text = msgspec.json.encode(content)
    assert outcome(lambda: short(text)) == outcome(lambda: full(msgspec.json.decode(text)))


KINDS = [
    kind
    for module in (objects, podobjects, workloadobjects)
    for _, kind in inspect.getmembers(module, inspect.isclass)
    if issubclass(kind, KubeObject)
    and kind.__module__ == module.__name__
    and not kind.__name__.startswith("_")
]


def test_every_public_object_is_compared() -> None:
    assert {"SeenNode", "Lease", "SeenEvent", "SeenWorkload", "ClusterPolicy"} <= {
        kind.__name__ for kind in KINDS
    }


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@given(data=st.data())
def test_an_object_is_the_same_from_its_text_and_from_its_json(
    kind: type[KubeObject], data: st.DataObject
) -> None:
    content = data.draw(wire(type_info(kind)))
    same(content, lambda text: decode(text, kind), lambda whole: read(whole, kind))


MANAGED: st.SearchStrategy[Any] = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "manager": WORDS,
            "time": WORDS,
            "fieldsV1": st.none()
            | st.fixed_dictionaries(
                {},
                optional={
                    "f:spec": st.dictionaries(
                        st.sampled_from(("f:replicas", "f:template")), st.just({})
                    )
                },
            ),
        },
    ),
    max_size=2,
)


@given(wire(type_info(SeenWorkload)), st.none() | MANAGED)
def test_a_workload_is_the_same_with_its_writers(content: Any, managed: Any) -> None:
    if isinstance(content, dict) and isinstance(content.get("metadata"), dict):
        content["metadata"]["managedFields"] = managed
    same(
        content,
        lambda text: decode_workload("Deployment", text),
        lambda whole: read_workload("Deployment", whole),
    )


def merged(one: Any, other: Any) -> Any:
    """The fields of both readers of a pod."""
    if not isinstance(one, dict) or not isinstance(other, dict):
        return one
    return {
        key: merged(one[key], other[key]) if key in one and key in other else both[key]
        for both in ({**other, **one},)
        for key in both
    }


@given(wire(type_info(podobjects._PodObject)), wire(type_info(PodManifest)))
def test_a_pod_is_the_same_from_its_text_and_from_its_json(one: Any, other: Any) -> None:
    content = merged(one, other)
    same(content, decode_pod, read_pod)


def test_pods_of_one_template_share_its_spec() -> None:
    def pod(number: int) -> bytes:
        token = {"name": f"kube-api-access-{number}", "projected": {"sources": []}}
        mount = {"name": token["name"], "mountPath": "/var/run/secrets"}
        container = {"name": "c", "image": "i", "volumeMounts": [mount]}
        return msgspec.json.encode(
            {
                "metadata": {"name": f"p-{number}"},
                "spec": {"nodeName": f"n-{number}", "containers": [container], "volumes": [token]},
                "status": {"phase": "Running", "startTime": f"2026-11-27T01:00:0{number}Z"},
            }
        )

    one, other = decode_pod(pod(1)), decode_pod(pod(2))
    assert one.spec is other.spec
    assert (one.status.start_time, other.status.start_time) == (
        "2026-11-27T01:00:01Z",
        "2026-11-27T01:00:02Z",
    )
