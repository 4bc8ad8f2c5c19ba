"""Whether a metric describes the pods that an autoscaler scales, or others.

The sum over the pods that are scaled grows with each new replica. The sum over other pods, such as
the queue of a gateway, does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from adapter.pipeline.attribution.serieslabels import POD_LABELS, selects_value
from adapter.pipeline.catalog.serverkind import GATEWAY_RUNNING, GATEWAY_WAITING
from adapter.pipeline.catalog.serverkinds import GATEWAY_FIELDS
from adapter.pipeline.catalog.targetfit import AGGREGATE
from apiservice.labels.requirement import predicate
from apiservice.labels.selector import Selector

_OF_GATEWAYS: Final = frozenset(
    (
        GATEWAY_WAITING,
        GATEWAY_RUNNING,
        *(name for field in GATEWAY_FIELDS for name, *_ in field.names),
    )
)
_PODS_UNKNOWN: Final = ("Service", "Pod", "")
"""Kinds of objects whose name does not show which pods they stand for."""


def object_is_own(metric: str, described: tuple[str, str], target: tuple[str, str]) -> bool | None:
    """Return whether an Object metric describes the scaled pods; None if it is not known.

    Args:
        metric: its name.
        described: kind and name of the object.
        target: kind and name of what is scaled.
    """
    kind, _ = described
    if described == target or kind == "Namespace":
        return True
    return _guess(metric) if kind in _PODS_UNKNOWN else False


def selector_is_own(
    metric: str,
    selector: Selector | None,
    target: tuple[str, str],
    labels: Mapping[str, str] | None,
) -> bool | None:
    """Return whether a selector over series selects the scaled pods; None if it is not known.

    Args:
        metric: its name.
        selector: of an external metric, or of a trigger; None if it is not valid.
        target: kind and name of what is scaled.
        labels: of the scaled pods; None if they are not known.
    """
    if selector is None:
        return _guess(metric)
    unknown = False
    for requirement in selector.requirements:
        key = requirement.key
        if key == AGGREGATE or selects_value(key, metric):
            continue
        of_pod: Mapping[str, str] | None = labels
        if key in POD_LABELS:
            workload_labels = dict(zip(("workload_kind", "workload"), target, strict=True))
            of_pod = workload_labels if key in workload_labels else None
        if of_pod is None:
            unknown = True
        elif not predicate(requirement)(of_pod):
            return False
    return _guess(metric) if unknown else True


def _guess(metric: str) -> bool | None:
    """A gateway is seldom what its own queue scales."""
    return False if metric in _OF_GATEWAYS else None
