"""Metrics that say what another metric will not exceed while a new replica starts.

An HPA lists such a metric beside the measured one, and takes the larger proposal. There is one for
each neutral metric that work is divided into (:mod:`.divisible`), has more of under load, and is
the same whether pods or devices are added up or averaged. A queue is none of them: an expected
queue that orders replicas would not form, and what never forms is no longer expected.

The values come from what was learned of the workload (:mod:`adapter.server.ahead`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from adapter.pipeline.catalog.divisible import divisible
from adapter.pipeline.catalog.metric import Combine, LoadDirection, Metric

SUFFIX: Final = "_expected"
_LINEAR: Final = frozenset((Combine.MEAN, Combine.SUM))


def expected_metrics(neutral: Iterable[Metric], metrics: Mapping[str, Metric]) -> dict[str, Metric]:
    """Return API name -> metric, for each neutral metric that a load can be forecast of.

    Args:
        metrics: all measured metrics.
    """
    return {
        metric.name + SUFFIX: replace(metric, name=metric.name + SUFFIX, expects=metric.name)
        for metric in neutral
        if metric.load is LoadDirection.RISES
        and {metric.over_devices, metric.over_pods} <= _LINEAR
        and divisible(metric.name, metrics) is not None
    }
