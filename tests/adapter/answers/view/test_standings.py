"""What GPU pods need is counted as they come and go, and is what a look at all pods finds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from adapter.answers.view.standings import NodeStandings
from adapter.pipeline.cluster.index import PodIndex
from adapter.pipeline.cluster.nodes import Nodes
from adapter.pipeline.cluster.nodestarts import StartNeeds
from adapter.pipeline.cluster.pod import Owner, Pod
from apiservice.kube.reflector import EventType
from tests.adapter.world import make_pod


def _pod(name: str, daemon: bool, phase: str, cpu: int, *, gpu: bool, claims: bool) -> Pod:
    owner = Owner("apps/v1", "DaemonSet" if daemon else "ReplicaSet", "x")
    gpus = {"nvidia.com/gpu": 1} if gpu else {}
    made = make_pod(name, gpus=gpus, phase=phase, owner=owner, claims=claims)
    return made.replace(needs=StartNeeds((), cpu))


PODS = st.builds(
    _pod,
    st.sampled_from("abcd"),
    st.booleans(),
    st.sampled_from(["Running", "Succeeded"]),
    st.integers(0, 2),
    gpu=st.booleans(),
    claims=st.booleans(),
)
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("put"), PODS),
        st.tuples(st.just("delete"), PODS),
        st.tuples(st.just("list"), st.lists(PODS, max_size=4)),
    ),
    max_size=20,
)


@given(st.lists(PODS, max_size=4), CHANGES)
def test_counted_needs_are_those_of_all_pods(
    pods: list[Pod], changes: list[tuple[str, object]]
) -> None:
    index, nodes = PodIndex(), Nodes()
    index.replace(pods)
    standings = NodeStandings(index, nodes)
    for what, thing in changes:
        if isinstance(thing, list):
            index.replace(thing)
        elif isinstance(thing, Pod):
            kind = EventType.DELETED if what == "delete" else EventType.MODIFIED
            index.apply(kind, thing)
        fresh = NodeStandings(index, nodes)
        assert standings._needing == fresh._needing
        assert standings._claiming == fresh._claiming
