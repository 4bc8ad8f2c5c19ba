"""Commands that correct an HPA, or what its controller may read; ``explain`` and ``doctor`` print
them.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Final

from adapter.pipeline.cluster.changes import (
    ChangedObject,
    ObjectChange,
    edit,
    patch,
    pointer,
    set_fields,
)
from adapter.pipeline.cluster.fixes import Fix, make_lasting
from adapter.pipeline.cluster.managers import kserve_of, manager_of
from adapter.tools.client.errors import create_again

CONTROLLER: Final = "kube-system:horizontal-pod-autoscaler"
"""ServiceAccount of the HPA controller."""
KIND: Final = "HorizontalPodAutoscaler"


def hpa_object(manifest: Mapping[str, Any]) -> ChangedObject:
    """Return an HPA as an object to change.

    KEDA gives its HPAs the labels and annotations of their ScaledObjects (keda
    ``controllers/keda/hpa.go``), so an HPA shows what manages its ScaledObject too.
    """
    meta: Mapping[str, Any] = manifest["metadata"]
    namespace = str(meta.get("namespace") or "default")
    manager, above = manager_of(meta, namespace), None
    if manager is not None and manager.kind == "ScaledObject":
        above = kserve_of(meta, namespace) or manager_of(
            {**meta, "ownerReferences": [], "name": manager.name}, namespace
        )
    return ChangedObject(KIND, namespace, _name(manifest), manager, above=above)


def change_hpa(manifest: Mapping[str, Any], path: str, value: object) -> Fix:
    """Return how one field is set so that it lasts: ``spec.metrics[0].pods.metric.name``."""
    of = hpa_object(manifest)
    return make_lasting(of, set_fields(of, {path: value}))


def change_scaled_object(manifest: Mapping[str, Any], path: str, value: object) -> Fix:
    """Return how a field of the ScaledObject that owns an HPA is set so that it lasts."""
    hpa = hpa_object(manifest)
    of = ChangedObject(
        "ScaledObject", hpa.namespace, scaled_object(manifest), hpa.above, group="keda.sh"
    )
    return make_lasting(of, set_fields(of, {path: value}))


def replace_row(manifest: Mapping[str, Any], path: str, row: Mapping[str, Any]) -> Fix:
    """Return how a row of a list of an HPA is replaced: ``spec.metrics[0]``."""
    of = hpa_object(manifest)
    command = patch(of, [{"op": "replace", "path": pointer(path), "value": row}])
    return make_lasting(of, ObjectChange(f"replace {path} by {json.dumps(row)}", command))


def edit_hpa(manifest: Mapping[str, Any], words: str) -> Fix:
    """Return how an HPA is changed by a person.

    Args:
        words: what to do, as an order.
    """
    of = hpa_object(manifest)
    return make_lasting(of, edit(of, words))


def grant_controller(group: str = "custom.metrics.k8s.io") -> str:
    """Return the commands that let the HPA controller read every metric of an API group."""
    role = f"hpa-reads-{group.partition('.')[0]}-metrics"
    return create_again(
        f"clusterrole {role} --verb=get,list --resource={shlex.quote(f'*.{group}')}",
        f"clusterrolebinding {role} --clusterrole={role} --serviceaccount={CONTROLLER}",
    )


_AUTOSCALER: Final = "serving.kserve.io/autoscalerClass"
"""Which autoscaler KServe makes (kserve ``pkg/constants/constants.go``): hpa, keda, external."""


def one_hpa(hpas: Sequence[Mapping[str, Any]]) -> Fix | None:
    """Return how the metrics of HPAs of one target move to the first by name, and the others go.
    The same HPA is kept, whichever of them is looked at. None if KEDA owns one of them: it
    overwrites the metrics of its HPA.

    Args:
        hpas: manifests of HPAs with one scale target.
    """
    first, *others = sorted(hpas, key=_name)
    if any(map(scaled_object, hpas)):
        return None
    names = ", ".join(map(_name, others))
    text = f"move the metrics of HPA {names} to HPA {_name(first)}, and delete {names}"
    managers = [of.manager for of in map(hpa_object, hpas) if of.manager is not None]
    if managers:
        by = ", ".join(sorted({manager.source for manager in managers}))
        text += next(
            (
                f"; to keep an HPA of your own instead, annotate InferenceService {manager.name} "
                f"with {_AUTOSCALER}: external, so that KServe makes none"
                for manager in managers
                if manager.kind == "InferenceService"
            ),
            "",
        )
        return Fix(f"{text}, where they are managed ({by})", "", by)
    rows: list[Mapping[str, Any]] = list(first["spec"].get("metrics") or ())
    adds: list[dict[str, object]] = []
    for row in (row for other in others for row in other["spec"].get("metrics") or ()):
        if row not in rows:
            rows.append(row)
            adds.append({"op": "add", "path": "/spec/metrics/-", "value": row})
    of = hpa_object(first)
    quoted = " ".join(shlex.quote(_name(other)) for other in others)
    delete = f"kubectl -n {shlex.quote(of.namespace)} delete hpa {quoted}"
    return Fix(text, f"{patch(of, adds)} && {delete}" if adds else delete)


def _name(hpa: Mapping[str, Any]) -> str:
    return str(hpa["metadata"]["name"])


def scaled_object(hpa: Mapping[str, Any]) -> str:
    """Return the ScaledObject that owns an HPA; empty without one."""
    owners = hpa["metadata"].get("ownerReferences") or ()
    return next((str(row["name"]) for row in owners if row.get("kind") == "ScaledObject"), "")
