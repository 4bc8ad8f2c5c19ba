"""Parsing of an autoscaling/v2 manifest into an HPA's spec, with defaults and checks.

The checks are the API server's (``pkg/apis/autoscaling/validation/validation.go``) as far as they
matter to a decision. Messages name the key and the fix.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from enum import StrEnum
from typing import Any, TypeVar

from adapter.hpa import quantity
from adapter.hpa.spec import (
    DEFAULT_SCALE_DOWN,
    DEFAULT_SCALE_UP,
    Behavior,
    DescribedObject,
    HpaSpec,
    MetricKind,
    MetricSpec,
    MetricTarget,
    PolicyKind,
    Rules,
    ScalingPolicy,
    Select,
    TargetKind,
    source_key,
)

E = TypeVar("E", bound=StrEnum)

MAX_WINDOW = 3600
MAX_PERIOD = 1800


class ManifestError(ValueError):
    """The manifest is not an HPA that this module can decide for; the text names the key."""


def from_manifest(manifest: Mapping[str, Any]) -> HpaSpec:
    """Read an autoscaling/v2 HorizontalPodAutoscaler.

    Raises:
        ManifestError: a key is missing or wrong.
    """
    kind, version = manifest.get("kind"), manifest.get("apiVersion")
    if kind != "HorizontalPodAutoscaler" or version != "autoscaling/v2":
        raise ManifestError(
            f"apiVersion {version!r}, kind {kind!r}: give an autoscaling/v2 HorizontalPodAutoscaler"
        )
    meta = _mapping(manifest, "metadata", "") if manifest.get("metadata") else {}
    spec = _mapping(manifest, "spec", "")
    high = _integer(spec, "maxReplicas", "spec", low=1)
    low = _integer(spec, "minReplicas", "spec", low=0, default=1)
    if low > high:
        raise ManifestError(
            f"spec.maxReplicas {high} is less than spec.minReplicas {low}: raise it"
        )
    rows = spec.get("metrics")
    if not isinstance(rows, list) or not rows:
        raise ManifestError(
            "spec.metrics is empty: name at least one metric "
            "(without one, the API server would scale on CPU)"
        )
    metrics = tuple(_metric(row, f"spec.metrics[{i}]") for i, row in enumerate(rows))
    beyond = (MetricKind.OBJECT, MetricKind.EXTERNAL)
    if low == 0 and not any(metric.kind in beyond for metric in metrics):
        raise ManifestError(
            "spec.minReplicas is 0 with metrics of pods only: scaling from zero needs an Object "
            "or External metric, which has a value without any pod"
        )
    return HpaSpec(
        max_replicas=high,
        metrics=metrics,
        min_replicas=low,
        behavior=_behavior(spec.get("behavior")),
        target=_read_object(spec, "scaleTargetRef", "spec") if "scaleTargetRef" in spec else None,
        name=str(meta.get("name") or ""),
        namespace=str(meta.get("namespace") or "default"),
    )


def _metric(row: Any, at: str) -> MetricSpec:
    if not isinstance(row, Mapping):
        raise ManifestError(f"{at} is not a mapping: give type and pods, object or external")
    kind = _choice(MetricKind, row.get("type"), f"{at}.type")
    key = source_key(kind)
    source = _mapping(row, key, at)
    at = f"{at}.{key}"
    if kind.of_resources:
        return _resource(kind, source, at)
    metric = _mapping(source, "metric", at)
    if not metric.get("name") or not isinstance(metric["name"], str):
        raise ManifestError(f"{at}.metric.name is missing: name the metric")
    selector = metric.get("selector")
    return MetricSpec(
        kind=kind,
        name=metric["name"],
        target=_target(kind, _mapping(source, "target", at), f"{at}.target"),
        selector=None if selector is None else _mapping(metric, "selector", f"{at}.metric"),
        described=_read_object(source, "describedObject", at)
        if kind is MetricKind.OBJECT
        else None,
    )


def _resource(kind: MetricKind, source: Mapping[str, Any], at: str) -> MetricSpec:
    """Choose like the controller: ``averageValue`` goes before ``averageUtilization``."""
    name, container = source.get("name"), source.get("container")
    if not name or not isinstance(name, str):
        raise ManifestError(f"{at}.name is missing: name the resource, such as cpu")
    if kind is MetricKind.CONTAINER and (not container or not isinstance(container, str)):
        raise ManifestError(f"{at}.container is missing: name the container")
    target, at = _mapping(source, "target", at), f"{at}.target"
    if target.get("averageValue") is not None:
        milli = quantity.to_milli(_quantity(target["averageValue"], f"{at}.averageValue"))
        if milli <= 0:
            raise ManifestError(f"{at}.averageValue is {milli}m: give a quantity above 0")
        chosen = MetricTarget(TargetKind.AVERAGE_VALUE, milli)
    else:
        percent = _integer(target, "averageUtilization", at, low=1)
        chosen = MetricTarget(TargetKind.UTILIZATION, percent * 1000)
    only = str(container) if kind is MetricKind.CONTAINER else ""
    return MetricSpec(kind=kind, name=name, target=chosen, container=only)


def _target(metric: MetricKind, target: Mapping[str, Any], at: str) -> MetricTarget:
    """Choose like the controller: Object by ``type``, Pods and External by the key that is set."""
    value, average = target.get("value"), target.get("averageValue")
    kind = _choice(TargetKind, target.get("type"), f"{at}.type")
    if kind is TargetKind.UTILIZATION:
        raise ManifestError(f"{at}.type is Utilization: use AverageValue, or Value")
    if metric is MetricKind.EXTERNAL and value is not None and average is not None:
        raise ManifestError(f"{at} sets value and averageValue: keep one")
    if metric is MetricKind.PODS:
        kind = TargetKind.AVERAGE_VALUE
    elif metric is MetricKind.EXTERNAL:
        kind = TargetKind.VALUE if average is None else TargetKind.AVERAGE_VALUE
    key = "value" if kind is TargetKind.VALUE else "averageValue"
    chosen = value if kind is TargetKind.VALUE else average
    if chosen is None:
        raise ManifestError(f"{at}.{key} is missing: give a quantity above 0")
    milli = quantity.to_milli(_quantity(chosen, f"{at}.{key}"))
    if milli <= 0:
        raise ManifestError(f"{at}.{key} is {chosen}: give a quantity above 0")
    return MetricTarget(kind, milli)


def _behavior(behavior: Any) -> Behavior | None:
    if behavior is None:
        return None
    if not isinstance(behavior, Mapping):
        raise ManifestError("spec.behavior is not a mapping: give scaleUp or scaleDown, or drop it")
    return Behavior(
        scale_up=_rules(behavior, "scaleUp", DEFAULT_SCALE_UP),
        scale_down=_rules(behavior, "scaleDown", DEFAULT_SCALE_DOWN),
    )


def _rules(behavior: Mapping[str, Any], key: str, default: Rules) -> Rules:
    if behavior.get(key) is None:
        return default
    rules, at = _mapping(behavior, key, "spec.behavior"), f"spec.behavior.{key}"
    policies = default.policies
    if rules.get("policies") is not None:
        if not isinstance(rules["policies"], list) or not rules["policies"]:
            raise ManifestError(f"{at}.policies is empty: give a policy, or drop the key")
        policies = tuple(
            _policy(row, f"{at}.policies[{i}]") for i, row in enumerate(rules["policies"])
        )
    window, tolerance = default.window, default.tolerance
    if rules.get("stabilizationWindowSeconds") is not None:
        window = _integer(rules, "stabilizationWindowSeconds", at, low=0, high=MAX_WINDOW)
    if rules.get("tolerance") is not None:
        tolerance = float(_quantity(rules["tolerance"], f"{at}.tolerance"))
        if tolerance < 0:
            raise ManifestError(f"{at}.tolerance is negative: give 0 or more, such as 50m")
    select = rules.get("selectPolicy")
    return Rules(
        policies=policies,
        select=default.select if select is None else _choice(Select, select, f"{at}.selectPolicy"),
        window=window,
        tolerance=tolerance,
    )


def _policy(row: Any, at: str) -> ScalingPolicy:
    if not isinstance(row, Mapping):
        raise ManifestError(f"{at} is not a mapping: give type, value and periodSeconds")
    return ScalingPolicy(
        _choice(PolicyKind, row.get("type"), f"{at}.type"),
        _integer(row, "value", at, low=1),
        _integer(row, "periodSeconds", at, low=1, high=MAX_PERIOD),
    )


def _read_object(parent: Mapping[str, Any], key: str, at: str) -> DescribedObject:
    row = _mapping(parent, key, at)
    for part in ("kind", "name"):
        if not isinstance(row.get(part), str) or not row[part]:
            raise ManifestError(f"{at}.{key}.{part} is missing: name the object")
    return DescribedObject(row["kind"], row["name"], str(row.get("apiVersion") or ""))


def _mapping(parent: Mapping[str, Any], key: str, at: str) -> Mapping[str, Any]:
    path = f"{at}.{key}".lstrip(".")
    value = parent.get(key)
    if value is None:
        raise ManifestError(f"{path} is missing: add it")
    if not isinstance(value, Mapping):
        raise ManifestError(f"{path} is not a mapping: see the autoscaling/v2 reference")
    return value


def _integer(
    parent: Mapping[str, Any],
    key: str,
    at: str,
    *,
    low: int,
    high: int = 2**31 - 1,
    default: int | None = None,
) -> int:
    value = parent.get(key)
    if value is None and default is not None:
        return default
    if value is None:
        raise ManifestError(f"{at}.{key} is missing: give a whole number of {low} or more")
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ManifestError(f"{at}.{key} is {value!r}: give a whole number from {low} to {high}")
    return value


def _choice(kind: type[E], value: Any, at: str) -> E:
    try:
        return kind(value)
    except ValueError:
        allowed = ", ".join(kind)
        raise ManifestError(f"{at} is {value!r}: use one of {allowed}") from None


def _quantity(value: Any, at: str) -> Decimal:
    try:
        return quantity.parse(value)
    except ValueError:
        raise ManifestError(f"{at} is {value!r}: give a quantity such as 70, 500m or 2Gi") from None
