"""Placement of pods in a pool: free room first, then booting nodes, then new ones."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from operator import add

import pytest

from adapter.nodepool.model.shape import Shape, key
from adapter.nodepool.plan.packing import Lot, Placement, PoolRoom, fits_empty_node, pack
from tests.adapter.nodepool.planning import GPU, NODE, node, pod, pool

BIG = node("example", gpus=8)
TWO = pod(gpus=2)
EIGHT = pod(gpus=8, cpu="20")


def test_free_room_is_taken_before_new_nodes() -> None:
    space = PoolRoom(pool(), [node("a"), node("b", used=GPU)])
    assert space.put(GPU, 3) == Placement(ready=1, later=2, nodes=2, left=0, on=("a",))


def test_placing_pods_one_by_one_equals_placing_them_together() -> None:
    nodes = [node("a", GPU, gpus=4), node("b"), node("c", gpus=2, ready=False)]
    space, other = (PoolRoom(pool(high=4), nodes) for _ in range(2))
    for shape, pods in ((TWO, 2), (GPU, 4), (TWO, 2), (GPU, 1)):
        one_by_one = [other.put(shape, 1) for _ in range(pods)]
        added = Placement(*(reduce(add, column) for column in zip(*one_by_one, strict=True)))
        assert space.put(shape, pods) == added._replace(on=tuple(dict.fromkeys(added.on)))


def test_a_booting_node_is_room_for_later() -> None:
    bare = {name: amount for name, amount in NODE.items() if name != "nvidia.com/gpu"}
    space = PoolRoom(pool(high=1), [node("a", ready=False, allocatable=bare)])
    assert space.put(GPU, 2) == Placement(ready=0, later=1, nodes=0, left=1)


def test_ready_nodes_are_filled_before_booting_nodes_in_any_order() -> None:
    seen = [node("a", ready=False), node("b")]
    for nodes in (seen, seen[::-1]):
        assert PoolRoom(pool(), nodes).put(GPU, 1) == Placement(1, 0, 0, 0, on=("b",))


def test_the_maximum_nodes_of_a_pool_apply() -> None:
    space = PoolRoom(pool(high=3), [node("a", used=GPU), node("b", used=GPU)])
    assert space.put(GPU, 5) == Placement(ready=0, later=1, nodes=1, left=4)


def test_the_resource_limits_of_a_pool_apply() -> None:
    space = PoolRoom(pool(limits={"nvidia.com/gpu": 4000}), [node("a", used=GPU)])
    assert space.put(GPU, 9) == Placement(ready=0, later=3, nodes=3, left=6)


def test_a_booting_node_counts_towards_the_limits() -> None:
    space = PoolRoom(
        pool(limits={"nvidia.com/gpu": 2000}), [node("a", ready=False, allocatable={"cpu": 4000})]
    )
    assert space.put(GPU, 3) == Placement(ready=0, later=2, nodes=1, left=1)


def test_a_node_that_the_autoscaler_has_requested_is_room_for_later() -> None:
    """It counts towards the maximum, and exists minutes later."""
    space = PoolRoom(pool(high=3, coming=1), [node("a", used=GPU)])
    assert space.put(GPU, 3) == Placement(ready=0, later=2, nodes=1, left=1)


def test_several_pods_share_a_large_node() -> None:
    space = PoolRoom(pool(example=BIG), [])
    assert space.put(TWO, 5) == Placement(ready=0, later=5, nodes=2, left=0)


def test_the_size_of_the_first_node_of_a_pool_is_unknown() -> None:
    assert PoolRoom(pool(example=None), []).put(GPU, 2) == Placement(0, 0, 0, 2)


def test_larger_shapes_are_packed_first() -> None:
    lots = [Lot(GPU, 4), Lot(EIGHT, 1), Lot(TWO, 2)]
    placed = pack(lots, PoolRoom(pool(example=BIG, high=2), []))
    assert list(placed) == [key(EIGHT), key(TWO), key(GPU)]
    placed = pack(lots, PoolRoom(pool(example=BIG), []))
    assert sum(placement.nodes for placement in placed.values()) == 2


def test_lots_of_one_shape_are_added_up() -> None:
    assert pack([Lot(GPU, 1), Lot(GPU, 2)], PoolRoom(pool(), [])) == {
        key(GPU): Placement(0, 3, 3, 0)
    }


def test_pods_of_another_shape_leave_less_room() -> None:
    space = PoolRoom(pool(example=BIG, high=1), [])
    space.put(TWO, 3)
    assert space.put(GPU, 9).left == 7


EVER = {
    "it fits": (GPU, True),
    "it never fits": (TWO, False),
    "the labels are others": (pod(pool="other"), False),
    "the taint is not tolerated": (replace(GPU, tolerations=()), False),
}


@pytest.mark.parametrize(("shape", "takes"), EVER.values(), ids=EVER)
def test_whether_a_shape_can_ever_fit(shape: Shape, takes: bool) -> None:
    assert fits_empty_node(shape, node()) is takes


def test_an_example_in_use_represents_an_empty_node() -> None:
    assert fits_empty_node(GPU, node(used=GPU))


def test_a_new_node_has_another_name_than_the_example() -> None:
    affinity = (
        '{"nodeSelectorTerms":[{"matchExpressions":'
        '[{"key":"kubernetes.io/hostname","operator":"In","values":["n"]}]}]}'
    )
    pinned = replace(GPU, node_affinity=affinity)
    example = node("n", labels={"pool": "gpu", "kubernetes.io/hostname": "n"})
    assert not fits_empty_node(pinned, example)
    assert PoolRoom(pool(example=example), [example]).put(pinned, 2) == Placement(
        1, 0, 0, 1, ("n",)
    )
