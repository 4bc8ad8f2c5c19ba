"""Parsing of an autoscaling/v2 manifest into an HPA's spec, with defaults and checks.

The checks are those of the API server (``pkg/apis/autoscaling/validation/validation.go`` and
``v2/defaults.go`` of k8s.io/kubernetes v1.37.2), and those of the controller for a target that it
cannot use. Only a selector that is none is left to the controller: it refuses that one metric
(``metav1.LabelSelectorAsSelector``), and decides by the others. Messages name the key and the fix.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from adapter.hpa.manifestfields import (
    ManifestError,
    read_choice,
    read_integer,
    read_mapping,
    read_name,
    read_path_segment,
    read_positive_milli,
    read_quantity,
    show_value,
    wrong_value,
)
from adapter.hpa.spec import (
    DEFAULT_CPU,
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
    compared_kind,
    source_key,
)
from apiservice.labels.manifest import without_null
from apiservice.labels.requirement import check_key, check_value, is_dns_label, is_dns_subdomain

MAX_WINDOW: Final = 3600
MAX_PERIOD: Final = 1800
_CONTAINER_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage")
"""Resources without a domain that a container can have (``pkg/apis/core/helper/helpers.go``)."""


_SLASH: Final = "; metrics of Google Cloud Monitoring have | for it"
"""GoogleCloudPlatform/k8s-stackdriver, ``custom-metrics-stackdriver-adapter``."""


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
    meta = _metadata(manifest)
    spec = read_mapping(manifest, "spec", "")
    high = read_integer(spec, "maxReplicas", "spec", low=1)
    low = read_integer(spec, "minReplicas", "spec", low=0, default=1)
    if low > high:
        raise ManifestError(
            f"spec.maxReplicas {high} is less than spec.minReplicas {low}: raise it"
        )
    rows = [] if spec.get("metrics") is None else spec["metrics"]
    if not isinstance(rows, list):
        raise ManifestError("spec.metrics is not a list: give one metric or more")
    metrics = tuple(_metric(row, f"spec.metrics[{i}]") for i, row in enumerate(rows))
    metrics = metrics or (DEFAULT_CPU,)
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
        target=_target_object(spec),
        name=str(meta.get("name") or ""),
        namespace=str(meta.get("namespace") or "default"),
    )


def _metadata(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return ``metadata``; empty without one, as in a template."""
    if manifest.get("metadata") is None:
        return {}
    meta = read_mapping(manifest, "metadata", "")
    name = meta.get("name")
    if name is not None and not (isinstance(name, str) and is_dns_subdomain(name)):
        raise wrong_value("metadata.name", name, "use lower case letters, digits, '-' and '.' only")
    labels = {} if meta.get("labels") is None else read_mapping(meta, "labels", "metadata")
    for key, value in ((key, without_null(value)) for key, value in labels.items()):
        if not isinstance(key, str) or not isinstance(value, str):
            raise wrong_value(f"metadata.labels.{key}", value, "put it in quotes")
        if fault := check_key(key) or check_value(value):
            raise wrong_value(f"metadata.labels.{key}", value, fault)
    return meta


def _metric(row: Any, at: str) -> MetricSpec:
    if not isinstance(row, Mapping):
        raise ManifestError(f"{at} is not a mapping: give type and pods, object or external")
    kind = read_choice(MetricKind, row.get("type"), f"{at}.type")
    key = source_key(kind)
    source = read_mapping(row, key, at)
    others = [other for other in map(source_key, MetricKind) if other != key]
    if second := next((other for other in others if row.get(other) is not None), ""):
        raise ManifestError(f"{at} has {key} and {second}: keep one, or make it two metrics")
    at = f"{at}.{key}"
    if kind.of_resources:
        return _resource(kind, source, at)
    metric = read_mapping(source, "metric", at)
    return MetricSpec(
        kind=kind,
        name=read_path_segment(metric, "name", f"{at}.metric", "name the metric", _SLASH),
        target=_target(kind, read_mapping(source, "target", at), f"{at}.target"),
        selector=_selector(metric, f"{at}.metric"),
        described=_read_object(source, "describedObject", at)
        if kind is MetricKind.OBJECT
        else None,
    )


def _selector(metric: Mapping[str, Any], at: str) -> Mapping[str, Any] | None:
    """Return a selector with the types of a LabelSelector; what it means is not checked."""
    if metric.get("selector") is None:
        return None
    selector, at = read_mapping(metric, "selector", at), f"{at}.selector"
    labels: Any = {}
    if selector.get("matchLabels") is not None:
        labels = read_mapping(selector, "matchLabels", at)
    rows = [] if selector.get("matchExpressions") is None else selector["matchExpressions"]
    if not isinstance(rows, list):
        raise ManifestError(f"{at}.matchExpressions is not a list: give one expression or more")
    texts = {f"matchLabels.{key}": without_null(value) for key, value in labels.items()}
    for index, row in enumerate(rows):
        path = f"matchExpressions[{index}]"
        if not isinstance(row, Mapping) or not isinstance(row.get("values") or [], list):
            raise ManifestError(f"{at}.{path} is not an expression: give key, operator and values")
        texts |= {f"{path}.{part}": row.get(part, "") for part in ("key", "operator")}
        texts |= {f"{path}.values[{i}]": value for i, value in enumerate(row.get("values") or [])}
    for path, text in texts.items():
        if not isinstance(text, str):
            why = "which is not a string: put it in quotes"
            raise ManifestError(f"{at}.{path} is {show_value(text)}, {why}")
    return selector


def _resource(kind: MetricKind, source: Mapping[str, Any], at: str) -> MetricSpec:
    """Choose like the controller: ``averageValue`` goes before ``averageUtilization``."""
    name, container = read_name(source, "name", at, "name the resource, such as cpu"), ""
    if kind is MetricKind.CONTAINER:
        _check_container_resource(name, at)
        container = read_name(source, "container", at, "name the container")
        if not is_dns_label(container):
            raise wrong_value(f"{at}.container", container, "give the name of a container")
    target, at = read_mapping(source, "target", at), f"{at}.target"
    average, percent = _check_target(target, at), target.get("averageUtilization")
    if average is not None and percent is not None:
        raise ManifestError(f"{at} sets averageUtilization and averageValue: keep one")
    if average is not None:
        milli = read_positive_milli(average, f"{at}.averageValue")
        chosen = MetricTarget(TargetKind.AVERAGE_VALUE, milli)
    else:
        chosen = MetricTarget(
            TargetKind.UTILIZATION, read_integer(target, "averageUtilization", at, low=1) * 1000
        )
    return MetricSpec(kind=kind, name=name, target=chosen, container=container)


def _check_container_resource(name: str, at: str) -> None:
    """Raise ManifestError for a resource that a container cannot have."""
    standard = name in _CONTAINER_RESOURCES or name.startswith("hugepages-")
    if check_key(name) is not None or not (standard or "/" in name):
        raise wrong_value(f"{at}.name", name, "containers have no such resource")


def _check_target(target: Mapping[str, Any], at: str) -> Any:
    """Raise ManifestError unless the type and every number of a target are valid.

    Returns:
        ``averageValue``; None without one.
    """
    read_choice(TargetKind, target.get("type"), f"{at}.type")
    for key in ("value", "averageValue"):
        if target.get(key) is not None:
            read_positive_milli(target[key], f"{at}.{key}")
    if target.get("averageUtilization") is not None:
        read_integer(target, "averageUtilization", at, low=1)
    return target.get("averageValue")


def _target(metric: MetricKind, target: Mapping[str, Any], at: str) -> MetricTarget:
    """Choose like the controller: :func:`adapter.hpa.spec.compared_kind`."""
    average = _check_target(target, at)
    if metric is MetricKind.EXTERNAL and target.get("value") is not None and average is not None:
        raise ManifestError(f"{at} sets value and averageValue: keep one")
    kind = compared_kind(metric, target["type"], averaged=average is not None)
    if kind is TargetKind.VALUE and target.get("value") is None and target["type"] != kind:
        kind = TargetKind.AVERAGE_VALUE
    if kind is TargetKind.UTILIZATION:
        raise ManifestError(f"{at}.type is Utilization: use AverageValue, or Value")
    if target.get(kind.key) is None:
        raise ManifestError(f"{at}.{kind.key} is missing: give a quantity above 0, and type {kind}")
    return MetricTarget(kind, read_positive_milli(target[kind.key], f"{at}.{kind.key}"))


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
    rules, at = read_mapping(behavior, key, "spec.behavior"), f"spec.behavior.{key}"
    policies = default.policies
    if rules.get("policies") is not None:
        if not isinstance(rules["policies"], list) or not rules["policies"]:
            raise ManifestError(f"{at}.policies is empty: give a policy, or drop the key")
        policies = tuple(
            _policy(row, f"{at}.policies[{i}]") for i, row in enumerate(rules["policies"])
        )
    window, tolerance = default.window, default.tolerance
    if rules.get("stabilizationWindowSeconds") is not None:
        window = read_integer(rules, "stabilizationWindowSeconds", at, low=0, high=MAX_WINDOW)
    if rules.get("tolerance") is not None:
        tolerance = float(read_quantity(rules["tolerance"], f"{at}.tolerance"))
        if tolerance < 0:
            raise ManifestError(f"{at}.tolerance is negative: give 0 or more, such as 50m")
    select = rules.get("selectPolicy")
    return Rules(
        policies=policies,
        select=default.select
        if select is None
        else read_choice(Select, select, f"{at}.selectPolicy"),
        window=window,
        tolerance=tolerance,
    )


def _policy(row: Any, at: str) -> ScalingPolicy:
    if not isinstance(row, Mapping):
        raise ManifestError(f"{at} is not a mapping: give type, value and periodSeconds")
    return ScalingPolicy(
        read_choice(PolicyKind, row.get("type"), f"{at}.type"),
        read_integer(row, "value", at, low=1),
        read_integer(row, "periodSeconds", at, low=1, high=MAX_PERIOD),
    )


def _target_object(spec: Mapping[str, Any]) -> DescribedObject:
    """Return the scale target. Only kinds of the core API have a version without a group; the
    controller finds no other kind there."""
    target = _read_object(spec, "scaleTargetRef", "spec")
    group, slash, _ = target.api_version.partition("/")
    if not (group and slash) and target.kind != "ReplicationController":
        example = "apps/v1" if target.kind in ("Deployment", "StatefulSet") else "GROUP/VERSION"
        advice = f"give the API group of {target.kind} too, as in {example}"
        raise wrong_value("spec.scaleTargetRef.apiVersion", target.api_version, advice)
    return target


def _read_object(parent: Mapping[str, Any], key: str, at: str) -> DescribedObject:
    row, at = read_mapping(parent, key, at), f"{at}.{key}"
    kind, name = (read_path_segment(row, part, at, "name the object") for part in ("kind", "name"))
    version = row.get("apiVersion") or ""
    if not isinstance(version, str) or version.count("/") > 1:
        raise wrong_value(f"{at}.apiVersion", version, "give a version such as apps/v1")
    return DescribedObject(kind, name, version)
