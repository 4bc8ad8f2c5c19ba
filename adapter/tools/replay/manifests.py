"""The manifest of an HPA with other settings, to apply or to commit."""

from __future__ import annotations

import copy
from typing import Any

import yaml

from adapter.hpa import HpaSpec
from adapter.tools.client.access import Json
from apiservice.runtime.yamltypes import Dumper
from apiservice.wire.quantity import format_milli


def with_settings(manifest: Json, made: HpaSpec, old_metric: str = "") -> Json:
    """Return a manifest with the settings of ``made``.

    Args:
        manifest: of the HPA as it is.
        made: with the one metric that was replayed, of type Pods.
        old_metric: name of the metric that this one takes the place of; empty for its own.
    """
    spec: dict[str, Any] = copy.deepcopy(manifest["spec"])
    spec["minReplicas"], spec["maxReplicas"] = made.min_replicas, made.max_replicas
    metric = made.metrics[0]
    for row in spec["metrics"]:
        if row.get("type") != metric.kind:
            continue
        pods = row["pods"]
        if pods["metric"]["name"] == (old_metric or metric.name):
            if old_metric:
                pods["metric"] = {"name": metric.name}
            pods["target"]["averageValue"] = format_milli(metric.target.milli)
    down = made.behavior.scale_down.window if made.behavior is not None else None
    if down is not None:
        behavior = spec.setdefault("behavior", {})
        behavior.setdefault("scaleDown", {})["stabilizationWindowSeconds"] = round(down)
    return _hpa_manifest(manifest, made, spec)


def with_promise(manifest: Json, made: HpaSpec) -> Json:
    """Return a manifest that scales on a promise, instead of on metrics of type Pods.

    Args:
        manifest: of the HPA as it is. Its metrics of other types stay.
        made: with the one metric that states the promise.
    """
    spec: dict[str, Any] = copy.deepcopy(manifest["spec"])
    spec["minReplicas"], spec["maxReplicas"] = made.min_replicas, made.max_replicas
    metric = made.metrics[0]
    identifier = {"name": metric.name, "selector": metric.selector}
    target = {"type": "AverageValue", "averageValue": format_milli(metric.target.milli)}
    row = {"type": "Pods", "pods": {"metric": identifier, "target": target}}
    spec["metrics"] = [row, *(old for old in spec["metrics"] if old.get("type") != metric.kind)]
    return _hpa_manifest(manifest, made, spec)


def _hpa_manifest(manifest: Json, made: HpaSpec, spec: dict[str, Any]) -> Json:
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": manifest["metadata"]["name"], "namespace": made.namespace},
        "spec": spec,
    }


def format_yaml(manifest: Json) -> str:
    """Return a manifest as YAML."""
    return str(yaml.dump(manifest, Dumper=Dumper, sort_keys=False))
