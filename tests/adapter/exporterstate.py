"""The state of an exporter in a test's store, so that two stores can be compared."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from adapter.pipeline.devices.history import history
from adapter.pipeline.devices.series import DeviceSeries
from tests.adapter.world import World

HISTORY: Final = history({}, 30.0, 300.0)
"""An empty one."""


def state_of(world: World, origin: str) -> Any:
    """What the store keeps of an exporter, and its rejects, as values that can be compared."""
    state = world.store._exporters.get(origin)
    rejects = world.store.rejects
    counted = {key: repr(seen) for key, seen in rejects.recent.items()}
    if state is None:
        return dict(rejects.totals), counted
    return (
        dict(rejects.totals),
        counted,
        [(key, series_of(series)) for key, series in state.all_series.items()],
        *(state.received, state.pod, dict(state.reported), state.scale, state.idle._models),
        dict(state.disowned),
        sorted({repr((belief.key, belief.aside)) for belief in state.beliefs.values()}),
        {ref: len(its) for ref, its in state.pods.items()},
        dict(world.store.sharing_nodes),
    )


def series_of(series: DeviceSeries) -> Any:
    history = series.history
    columns = [column.name for column in history.layout.columns]
    kept = columns, list(history.times), repr(list(history.values))
    return kept, replace(series, history=HISTORY)
