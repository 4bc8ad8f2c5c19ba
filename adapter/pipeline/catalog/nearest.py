"""The metric that an unknown name means, and those whose names are like it.

Only a metric of the same quantity, in a unit that fits the target, is meant. The likeness of
letters says nothing of either: a queue's length is not the seconds in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Final, NamedTuple

from adapter.figures import join_names
from adapter.pipeline.catalog.quantitynames import (
    Quantity,
    correct_words,
    quantity_of,
    words_of,
)
from adapter.pipeline.catalog.table import built_in
from adapter.pipeline.catalog.targetfit import can_be_target
from apiservice.runtime.nearest import nearest

_CATALOG: Final = built_in()
_NEUTRAL: Final = frozenset(metric.name for metric in _CATALOG.neutral)
_PRINCIPAL: Final = frozenset(_CATALOG.principal)
_CUTOFF: Final = 0.7
"""The least likeness. Below it, doctor would take metrics of other programs for ours."""
_CUTOFF_OF_BEGIN: Final = 0.7
"""The least likeness of the first words: ``http_requests_per_second`` counts other requests, and
``cpu_utilization`` is of no GPU."""
_SHORTEST: Final = 6
"""Characters of a name that counts as the beginning of another one: ``gpu_util``."""
_SHOWN: Final = 3
_LOOKED_AT: Final = 10
"""Names with most letters in common, of which those are shown that measure most alike."""
_OF_DCGM: Final = "dcgm"
_OF_ALL: Final = ("gpu", "inference")
"""How names begin that are of no exporter."""

_ON_GKE: Final = re.compile(r"[a-z0-9.-]+\|([^|]+)\|[a-z]+")
"""A series of managed Prometheus, as GKE's metrics adapter names it:
``prometheus.googleapis.com|tgi_queue_size|gauge``."""


class NearMetrics(NamedTuple):
    """What an unknown name may mean."""

    meant: str
    """The metric of the same quantity, in a unit that fits the target; empty if none is."""
    alike: Sequence[str]
    """Metrics with a name like it, and their units, if none is meant:
    ``inference_queue_seconds_p50 (s)``."""

    @property
    def exist(self) -> bool:
        """Whether any metric is near."""
        return bool(self.meant or self.alike)

    @property
    def question(self) -> str:
        """The metrics in words for a user; empty if none is near."""
        if self.meant:
            return f"did you mean {self.meant}?"
        verb = "is" if len(self.alike) == 1 else "are"
        return f"the nearest {verb} {join_names(self.alike, _SHOWN)}" if self.alike else ""


def nearest_metrics(
    name: str, served: Iterable[str], target: Decimal | float | None = None
) -> NearMetrics:
    """Return the served metric that an unknown name means, or those whose names are like it.

    Neutral metrics and a user's own ones go before the fields of exporters, whose other spellings
    are never returned.

    Args:
        name: the unknown name.
        served: the metrics that exist.
        target: the number with which the metric is compared; None if it is not known.
    """
    if (match := _ON_GKE.fullmatch(name)) is not None:
        name = match[1]
    names = sorted(served)
    preferred = [metric for metric in names if metric in _NEUTRAL or metric not in _CATALOG.metrics]
    of_exporters = [metric for metric in names if metric in _PRINCIPAL and metric not in _NEUTRAL]
    if meant := _same_spelling(name, [*preferred, *of_exporters]):
        return NearMetrics(meant, ())
    same, others = _same_quantity(name, preferred, of_exporters)
    number = None if target is None else Decimal(target)
    fitting = [metric for metric in same if _fits(metric, number)]
    best = [metric for metric in fitting if metric in _NEUTRAL] or fitting
    if len(best) == 1:
        return NearMetrics(best[0], ())
    alike = dict.fromkeys((*same, *others, *_alike(name, preferred, of_exporters)))
    return NearMetrics("", tuple(_with_unit(metric) for metric in list(alike)[:_SHOWN]))


def _same_spelling(name: str, names: Sequence[str]) -> str:
    """Return the name that differs in signs, capitals and misspelt words only; empty if there is
    none."""
    corrected = "".join(correct_words(_fold_name(name), _known_words(tuple(names))))
    spellings = {_squeeze(name), _squeeze(corrected)} - {""}
    return next((metric for metric in names if _squeeze(metric) in spellings), "")


def _squeeze(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", _fold_name(name))


def _same_quantity(
    name: str, preferred: Sequence[str], of_exporters: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Return the metrics that measure what a name says, and those that its words may mean.

    A name of DCGM is one of its fields only: its ``MEM_COPY_UTIL`` is not a share of the memory.
    For another name, an exporter's fields count if the name begins like them.
    """
    vendor = _begin(_fold_name(name))
    known_words = _known_words((*preferred, *of_exporters))
    wanted = quantity_of(name, known_words)
    begun = [] if vendor in _OF_ALL else of_exporters
    candidates = [metric for metric in begun if _begin(_fold_name(metric)) == vendor]
    own = [metric for metric in candidates if wanted.is_same(_quantity_of_metric(metric))]
    others = [metric for metric in preferred if wanted.is_same(_quantity_of_metric(metric))]
    return (own, others) if vendor == _OF_DCGM else ([*others, *own], [])


@lru_cache(16)
def _known_words(names: Sequence[str]) -> frozenset[str]:
    return words_of(names)


@lru_cache(1024)
def _quantity_of_metric(name: str) -> Quantity:
    """Return what a metric measures: scope and unit are those of the catalogue."""
    named, metric = quantity_of(name), _CATALOG.metrics.get(name)
    if metric is None:
        return named
    return named._replace(scope=metric.scope, units=frozenset({metric.unit}))


def _fits(name: str, number: Decimal | None) -> bool:
    """Return whether a number can be the target of a metric, by its unit."""
    metric = _CATALOG.metrics.get(name)
    if metric is None or number is None:
        return True
    return can_be_target(name, metric.unit, metric.high, number)


def _alike(name: str, preferred: Sequence[str], of_exporters: Sequence[str]) -> list[str]:
    """Return the metrics whose names are most alike: those that measure most alike first.

    One of the same quantity with another statistic or unit is alike, regardless of its name.
    """
    wanted = _fold_name(name)
    longer = [metric for metric in preferred if metric.startswith(wanted)]
    alike = sorted(longer, key=len) if len(wanted) >= _SHORTEST else []
    for some in (preferred, of_exporters):
        folded = {_fold_name(metric): metric for metric in some}
        for close in nearest(wanted, folded, _LOOKED_AT, cutoff=_CUTOFF):
            if nearest(_begin(wanted), [_begin(close)], 1, cutoff=_CUTOFF_OF_BEGIN):
                alike.append(folded[close])
    quantity = quantity_of(name, _known_words((*preferred, *of_exporters)))
    if quantity.scope is not None and quantity.words:
        alike += [row for row in preferred if _quantity_of_metric(row)[:2] == quantity[:2]]
    return sorted(alike, key=lambda metric: -_likeness(quantity, _quantity_of_metric(metric)))


def _likeness(wanted: Quantity, other: Quantity) -> float:
    """Return the share of words that both have; less in a unit that the name does not allow."""
    share = len(wanted.words & other.words) / max(1, len(wanted.words | other.words))
    return share / 2 if wanted.units and not wanted.units & other.units else share


def _with_unit(name: str) -> str:
    metric = _CATALOG.metrics.get(name)
    return name if metric is None else f"{name} ({metric.unit})"


def _begin(name: str) -> str:
    return re.split("[_:]", name, maxsplit=1)[0]


def _fold_name(name: str) -> str:
    return name.lower().replace("-", "_").replace("utilisation", "utilization")
