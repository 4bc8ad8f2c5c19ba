"""HPAs from their manifests, also from those that are not valid."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import msgspec

from adapter.hpa import quantity
from adapter.hpa.spec import source_key
from adapter.pipeline.cluster.objects import SeenCondition
from adapter.tools.doctor.facts import Hpa, HpaMetric

_OWNER = "scaledobject.keda.sh/name"


def read_hpa(manifest: Mapping[str, Any], origin: str = "") -> Hpa:
    """Read an autoscaling/v2 HPA; raises ValueError if it has no shape of one."""
    meta, spec = _mapping(manifest.get("metadata")), _mapping(manifest.get("spec"))
    status, target = _mapping(manifest.get("status")), _mapping(spec.get("scaleTargetRef"))
    whole = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}
    rows = spec.get("metrics") or []
    if not isinstance(rows, list):
        raise ValueError("spec.metrics is not a list")
    return Hpa(
        namespace=str(meta.get("namespace") or "default"),
        name=str(meta.get("name") or ""),
        kind=str(target.get("kind") or ""),
        target=str(target.get("name") or ""),
        low=1 if spec.get("minReplicas") is None else _count(spec.get("minReplicas")),
        high=_count(spec.get("maxReplicas")),
        metrics=tuple(_metric(row, f"spec.metrics[{i}]") for i, row in enumerate(rows)),
        behavior=_mapping(spec.get("behavior")),
        conditions=tuple(msgspec.convert(status.get("conditions") or [], list[SeenCondition])),
        current=status.get("currentReplicas"),
        desired=status.get("desiredReplicas"),
        owner=str(_mapping(meta.get("labels")).get(_OWNER) or ""),
        manifest={**manifest, **whole},
        origin=origin,
    )


def _metric(row: Any, at: str) -> HpaMetric:
    row = _mapping(row)
    kind = str(row.get("type") or "")
    source = _mapping(row.get(source_key(kind)))
    metric, target = _mapping(source.get("metric")), _mapping(source.get("target"))
    about = _mapping(source.get("describedObject"))
    selector = metric.get("selector")
    return HpaMetric(
        at=at,
        type=kind,
        name=str(metric.get("name") or source.get("name") or ""),
        target_type=str(target.get("type") or ""),
        value=_quantity(target.get("value")),
        average=_quantity(target.get("averageValue")),
        selector=_mapping(selector) if selector else None,
        described=(str(about.get("kind") or ""), str(about.get("name") or "")),
    )


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
