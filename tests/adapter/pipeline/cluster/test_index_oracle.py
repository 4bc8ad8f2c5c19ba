"""The index answers like a plain dictionary of pods, after any history."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.pipeline.cluster import namespacepods
from adapter.pipeline.cluster.index import PodIndex
from adapter.pipeline.cluster.pod import Owner, Pod, PodRef
from adapter.pipeline.cluster.workload import workloads
from apiservice.kube.reflector import EventType
from apiservice.labels.selector import parse
from apiservice.provider import GroupResource
from apiservice.runtime.steps import at_once
from tests.adapter.world import make_pod

NUMBER = "statefulset.kubernetes.io/pod-name"
_NAMES = [f"p{number}" for number in range(6)]
_SPACES = ["ns1", "ns2"]
_LABELS = st.dictionaries(
    st.sampled_from(["a", "b", NUMBER, "pod-template-hash"]), st.sampled_from("xyz"), max_size=3
)
_OWNERS = st.sampled_from(
    [None, Owner("apps/v1", "StatefulSet", "s"), Owner("apps/v1", "ReplicaSet", "d-x")]
)
_PODS = st.builds(
    make_pod,
    st.sampled_from(_NAMES),
    namespace=st.sampled_from(_SPACES),
    node=st.sampled_from(["", "n1", "n2"]),
    ip=st.sampled_from(["", "10.0.0.1", "10.0.0.2"]),
    uid=st.sampled_from(["u", "00000000-0000-4000-8000-000000000001"]),
    phase=st.sampled_from(["Pending", "Running", "Failed"]),
    ready=st.booleans(),
    labels=_LABELS,
    owner=_OWNERS,
    gpus=st.sampled_from([{}, {"nvidia.com/gpu": 1}]),
)
_SELECTORS = [
    *(
        "",
        "a=x",
        "a=x,b=y",
        "a in (x,y)",
        "a!=x",
        "a notin (x,y)",
        "a",
        "!a",
        "b=z,!a",
        "made-up=1",
    ),
    *(f"{NUMBER}=x", f"b=y,{NUMBER} in (x,y)", "a==x,a!=y", "pod-template-hash=x"),
]
_WORKLOADS = [("statefulsets", "s"), ("deployments", "d"), ("replicasets", "d-x"), ("jobs", "j")]
_OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), _PODS),
        st.tuples(st.just("delete"), _PODS),
        st.tuples(st.just("list"), st.lists(_PODS, max_size=8)),
        st.tuples(st.just("select"), st.sampled_from(_SELECTORS)),
        st.tuples(st.just("own"), st.sampled_from(_WORKLOADS)),
        st.tuples(st.just("find"), st.sampled_from(["10.0.0.1", "10.0.0.2"])),
    ),
    max_size=40,
)


class Oracle:
    """Pods in a dictionary."""

    def __init__(self) -> None:
        self.pods: dict[PodRef, Pod] = {}

    def where(self, holds: Callable[[Pod], bool]) -> list[Pod]:
        """Return the pods for which ``holds`` is true, by namespace and name."""
        return [pod for _, pod in sorted(self.pods.items()) if holds(pod)]

    def owned(self, namespace: str, resource: GroupResource, name: str) -> list[Pod]:
        """Return the pods of a workload."""
        return self.where(
            lambda pod: pod.namespace == namespace and (resource, name) in workloads(pod)
        )


def _change(index: PodIndex, oracle: Oracle, what: str, thing: Any) -> None:
    if what == "put":
        index.apply(EventType.MODIFIED, thing)
        oracle.pods[thing.ref] = thing
    elif what == "delete":
        index.apply(EventType.DELETED, thing)
        oracle.pods.pop(thing.ref, None)
    elif what == "list":
        index.replace([index.intern(pod) for pod in thing])
        oracle.pods = {pod.ref: pod for pod in thing}


def _resource(kind: str) -> GroupResource:
    return GroupResource(kind, "batch" if kind == "jobs" else "apps")


def _check(index: PodIndex, oracle: Oracle, what: str, thing: Any) -> None:
    """Ask both the question of an operation."""
    if what == "select":
        selector = parse(thing)
        matching = oracle.where(lambda pod: selector.matches(pod.labels))
        assert list(index.select(None, selector)) == matching
        for space in _SPACES:
            own = [pod for pod in matching if pod.namespace == space]
            assert list(index.select(space, selector)) == own
    elif what == "own":
        kind, name = thing
        for space in _SPACES:
            owned = list(index.owned_by(space, _resource(kind), name))
            assert owned == oracle.owned(space, _resource(kind), name)
    elif what == "find":
        at = sorted(index.at_address(thing), key=lambda pod: pod.ref)
        assert at == oracle.where(lambda pod: pod.ip == thing and not pod.finished)


@given(_OPERATIONS)
def test_the_index_equals_a_dictionary_after_any_history(
    operations: list[tuple[str, Any]],
) -> None:
    """Postings and addresses are made at the time somebody first asks for them."""
    index, oracle = PodIndex(), Oracle()
    for what, thing in operations:
        _change(index, oracle, what, thing)
        _check(index, oracle, what, thing)
        assert len(index) == len(oracle.pods)
    for text in _SELECTORS:
        _check(index, oracle, "select", text)
    for workload in _WORKLOADS:
        _check(index, oracle, "own", workload)
    for node in ("n1", "n2"):
        bound = [pod for pod in oracle.where(lambda pod: bool(pod.node)) if pod.node == node]
        assert index.on_node(node) == bound
    for ref, pod in oracle.pods.items():
        assert index.get(*ref) == pod
    for space in _SPACES:
        kinds = {_resource(kind) for kind, _ in _WORKLOADS}
        named = {(kind, name) for kind in kinds for name in at_once(index.workloads(space, kind))}
        of_pods = [workloads(pod) for pod in oracle.pods.values() if pod.namespace == space]
        assert named == {(w.resource, w.name) for its in of_pods for w in its}
    index.replace([])
    assert (index.namespaces(), index._nodes) == ([], {})


@pytest.fixture(autouse=True)
def _many_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make postings of a few pods in several steps."""
    monkeypatch.setattr(namespacepods, "_POSTED", 1)


@given(st.lists(_PODS, max_size=12), _OPERATIONS, st.integers(0, 4))
def test_postings_that_are_made_while_pods_change_lead_to_all_pods(
    pods: list[Pod], operations: list[tuple[str, Any]], given_up: int
) -> None:
    """Several requests make the same postings in turns, and some are given up."""
    index, oracle = PodIndex(), Oracle()
    _change(index, oracle, "list", pods)
    asked = [
        index.select_in_steps(space, parse(text))
        for space in _SPACES
        for text in ("a=x", "a=y,b=x")
    ]
    asked += [index.owned_by_in_steps(space, _resource("deployments"), "d") for space in _SPACES]
    for number, (what, thing) in enumerate(operations):
        for work in asked:
            next(work, None)
        _change(index, oracle, what, thing)
        if number == given_up:
            for work in asked[::2]:
                work.close()
    for text in _SELECTORS:
        _check(index, oracle, "select", text)
    for workload in _WORKLOADS:
        _check(index, oracle, "own", workload)


def test_a_group_that_goes_or_comes_while_its_posting_is_made_is_posted_as_it_is() -> None:
    index = PodIndex()
    one, two, three = (make_pod(name, labels={"a": name}) for name in ("x", "y", "z"))
    index.replace([one, two])
    work = index.select_in_steps(one.namespace, parse("a in (x,y,z)"))
    next(work)
    index.apply(EventType.DELETED, two)
    index.apply(EventType.ADDED, three)
    assert list(at_once(work)) == [one, three]
    assert list(index.select(one.namespace, parse("a=z"))) == [three]
    assert index.select(one.namespace, parse("a=y")) == ()


def test_a_label_that_goes_and_comes_while_its_posting_is_made_leads_to_its_pods() -> None:
    index = PodIndex()
    owner = Owner("apps/v1", "StatefulSet", "s")
    index.replace([make_pod("x"), make_pod("y", labels={"a": "b"}, owner=owner)])
    selecting = index.select_in_steps("ml", parse("a=b"))
    owning = index.owned_by_in_steps("ml", _resource("statefulsets"), "s")
    for work in (selecting, owning):
        next(work)
    pod = make_pod("x", labels={"a": "b"}, owner=owner)
    index.apply(EventType.DELETED, make_pod("y", labels={"a": "b"}, owner=owner))
    index.apply(EventType.MODIFIED, pod)
    assert list(at_once(selecting)) == [pod]
    assert list(at_once(owning)) == [pod]
    assert list(at_once(index.workloads("ml", _resource("statefulsets")))) == ["s"]
    assert list(index.select("ml", parse("a=b"))) == [pod]


def test_a_namespace_that_goes_and_comes_while_somebody_asks_has_its_new_pods() -> None:
    index = PodIndex()
    index.replace([make_pod("x", labels={"a": "b"}), make_pod("y")])
    selecting = index.select_in_steps("ml", parse("a=b"))
    next(selecting)
    pod = make_pod("z", labels={"a": "b"})
    index.replace([pod])
    at_once(selecting)
    assert list(index.select("ml", parse("a=b"))) == [pod]
