"""The metric that an unknown name probably means."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from adapter.pipeline.catalog.table import built_in
from apiservice.runtime.nearest import nearest

_CATALOG: Final = built_in()
_NEUTRAL: Final = frozenset(metric.name for metric in _CATALOG.neutral)
_PRINCIPAL: Final = frozenset(_CATALOG.principal)
_CUTOFF: Final = 0.7
"""The least likeness. Below it, doctor would take metrics of other programs for ours."""
_CUTOFF_OF_BEGIN: Final = 0.6
"""The least likeness of the first words: ``http_requests_per_second`` counts other requests."""
_SHORTEST: Final = 6
"""Characters of a name that counts as the beginning of another one: ``gpu_util``."""


_ON_GKE: Final = re.compile(r"[a-z0-9.-]+\|([^|]+)\|[a-z]+")
"""A series of managed Prometheus, as GKE's metrics adapter names it:
``prometheus.googleapis.com|tgi_queue_size|gauge``."""


def nearest_metric(name: str, served: Iterable[str]) -> str:
    """Return the served metric whose name resembles a name most; empty if none does.

    Neutral metrics and a user's own ones go before the fields of exporters, whose other spellings
    are never returned.

    Args:
        name: the unknown name.
        served: the metrics that exist.
    """
    if (match := _ON_GKE.fullmatch(name)) is not None:
        name = match[1]
    names = sorted(served)
    preferred = [metric for metric in names if metric in _NEUTRAL or metric not in _CATALOG.metrics]
    wanted = _fold_name(name)
    if len(wanted) >= _SHORTEST and (
        longer := [metric for metric in preferred if metric.startswith(wanted)]
    ):
        return min(longer, key=len)
    for some in (preferred, [metric for metric in names if metric in _PRINCIPAL]):
        folded = {_fold_name(metric): metric for metric in some}
        for close in nearest(wanted, folded, 1, cutoff=_CUTOFF):
            if nearest(_begin(wanted), [_begin(close)], 1, cutoff=_CUTOFF_OF_BEGIN):
                return folded[close]
    return ""


def _begin(name: str) -> str:
    return name.partition("_")[0]


def _fold_name(name: str) -> str:
    return name.lower().replace("-", "_").replace("utilisation", "utilization")
