"""HPAs from their manifests, also from those that are not valid."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

import msgspec

from adapter.hpa import quantity
from adapter.hpa.manifestfields import show_value
from adapter.hpa.spec import source_key
from adapter.pipeline.cluster.objects import SeenCondition
from adapter.tools.doctor.facts import Hpa, HpaMetric

_OWNER = "scaledobject.keda.sh/name"
_PERCENT: Final = re.compile(r"(\d{1,9}(?:\.\d{1,9})?) ?%", re.ASCII)


def read_hpa(manifest: Mapping[str, Any], origin: str = "") -> Hpa:
    """Read an autoscaling/v2 HPA; raises ValueError if it has no shape of one."""
    meta, spec = _mapping(manifest.get("metadata")), _mapping(manifest.get("spec"))
    status, target = _mapping(manifest.get("status")), _mapping(spec.get("scaleTargetRef"))
    whole = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}
    rows = spec.get("metrics") or []
    if not isinstance(rows, list):
        raise ValueError("spec.metrics is not a list")
    behavior = _mapping(spec.get("behavior"))
    valued = set(_valued(status.get("currentMetrics")))
    return Hpa(
        namespace=str(meta.get("namespace") or "default"),
        name=str(meta.get("name") or ""),
        kind=str(target.get("kind") or ""),
        target=str(target.get("name") or ""),
        low=1 if spec.get("minReplicas") is None else _count(spec.get("minReplicas")),
        high=_count(spec.get("maxReplicas")),
        metrics=tuple(_metric(row, f"spec.metrics[{i}]", valued) for i, row in enumerate(rows)),
        behavior={way: _mapping(behavior.get(way)) for way in ("scaleUp", "scaleDown")},
        conditions=tuple(msgspec.convert(status.get("conditions") or [], list[SeenCondition])),
        current=_count(status.get("currentReplicas")),
        desired=_count(status.get("desiredReplicas")),
        owner=str(_mapping(meta.get("labels")).get(_OWNER) or ""),
        version=str(target.get("apiVersion") or ""),
        manifest={**manifest, **whole, "metadata": meta, "spec": spec, "status": status},
        origin=origin,
    )


_FURTHER: Final = "autoscaling.alpha.kubernetes.io/metrics"
"""The annotation of an HPA of autoscaling/v1 with its other metrics than CPU
(kubernetes.io, "HorizontalPodAutoscaler v1")."""
_TARGET_CPU: Final = "targetCPUUtilizationPercentage"


def from_v1(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return an HPA of autoscaling/v1 as one of autoscaling/v2.

    Raises:
        ValueError: it has metrics in an annotation, whose fields differ, or fields that only
            autoscaling/v2 has: the API server drops those, and scales on the CPU.
    """
    if _FURTHER in _mapping(_mapping(manifest.get("metadata")).get("annotations")):
        raise ValueError(f"annotation {_FURTHER} is not checked: use autoscaling/v2")
    spec = dict(_mapping(manifest.get("spec")))
    for field in ("metrics", "behavior"):
        if spec.get(field) is not None:
            raise ValueError(f"spec.{field} does not exist in autoscaling/v1: write autoscaling/v2")
    percent = spec.pop(_TARGET_CPU, None)
    if percent is not None:
        if not isinstance(percent, int) or isinstance(percent, bool):
            raise ValueError(f"spec.{_TARGET_CPU} is {show_value(percent)}: give a whole number")
        target = {"type": "Utilization", "averageUtilization": percent}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    return {**manifest, "spec": spec}


def _valued(rows: Any) -> Iterator[tuple[str, str]]:
    """Yield type and name of the metrics of which a status has a value."""
    for row in map(_mapping, rows if isinstance(rows, list) else ()):
        kind = str(row.get("type") or "")
        source = _mapping(row.get(source_key(kind)))
        if source.get("current"):
            yield kind, _name(source)


def _name(source: Mapping[str, Any]) -> str:
    """Return the name of a metric, or of a resource."""
    return str(_mapping(source.get("metric")).get("name") or source.get("name") or "")


def _metric(row: Any, at: str, valued: set[tuple[str, str]]) -> HpaMetric:
    row = _mapping(row)
    kind = str(row.get("type") or "")
    source = _mapping(row.get(source_key(kind)))
    metric, target = _mapping(source.get("metric")), _mapping(source.get("target"))
    about = _mapping(source.get("describedObject"))
    selector, name = metric.get("selector"), _name(source)
    odd = _find_odd_number(target)
    return HpaMetric(
        at=at,
        type=kind,
        name=name,
        target_type=str(target.get("type") or ""),
        value=_quantity(target.get("value")),
        average=_quantity(target.get("averageValue")),
        selector=_mapping(selector) if selector else None,
        described=(str(about.get("kind") or ""), str(about.get("name") or "")),
        percent=_percent(target, odd),
        odd=odd,
        has_value=(kind, name) in valued,
    )


def _find_odd_number(target: Mapping[str, Any]) -> str:
    """Return the first number of a target that is not a quantity, as a text; empty without one."""
    values = (target.get(key) for key in ("averageValue", "value"))
    return next((str(value) for value in values if value and _quantity(value) is None), "")


def _percent(target: Mapping[str, Any], odd: str) -> Decimal | None:
    if (match := _PERCENT.fullmatch(odd)) is not None:
        return Decimal(match[1])
    share = _count(target.get("averageUtilization"))
    return None if share is None else Decimal(share)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _quantity(value: Any) -> Decimal | None:
    if value is None:
        return None
    try:
        return quantity.parse(value)
    except ValueError:
        return None
