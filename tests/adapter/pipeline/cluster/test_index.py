"""The pod index: every way of finding pods, and what a change does to it."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.pipeline.cluster.index import PodIndex
from adapter.pipeline.cluster.pod import Owner, Pod, PodFields, PodRef
from adapter.pipeline.cluster.workload import plural
from apiservice.kube.reflector import EventType
from apiservice.labels.selector import Selector, parse
from apiservice.provider import GroupResource
from apiservice.runtime.bytecache import ByteCache
from apiservice.runtime.steps import at_once
from tests.adapter.pipeline.cluster.conftest import MakePod

DEPLOYMENT = GroupResource("deployments", "apps")


def names(pods: Sequence[Pod]) -> list[str]:
    return [pod.ref.name for pod in pods]


def index_of(*pods: Pod) -> PodIndex:
    index = PodIndex()
    index.replace(pods)
    return index


def test_an_index_is_in_sync_once_all_pods_were_read(make_pod: MakePod) -> None:
    index = PodIndex()
    index.apply(EventType.ADDED, make_pod("a"))
    before = index.synced
    index.replace([make_pod("a")])
    assert (before, index.synced, len(index)) == (False, True, 1)


def test_readers_see_every_pod_that_stays_while_all_are_replaced(make_pod: MakePod) -> None:
    pods = [make_pod(f"p{number:03}", labels={"app": "x"}) for number in range(300)]
    index = index_of(*pods)
    version = index.version
    later = [*pods[:-1], make_pod("new", labels={"app": "x"})]
    kept = set(names(pods[:-1]))
    looks = 0
    for _ in index.replace_in_steps(later):
        looks += 1
        assert kept <= set(names(index.select("default", parse("app=x"))))
    assert looks >= 10
    assert names(index.select("default", parse("app=x"))) == sorted(names(later))
    assert index.version == version + 2, "one pod went, and one came"


def test_a_selection_in_steps_is_as_of_its_first_and_is_not_remembered_after_a_change(
    make_pod: MakePod,
) -> None:
    pods = [make_pod(f"p{number:03}", labels={"app": "x"}) for number in range(300)]
    index = index_of(*pods)
    work = index.select_in_steps("default", parse("app=x"))
    next(work)
    index.apply(EventType.DELETED, pods[0])
    index.apply(EventType.DELETED, pods[-1])
    assert names(at_once(work)) == names(pods)
    assert names(index.select("default", parse("app=x"))) == names(pods[1:-1])


SELECTIONS = [
    ("app=x", ["a", "b"]),
    ("app=x,tier=web", ["a"]),
    ("app in (x,y)", ["a", "b", "c"]),
    ("app notin (x)", ["c", "d"]),
    ("app!=x", ["c", "d"]),
    ("app", ["a", "b", "c"]),
    ("!app", ["d"]),
    ("app=x,app=y", []),
    ("app=none", []),
    ("statefulset.kubernetes.io/pod-name=d", ["d"]),
    ("", ["a", "b", "c", "d"]),
]


@pytest.mark.parametrize(("text", "expected"), SELECTIONS)
def test_a_selector_finds_its_pods_in_order_of_name(
    make_pod: MakePod, text: str, expected: list[str]
) -> None:
    index = index_of(
        make_pod("d", labels={"statefulset.kubernetes.io/pod-name": "d"}),
        make_pod("b", labels={"app": "x"}),
        make_pod("a", labels={"app": "x", "tier": "web"}),
        make_pod("c", labels={"app": "y"}),
        make_pod("e", "elsewhere", labels={"app": "x", "tier": "web"}),
    )
    assert names(index.select("default", parse(text))) == expected


def test_every_namespace_is_searched_when_none_is_named(make_pod: MakePod) -> None:
    index = index_of(make_pod("a", "two"), make_pod("b", "one"))
    assert names(index.select(None, parse(""))) == ["b", "a"]
    assert index.namespaces() == ["one", "two"]
    assert index.select("three", parse("")) == ()


def test_a_changed_label_moves_the_pod(make_pod: MakePod) -> None:
    index = index_of(make_pod("a", labels={"app": "x"}))
    selector = parse("app=x")
    assert names(index.select("default", selector)) == ["a"]
    index.apply(EventType.MODIFIED, make_pod("a", labels={"app": "y"}))
    assert index.select("default", selector) == ()
    assert names(index.select("default", parse("app=y"))) == ["a"]


def test_a_remembered_selection_shows_the_pod_as_it_is_now(make_pod: MakePod) -> None:
    index = index_of(make_pod("a", labels={"app": "x"}))
    index.select("default", parse("app=x"))
    index.apply(EventType.MODIFIED, make_pod("a", labels={"app": "x"}).replace(ready=False))
    assert not index.select("default", parse("app=x"))[0].ready


def test_a_deleted_pod_is_found_by_nothing(make_pod: MakePod) -> None:
    pod = make_pod("a", labels={"app": "x"}, owner=Owner("apps/v1", "StatefulSet", "s"))
    index = index_of(pod)
    index.apply(EventType.DELETED, pod)
    assert index.get("default", "a") is None
    assert index.select("default", parse("app=x")) == ()
    assert index.owned_by("default", GroupResource("statefulsets", "apps"), "s") == ()
    assert index.on_node("n1") == []
    assert index.namespaces() == []


def test_a_replacement_removes_what_it_does_not_name(make_pod: MakePod) -> None:
    index = index_of(make_pod("a"), make_pod("b"), make_pod("c", "other"))
    index.replace([make_pod("b")])
    assert names(index.select(None, parse(""))) == ["b"]


def test_pods_are_found_by_node(make_pod: MakePod) -> None:
    index = index_of(make_pod("b"), make_pod("a"), make_pod("p", node=""))
    assert names(index.on_node("n1")) == ["a", "b"]
    index.apply(EventType.MODIFIED, make_pod("p", node="n2"))
    assert names(index.on_node("n2")) == ["p"]
    assert index.on_node("") == []


def test_the_version_changes_with_every_change_and_with_nothing_else(make_pod: MakePod) -> None:
    index = index_of(make_pod("a"))
    before = index.version
    index.apply(EventType.MODIFIED, make_pod("a"))
    assert index.version == before
    index.apply(EventType.MODIFIED, make_pod("a", ip="10.0.0.2"))
    assert index.version > before


def test_listeners_get_the_pod_before_and_after(make_pod: MakePod) -> None:
    index = index_of(make_pod("a"))
    events: list[tuple[str, str]] = []
    stop = index.listen(
        lambda old, new: events.append((old.ip if old else "", new.ip if new else ""))
    )
    index.apply(EventType.MODIFIED, make_pod("a", ip="10.0.0.2"))
    index.apply(EventType.ADDED, make_pod("b", ip="10.0.0.3"))
    index.apply(EventType.DELETED, make_pod("a"))
    stop()
    index.apply(EventType.DELETED, make_pod("b"))
    assert events == [("10.0.0.1", "10.0.0.2"), ("", "10.0.0.3"), ("10.0.0.2", "")]


OWNERS = [
    pytest.param(
        Owner("apps/v1", "ReplicaSet", "inf-7c9"),
        {"pod-template-hash": "7c9"},
        DEPLOYMENT,
        "inf",
        id="Deployment through its ReplicaSet",
    ),
    pytest.param(
        Owner("apps/v1", "ReplicaSet", "inf-7c9"),
        {"pod-template-hash": "7c9"},
        GroupResource("replicasets", "apps"),
        "inf-7c9",
        id="ReplicaSet",
    ),
    pytest.param(
        Owner("apps/v1", "ReplicaSet", "inf-7c9"),
        {"rollouts-pod-template-hash": "7c9"},
        GroupResource("rollouts", "argoproj.io"),
        "inf",
        id="Argo Rollout",
    ),
    pytest.param(
        Owner("apps/v1", "StatefulSet", "db"), {}, GroupResource("statefulsets", "apps"), "db",
        id="StatefulSet",
    ),
    pytest.param(
        Owner("apps/v1", "DaemonSet", "d"), {}, GroupResource("daemonsets", "apps"), "d",
        id="DaemonSet",
    ),
    pytest.param(Owner("batch/v1", "Job", "j"), {}, GroupResource("jobs", "batch"), "j", id="Job"),
    pytest.param(
        Owner("batch/v1", "Job", "nightly-29012345"), {}, GroupResource("cronjobs", "batch"),
        "nightly", id="CronJob through its Job",
    ),
    pytest.param(
        Owner("ray.io/v1", "RayCluster", "r"), {}, GroupResource("rayclusters", "ray.io"), "r",
        id="a custom kind",
    ),
    pytest.param(
        Owner("v1", "ReplicationController", "rc"), {},
        GroupResource("replicationcontrollers", ""), "rc", id="core group",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("owner", "labels", "resource", "name"), OWNERS)
def test_a_workload_finds_its_pods(
    make_pod: MakePod, owner: Owner, labels: dict[str, str], resource: GroupResource, name: str
) -> None:
    index = index_of(make_pod("p", owner=owner, labels=labels), make_pod("bare"))
    assert names(index.owned_by("default", resource, name)) == ["p"]
    assert index.owned_by("other", resource, name) == ()
    assert index.owned_by("default", resource, name + "x") == ()


def test_a_standalone_replica_set_is_not_a_deployment(make_pod: MakePod) -> None:
    index = index_of(make_pod("p", owner=Owner("apps/v1", "ReplicaSet", "web-7c9")))
    assert index.owned_by("default", DEPLOYMENT, "web") == ()


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("Gateway", "gateways"),
        ("Mesh", "meshes"),
        ("Sandbox", "sandboxes"),
        ("Endpoints", "endpoints"),
        ("Deployment", "deployments"),
        ("Ingress", "ingresses"),
        ("NetworkPolicy", "networkpolicies"),
        ("RayService", "rayservices"),
    ],
)
def test_kinds_become_resources(kind: str, expected: str) -> None:
    assert plural(kind) == expected


_LABELS = st.dictionaries(st.sampled_from("abc"), st.sampled_from("xyz"), max_size=3)
_OPERATION = st.tuples(
    st.sampled_from(["put", "delete", "replace"]),
    st.sampled_from(["p0", "p1", "p2", "p3"]),
    st.sampled_from(["ns1", "ns2"]),
    _LABELS,
    st.sampled_from(["", "n1", "n2"]),
    st.sampled_from([None, Owner("apps/v1", "StatefulSet", "s")]),
)
_SELECTORS = ["", "a=x", "a=x,b=y", "a in (x,y)", "a!=x", "a notin (x,y)", "a", "!a", "c=z,!a"]


@given(st.lists(_OPERATION, max_size=30))
def test_the_index_equals_a_plain_list_after_any_history(
    operations: list[tuple[str, str, str, dict[str, str], str, Owner | None]],
) -> None:
    index = PodIndex()
    plain: dict[PodRef, Pod] = {}
    for what, name, namespace, labels, node, owner in operations:
        fields = PodFields(
            PodRef(namespace, name), "u", node, "", "Running", ready=True, deleting=False,
            labels=labels, annotations={}, owner=owner, containers=(), gpus={}, claims=False,
            ports=(),
        )  # fmt: skip
        pod = Pod.of(fields)
        if what == "put":
            plain[pod.ref] = pod
            index.apply(EventType.MODIFIED, pod)
        elif what == "delete":
            plain.pop(pod.ref, None)
            index.apply(EventType.DELETED, pod)
        else:
            plain = {ref: p for ref, p in plain.items() if ref.name != name} | {pod.ref: pod}
            index.replace(list(plain.values()))
        for text in _SELECTORS:
            selector = parse(text)
            expected = sorted(ref for ref, p in plain.items() if selector.matches(p.labels))
            assert [p.ref for p in index.select(None, selector)] == expected
        for place in ("n1", "n2"):
            bound = sorted(ref for ref, p in plain.items() if p.node == place)
            assert [p.ref for p in index.on_node(place)] == bound
        for space in ("ns1", "ns2"):
            owned = sorted(r for r, p in plain.items() if p.owner and r.namespace == space)
            pods = index.owned_by(space, GroupResource("statefulsets", "apps"), "s")
            assert [p.ref for p in pods] == owned


def test_answers_about_a_node_end_with_a_change_of_its_gpu_pods(make_pod: MakePod) -> None:
    index = PodIndex()
    pod, other = make_pod("a").replace(gpus={"nvidia.com/gpu": 1}), make_pod("b")
    seen = [index.changes("n1")]
    for step in ([pod], [pod, other], [pod.replace(ready=False), other], [other]):
        index.replace(step)
        seen.append(index.changes("n1"))
    assert seen[1] == seen[2], "a pod without a GPU changes nothing"
    assert len(set(seen)) == 4


def test_a_node_that_is_gone_is_not_remembered_and_comes_back_as_another(
    make_pod: MakePod,
) -> None:
    index = PodIndex()
    pod = make_pod("a").replace(gpus={"nvidia.com/gpu": 1})
    index.apply(EventType.ADDED, pod)
    before = index.changes("n1")
    index.apply(EventType.DELETED, pod)
    assert index.changes("n1") == 0
    index.apply(EventType.ADDED, pod)
    assert index.changes("n1") > before


def test_selections_of_all_namespaces_are_remembered_within_a_bound_in_bytes(
    make_pod: MakePod, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adapter.pipeline.cluster.selections._MEMO_BYTES", 1 << 18)
    monkeypatch.setattr("apiservice.labels.selector._cache", ByteCache[str, Selector](1 << 18))
    pods = [
        make_pod(f"p{number}", namespace=f"ns{number % 4}", labels={"app": "x"})
        for number in range(200)
    ]
    index = index_of(*pods)
    tracemalloc.start()
    try:
        for number in range(800):  # 2 MiB with their selectors, were all kept
            assert len(index.select(f"ns{number % 4}", parse(f"app=x,k!={number}"))) == 50
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert held < 900 << 10, "256 KiB of each, and what the sizes do not count"


def test_what_is_remembered_of_a_namespace_ends_with_its_pods(make_pod: MakePod) -> None:
    index = index_of(make_pod("a", namespace="gone", labels={"app": "x"}))
    index.select("gone", parse("app=x"))
    assert index.remembered_bytes > 0

    index.replace([])

    assert index.remembered_bytes == 0


def test_pods_with_numbers_of_their_own_share_the_postings(make_pod: MakePod) -> None:
    """Labels that number the pods of a StatefulSet do not split their group, and select one pod."""
    number = "statefulset.kubernetes.io/pod-name"
    owner = Owner("apps/v1", "StatefulSet", "db")
    pods = [make_pod(name, labels={"app": "db", number: name}, owner=owner) for name in "abc"]
    index = index_of(*pods)
    space = index._namespaces["default"]
    assert len(space._groups) == 1
    assert names(index.select("default", parse("app=db"))) == ["a", "b", "c"]
    assert names(index.select("default", parse(f"app=db,{number}=b"))) == ["b"]
    assert names(index.select("default", parse(f"app=db,{number} notin (b)"))) == ["a", "c"]
    assert names(index.owned_by("default", GroupResource("statefulsets", "apps"), "db")) == [*"abc"]
    for pod in pods:
        index.apply(EventType.DELETED, pod)
    assert (space._groups, space.postings) == ({}, {})
