"""A pod keeps every field in little memory."""

from __future__ import annotations

import gc
import tracemalloc
from dataclasses import fields

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.pipeline.cluster.index import PodIndex
from adapter.pipeline.cluster.manifest import PodDecoder
from adapter.pipeline.cluster.pod import ContainerPort, Owner, Pod, PodFields, PodRef
from apiservice.kube.reflector import EventType
from apiservice.labels.selector import parse
from apiservice.provider import GroupResource

_TEXT = st.text(max_size=12)
_TIME = st.floats(0, 4e9)
_UIDS = st.one_of(st.uuids().map(str), st.uuids().map(lambda uid: str(uid).upper()), _TEXT)
_ADDRESSES = st.one_of(
    st.ip_addresses(v=4).map(str),
    st.ip_addresses(v=6).map(str),
    st.ip_addresses(v=6).map(lambda address: address.exploded),
    st.sampled_from(["", "10.0.0.01", "::ffff:10.0.0.1", "fe80::1%eth0", "10.1", "a\0b"]),
)
_MAPPING = st.dictionaries(_TEXT, _TEXT, max_size=2)
_COUNTS = st.dictionaries(_TEXT, st.integers(0, 9), max_size=2)
FIELDS = st.builds(
    PodFields,
    ref=st.builds(PodRef, _TEXT, _TEXT),
    uid=_UIDS,
    node=_TEXT,
    ip=_ADDRESSES,
    phase=st.sampled_from(["", "Pending", "Running", "Failed"]),
    ready=st.booleans(),
    deleting=st.booleans(),
    labels=_MAPPING,
    annotations=_MAPPING,
    owner=st.none() | st.builds(Owner, _TEXT, _TEXT, _TEXT),
    containers=st.lists(_TEXT, max_size=2).map(tuple),
    gpus=_COUNTS,
    claims=st.booleans(),
    ports=st.lists(st.builds(ContainerPort, _TEXT, st.integers(1, 9)), max_size=2).map(tuple),
    born=_TIME,
    ready_since=_TIME,
    unready_since=_TIME,
    trouble=_TEXT,
    host_paths=st.booleans(),
    placeholder=st.booleans(),
    extended=_COUNTS,
    gpu_groups=st.lists(_TEXT, max_size=2).map(tuple),
)


@given(FIELDS)
def test_a_pod_gives_back_every_field(given_fields: PodFields) -> None:
    pod = Pod.of(given_fields)
    assert pod.fields() == given_fields
    assert (pod.ref, pod.namespace, pod.name) == (given_fields.ref, *given_fields.ref)


@given(FIELDS, FIELDS, st.sampled_from([field.name for field in fields(PodFields)]))
def test_pods_are_equal_exactly_if_all_fields_are(
    one: PodFields, other: PodFields, name: str
) -> None:
    pod = Pod.of(one)
    changed = pod.replace(**{name: getattr(other, name)})
    assert Pod.of(one) == pod
    assert (changed == pod) == (changed.fields() == one)


@pytest.mark.parametrize("address", ["", "10.0.0.1", "fd00::7"])
def test_what_the_api_server_writes_is_packed(address: str) -> None:
    pod = _listed(0).replace(ip=address, ready_since=1_800_000_000.5)
    assert isinstance(pod.own, bytes)
    assert len(pod.own) <= 56
    assert not gc.is_tracked(pod)


def test_a_large_cluster_takes_less_than_450_bytes_a_pod_and_a_relist_hardly_more() -> None:
    number = 10_000
    decoder, index = PodDecoder(), PodIndex()
    raw = [_manifest(pod) for pod in range(number)]
    gc.collect()
    tracemalloc.start()
    try:
        index.replace([decoder.decode(pod) for pod in raw])
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        index.replace([index.intern(decoder.decode(pod)) for pod in raw])
        after, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 450 * number
    assert after < 1.02 * held
    assert peak < 1.35 * held


def test_memory_does_not_grow_while_pods_are_replaced_by_others() -> None:
    number = 1000
    decoder, index = PodDecoder(), PodIndex()

    def generation(serial: int) -> int:
        """Replace each pod by one with another name, node and address, while somebody asks."""
        for pod in range(number):
            old, new = (pod + number * turn for turn in (serial - 1, serial))
            index.apply(EventType.ADDED, decoder.decode(_manifest(new, of=pod)))
            index.apply(EventType.DELETED, decoder.decode(_manifest(old, of=pod)))
        assert len(index.select("team-0", parse("app=web-00007"))) == 20
        index.owned_by("team-0", GroupResource("deployments", "apps"), "web-00007")
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        sizes = [generation(serial) for serial in range(1, 9)]
    finally:
        tracemalloc.stop()
    assert sizes[7] < 1.02 * sizes[3]


def test_a_changed_pod_does_not_pass_for_the_one_that_is_known() -> None:
    index = PodIndex()
    index.replace([_listed(0)])
    known = index.get("team-0", _listed(0).name)
    assert index.intern(_listed(0)) is known
    changed = _listed(0).replace(ready=False)
    assert index.intern(changed) is changed
    assert index.intern(_listed(1)) is not known


def _listed(number: int) -> Pod:
    return PodDecoder().decode(_manifest(number))


def _manifest(number: int, of: int | None = None) -> bytes:
    """The JSON of one of twenty pods of a Deployment, which ``of`` chooses."""
    of = number if of is None else of
    app = f"web-{of // 20:05d}"
    owner = {"kind": "ReplicaSet", "apiVersion": "apps/v1", "name": f"{app}-7d9f"}
    pod = {
        "metadata": {
            "name": f"{app}-7d9f-{number:06d}",
            "namespace": f"team-{of // 1000}",
            "uid": f"00000000-0000-4000-8000-{number:012d}",
            "creationTimestamp": f"2026-11-20T07:{number // 60 % 60:02d}:{number % 60:02d}Z",
            "labels": {"app": app, "pod-template-hash": "7d9f", "tier": "web"},
            "ownerReferences": [owner | {"controller": True}],
        },
        "spec": {"nodeName": f"node-{number // 30}", "containers": [{"name": "main"}]},
        "status": {
            "phase": "Running",
            "podIP": f"10.0.{number >> 8}.{number & 255}",
            "conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-20T08:00:00Z"}
            ],
        },
    }
    return msgspec.json.encode(pod)
