"""The state of an exporter in a test's store, so that two stores can be compared."""

from __future__ import annotations

from dataclasses import replace
from math import isnan
from typing import Any, Final

from adapter.pipeline.catalog.metric import Kind
from adapter.pipeline.devices.history import history
from adapter.pipeline.devices.series import DeviceSeries
from tests.adapter.world import CATALOG, World

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
        {ref: len(its) for ref, its in state.pods.items()},
        dict(world.store.sharing_nodes),
    )


def series_of(series: DeviceSeries) -> Any:
    """What can be read of a device series; how long unreadable samples are kept may differ."""
    history = series.history
    columns = {}
    for index, column in enumerate(history.layout.columns):
        samples = [
            (time, number)
            for time, number in zip(history.times, history.column(index), strict=True)
            if not isnan(number)
        ]
        name = column.field.name
        longest = max(series.window, CATALOG.windows.get(name, 0.0))
        rate = history.value_of(name, Kind.RATE, longest) if name in CATALOG.windows else None
        read = [sample for sample in samples if sample[0] > samples[-1][0] - longest]
        columns[column.name] = read, rate
    return columns, history.latest(), history.newest, replace(series, history=HISTORY)
