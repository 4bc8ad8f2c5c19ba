"""HorizontalPodAutoscalers with metrics that can be read from the metrics APIs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from adapter.hpa import HpaSpec, ManifestError, MetricKind, from_manifest
from adapter.nodepool.model.names import FLOOR
from adapter.nodepool.seen.meta import NamespacedObject, resource_of
from adapter.pipeline.cluster.table import Table
from adapter.pipeline.cluster.workload import Workload

PATH = "/apis/autoscaling/v2/horizontalpodautoscalers"

_KINDS = frozenset({MetricKind.PODS, MetricKind.OBJECT, MetricKind.EXTERNAL})


class ReadableHpa(NamedTuple):
    """An HPA, with the metrics that can be read here."""

    spec: HpaSpec
    left_out: int
    """Number of metrics of ``metrics.k8s.io`` (CPU, memory), which are not read."""


@dataclass(frozen=True, slots=True)
class HpaInfo(NamespacedObject):
    """An HPA."""

    namespace: str
    name: str
    target: Workload
    kind: str
    """Name of the target for people."""
    readable: ReadableHpa | None
    """None if it has no metric that can be read here."""
    problem: str
    """Why ``readable`` is None, or how to fix the annotation."""
    status: Mapping[str, Any]
    from_zero: bool
    """Whether KEDA manages it. KEDA then scales the target from 0, not the HPA."""
    floor: int | None
    """Minimum headroom pods from the annotation; None without it."""
    version: str = ""
    """``apiVersion`` of the target, as the HPA names it."""


class _ScaleTargetRef(msgspec.Struct, rename="camel"):
    kind: str = ""
    name: str = ""
    api_version: str = ""


HpaTable = Table[tuple[str, str], HpaInfo]


def decode(raw: msgspec.Raw | bytes) -> HpaInfo:
    """Decode an HPA. In a list, objects have no ``apiVersion`` and ``kind``.

    Raises:
        msgspec.DecodeError: the text is not JSON.
        ValueError: the HPA names no target.
    """
    manifest: dict[str, Any] = msgspec.json.decode(raw)
    manifest |= {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}
    meta = manifest.get("metadata") or {}
    target = msgspec.convert(
        (manifest.get("spec") or {}).get("scaleTargetRef") or {}, _ScaleTargetRef
    )
    if not target.kind or not target.name:
        raise ValueError("spec.scaleTargetRef names no object")
    hpa, problem = None, ""
    try:
        hpa = parse_readable(manifest)
    except ManifestError as error:
        problem = str(error)
    text = (meta.get("annotations") or {}).get(FLOOR)
    floor = int(text) if text and text.isascii() and text.isdigit() else None
    if text is not None and floor is None:
        problem = f"annotation {FLOOR} is {text!r}: set it to a whole number of pods"
    status = manifest.get("status") or {}
    status_keys = ("conditions", "desiredReplicas", "currentReplicas")
    return HpaInfo(
        namespace=str(meta.get("namespace") or "default"),
        name=str(meta.get("name") or ""),
        target=Workload(resource_of(target.api_version, target.kind), target.name),
        kind=target.kind,
        readable=hpa,
        problem=problem,
        status={key: status[key] for key in status_keys if key in status},
        from_zero="scaledobject.keda.sh/name" in (meta.get("labels") or {}),
        floor=floor,
        version=target.api_version,
    )


def parse_readable(manifest: Mapping[str, Any]) -> ReadableHpa:
    """Parse an HPA without the metrics of another API.

    Args:
        manifest: autoscaling/v2; ``apiVersion`` and ``kind`` may be missing, as in a list.

    Raises:
        ManifestError: no metric remains, or a key is missing or wrong; the text names it.
    """
    spec = manifest.get("spec") or {}
    rows = spec.get("metrics") or []
    metrics = [row for row in rows if row.get("type") in _KINDS]
    if not metrics:
        raise ManifestError("spec.metrics has no metric of type Pods, Object or External")
    whole = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        **manifest,
        "spec": {**spec, "metrics": metrics},
    }
    return ReadableHpa(from_manifest(whole), len(rows) - len(metrics))
