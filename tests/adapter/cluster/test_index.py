"""The pod index: every way of finding pods, and what a change does to it."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.cluster.index import PodIndex
from adapter.cluster.pod import Owner, Pod, PodRef
from adapter.cluster.workload import plural
from apiservice.kube.reflector import EventType
from apiservice.labels.selector import Selector, parse
from apiservice.provider import GroupResource
from apiservice.runtime.bytecache import ByteCache
from apiservice.runtime.steps import at_once
from tests.adapter.cluster.conftest import MakePod
from tests.examples import bounded

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
    for _ in index.replacing(later):
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
    work = index.selecting("default", parse("app=x"))
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
    index.apply(EventType.MODIFIED, replace(make_pod("a", labels={"app": "x"}), ready=False))
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
        ("Deployment", "deployments"),
        ("Ingress", "ingresses"),
        ("NetworkPolicy", "networkpolicies"),
        ("RayService", "rayservices"),
    ],
)
def test_kinds_become_resources_as_the_api_machinery_guesses(kind: str, expected: str) -> None:
    assert plural(kind) == expected


_Change = tuple[str, tuple[dict[str, str], Owner | None] | None]

LABELS = st.dictionaries(st.sampled_from(("app", "tier")), st.sampled_from(("x", "y")))
OWNERS = st.sampled_from((Owner("apps/v1", "StatefulSet", "s"), Owner("batch/v1", "Job", "j")))
MADE = st.tuples(LABELS, st.none() | OWNERS)
CHANGES: st.SearchStrategy[list[Change]] = st.lists(
    st.tuples(st.sampled_from("abcde"), st.none() | MADE), max_size=30
)


@bounded(100)
@given(changes=CHANGES)
def test_a_selection_is_what_comparing_every_pod_gives(
    make_pod: MakePod, changes: list[Change]
) -> None:
    """After any changes of labels and owners, and deletions (None)."""
    index = PodIndex()
    known: dict[str, Pod] = {}
    for name, made in changes:
        if made is None:
            index.apply(EventType.DELETED, make_pod(name))
            known.pop(name, None)
            continue
        labels, owner = made
        known[name] = make_pod(name, labels=labels, owner=owner)
        index.apply(EventType.MODIFIED, known[name])
    for text, _ in SELECTIONS:
        selector = parse(text)
        expected = [name for name in sorted(known) if selector.matches(known[name].labels)]
        assert names(index.select("default", selector)) == expected
    jobs = sorted(name for name, pod in known.items() if pod.owner and pod.owner.kind == "Job")
    assert names(index.owned_by("default", GroupResource("jobs", "batch"), "j")) == jobs
