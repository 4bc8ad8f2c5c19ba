"""A tenant writes objects that say they are headroom of the node-pool controller."""

from __future__ import annotations

from tests.adapter.nodepool.run.test_controller import BAD, World


async def test_forged_headroom_objects_stop_no_round_and_use_no_budget() -> None:
    """Every wrong form at once, for five rounds, with a budget that 2³¹ replicas would end."""
    world = World(apply=True, limits={"gpu_hours_per_day": 1000})
    world.cluster.placeholders.replace([*BAD.values()])
    for seconds in (60, 75, 90, 105, 120):
        decided = await world.round(seconds)
        assert decided is not None
        team = [row.replicas for row in decided.orders if row.namespace == "team"]
        assert team == [2]
    assert 0 <= sum(world.controller.ledger.gpu_hours.values()) <= 8 * 60 / 3600
    assert all(row.failure == "" for row in world.controller.state.outcomes)
