"""The metrics that the adapter serves with these settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from adapter.config.settings import Settings
from adapter.pipeline.catalog import built_in
from adapter.pipeline.catalog.metric import Combine, LoadDirection, Scope, Unit

CATALOG: Final = built_in()


class KnownMetric(NamedTuple):
    """A metric that the adapter serves."""

    unit: Unit
    scope: Scope | None
    """None for a user's own metric that does not say it."""
    load: LoadDirection = LoadDirection.UNKNOWN
    over_pods: Combine = Combine.MEAN
    high: float | None = None
    """The highest value of one pod; None without one."""


def metrics(settings: Settings) -> Mapping[str, KnownMetric]:
    """Return the metrics that the adapter serves, by name."""
    own_metrics = {
        name: KnownMetric(
            row.unit,
            row.scope,
            over_pods=row.combined[1],
            high=row.limit if row.high is None else row.high,
        )
        for row in settings.metrics
        for name in (row.name, row.name.lower())
    }
    return _BUILT_IN | own_metrics


_BUILT_IN: Final = {
    name: KnownMetric(metric.unit, metric.scope, metric.load, metric.over_pods, metric.high)
    for name, metric in CATALOG.metrics.items()
}
