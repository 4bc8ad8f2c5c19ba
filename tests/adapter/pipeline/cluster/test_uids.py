"""Pods by uid."""

from __future__ import annotations

from adapter.pipeline.cluster.index import PodIndex
from adapter.pipeline.cluster.uids import PodUids
from apiservice.kube.reflector import EventType
from tests.adapter.world import make_pod


def test_pods_are_found_by_uid_as_they_come_change_and_go() -> None:
    index = PodIndex()
    index.replace([make_pod("a", uid="1"), make_pod("b", uid="")])
    uids = PodUids(index)
    assert [uids.get("1") is not None, uids.get("")] == [True, None]
    index.apply(EventType.ADDED, make_pod("c", uid="3"))
    index.apply(EventType.MODIFIED, make_pod("a", uid="1", ready=False))
    pod = uids.get("1")
    assert pod is not None
    assert not pod.ready
    index.apply(EventType.MODIFIED, make_pod("a", uid="2"))
    assert [uids.get("1"), uids.get("2") is not None] == [None, True]
    index.apply(EventType.DELETED, make_pod("c", uid="3"))
    assert uids.get("3") is None


def test_a_closed_index_hears_of_nothing_more() -> None:
    index = PodIndex()
    uids = PodUids(index)
    uids.close()
    index.apply(EventType.ADDED, make_pod("a", uid="1"))
    assert uids.get("1") is None
