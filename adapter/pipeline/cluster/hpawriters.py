"""Objects from which a controller writes an HPA, and where each has the fields of the HPA.

- KEDA: ``apis/keda/v1alpha1/scaledobject_types.go`` (kedacore/keda).
- KServe writes an HPA, or a ScaledObject, for each component of an InferenceService, and names it
  after both: ``NAME-predictor`` (``pkg/apis/serving/v1beta1/component.go``, kserve/kserve).
- NVIDIA's NIM operator: ``spec.scale.hpa`` of a NIMService (``api/apps/v1alpha1``,
  NVIDIA/k8s-nim-operator).
- Seldon Core: ``hpaSpec`` in the lists of a SeldonDeployment (SeldonIO/seldon-core).
- Knative writes the HPA of a PodAutoscaler, whose bounds are annotations of the Knative Service's
  template (``pkg/apis/autoscaling/register.go`` of knative/serving).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from adapter.pipeline.cluster.changes import ChangedObject

_MAX, _MIN, _BEHAVIOR = "spec.maxReplicas", "spec.minReplicas", "spec.behavior"
_BOUNDS: Final = {
    _MAX: _MAX,
    _MIN: _MIN,
    "spec.maxReplicaCount": _MAX,
    "spec.minReplicaCount": _MIN,
}
"""Bounds of an HPA, or of a ScaledObject that a controller writes -> those of the HPA."""
_COMPONENTS: Final = ("predictor", "transformer", "explainer")


def _keda(of: ChangedObject, owner: str, path: str) -> str:
    if path.startswith(_BEHAVIOR):
        return f"spec.advanced.horizontalPodAutoscalerConfig.{path[5:]}"
    return {_MAX: "spec.maxReplicaCount", _MIN: "spec.minReplicaCount"}.get(path, "")


def _kserve(of: ChangedObject, owner: str, path: str) -> str:
    component = of.name.removeprefix(f"{owner}-").partition("-")[0]
    if component not in _COMPONENTS or path not in _BOUNDS:
        return ""
    return f"spec.{component}.{_BOUNDS[path][5:]}"


def _nim(of: ChangedObject, owner: str, path: str) -> str:
    return f"spec.scale.hpa.{path[5:]}"


_FIELDS: Final[Mapping[tuple[str, str], Callable[[ChangedObject, str, str], str]]] = {
    ("keda.sh", "ScaledObject"): _keda,
    ("serving.kserve.io", "InferenceService"): _kserve,
    ("apps.nvidia.com", "NIMService"): _nim,
}
"""Group and kind of an owner -> the path in it for one of the HPA; empty if there is none."""
_PLACES: Final[Mapping[tuple[str, str], str]] = {
    ("keda.sh", "ScaledObject"): "spec.triggers",
    ("machinelearning.seldon.io", "SeldonDeployment"): "componentSpecs[].hpaSpec of its predictors",
    ("autoscaling.internal.knative.dev", "PodAutoscaler"): (
        "the annotations autoscaling.knative.dev/max-scale and min-scale in spec.template of the "
        "Knative Service, which the label serving.knative.dev/service of the HPA names"
    ),
}
"""Group and kind of an owner -> where a person makes a change that no field is known for."""
REWRITTEN: Final = ("PodAutoscaler",)
"""Owners that a controller writes again themselves."""


def fields_in(
    of: ChangedObject, owner: ChangedObject, fields: Mapping[str, object]
) -> dict[str, object]:
    """Return the fields of an owner that stand for those of an HPA, or of a ScaledObject; empty if
    one of them is not known.

    Args:
        of: the HPA or ScaledObject.
        owner: from which a controller writes it.
        fields: path -> value.
    """
    rule = _FIELDS.get((owner.group, owner.kind))
    if rule is None:
        return {}
    owner_fields = {rule(of, owner.name, path): value for path, value in fields.items()}
    return {} if "" in owner_fields else owner_fields


def place_in(owner: ChangedObject) -> str:
    """Return where a person changes what an owner says of its HPA; empty if it is not known."""
    return _PLACES.get((owner.group, owner.kind), "")
