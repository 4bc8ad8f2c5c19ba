"""The types of a ScaledObject's fields, by which the API server accepts or refuses it.

They are those of KEDA's CustomResourceDefinition (kedacore/keda
``apis/keda/v1alpha1/scaledobject_types.go`` and ``scaletriggers_types.go``). In particular, all
metadata of a trigger are texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from adapter.pipeline.cluster.fieldtypes import TypeFault, type_faults
from adapter.pipeline.cluster.objects import KubeObject


class _Object(KubeObject, msgspec.Struct, frozen=True):
    """Names the base again: the linter sees no other module, and allows a Struct ``[]``."""


class _TargetReference(_Object, frozen=True):
    name: str = ""
    api_version: str = ""
    kind: str = ""
    env_source_container_name: str = ""


class _Trigger(_Object, frozen=True):
    type: str = ""
    name: str = ""
    use_cached_metrics: bool = False
    metadata: dict[str, str] = {}
    authentication_ref: dict[str, str] = {}
    metric_type: str = ""


class _Fallback(_Object, frozen=True):
    failure_threshold: int = 0
    replicas: int = 0
    behavior: str = ""


class _HpaConfig(_Object, frozen=True):
    name: str = ""
    behavior: dict[str, Any] = {}


class _ScalingModifiers(_Object, frozen=True):
    formula: str = ""
    target: str = ""
    activation_target: str = ""
    metric_type: str = ""


class _Advanced(_Object, frozen=True):
    horizontal_pod_autoscaler_config: _HpaConfig = _HpaConfig()
    restore_to_original_replica_count: bool = False
    scaling_modifiers: _ScalingModifiers = _ScalingModifiers()


class _Spec(_Object, frozen=True):
    scale_target_ref: _TargetReference = _TargetReference()
    polling_interval: int = 0
    initial_cooldown_period: int = 0
    cooldown_period: int = 0
    idle_replica_count: int = 0
    min_replica_count: int = 0
    max_replica_count: int = 0
    advanced: _Advanced = _Advanced()
    triggers: list[_Trigger] = []
    fallback: _Fallback = _Fallback()


class _ScaledObject(_Object, frozen=True):
    spec: _Spec = _Spec()


_REQUIRED: Final = ("type", "metadata")
"""Fields that each trigger must have."""


def wrong_fields(manifest: Mapping[str, Any]) -> Iterator[TypeFault]:
    """Yield the fields of a ScaledObject that the API server refuses: of a wrong type, or
    missing."""
    yield from type_faults(manifest, _ScaledObject)
    spec = manifest.get("spec")
    if not isinstance(spec, Mapping):
        if spec is None:
            yield _missing("spec")
        return
    target, triggers = spec.get("scaleTargetRef"), spec.get("triggers")
    if target is None or (isinstance(target, Mapping) and target.get("name") is None):
        yield _missing("spec.scaleTargetRef.name")
    if triggers is None:
        yield _missing("spec.triggers")
    for place, trigger in enumerate(triggers if isinstance(triggers, list) else ()):
        for key in _REQUIRED:
            if isinstance(trigger, Mapping) and trigger.get(key) is None:
                yield _missing(f"spec.triggers[{place}].{key}")


def _missing(path: str) -> TypeFault:
    return TypeFault(path, "is missing", f"add {path}")
