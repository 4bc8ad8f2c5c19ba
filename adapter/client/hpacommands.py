"""Commands that correct an HPA, or what its controller may read; ``explain`` and ``doctor`` print
them.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Final

from adapter.client.errors import create_again

CONTROLLER: Final = "kube-system:horizontal-pod-autoscaler"
"""ServiceAccount of the HPA controller."""


def patch_hpa(namespace: str, name: str, path: str, value: object) -> str:
    """Return a command that sets one field: ``spec.metrics[0].pods.metric.name``."""
    return patch_rows(namespace, name, [{"op": "add", "path": pointer(path), "value": value}])


def patch_rows(namespace: str, name: str, rows: list[dict[str, object]]) -> str:
    """Return a command that applies a JSON patch to an HPA."""
    change = shlex.quote(json.dumps(rows, separators=(",", ":")))
    place = f"-n {shlex.quote(namespace)} patch hpa {shlex.quote(name)}"
    return f"kubectl {place} --type=json -p {change}"


def pointer(path: str) -> str:
    """Return a path of an HPA's field as a JSON pointer."""
    return "/" + re.sub(r"[.\[\]]+", "/", path).strip("/")


def grant_controller(group: str = "custom.metrics.k8s.io") -> str:
    """Return the commands that let the HPA controller read every metric of an API group."""
    role = f"hpa-reads-{group.partition('.')[0]}-metrics"
    return create_again(
        f"clusterrole {role} --verb=get,list --resource={shlex.quote(f'*.{group}')}",
        f"clusterrolebinding {role} --clusterrole={role} --serviceaccount={CONTROLLER}",
    )


def one_hpa(namespace: str, hpas: Sequence[Mapping[str, Any]]) -> str:
    """Return commands that move the metrics of HPAs of one target to the first by name, and delete
    the others. The same HPA is kept, whichever of them is looked at. Empty if KEDA owns one of
    them: it overwrites the metrics of its HPA.

    Args:
        hpas: manifests of HPAs with one scale target.
    """
    first, *others = sorted(hpas, key=_name)
    if any(map(scaled_object, hpas)):
        return ""
    rows: list[Mapping[str, Any]] = list(first["spec"].get("metrics") or ())
    adds: list[dict[str, object]] = []
    for row in (row for other in others for row in other["spec"].get("metrics") or ()):
        if row not in rows:
            rows.append(row)
            adds.append({"op": "add", "path": "/spec/metrics/-", "value": row})
    names = " ".join(shlex.quote(_name(other)) for other in others)
    delete = f"kubectl -n {shlex.quote(namespace)} delete hpa {names}"
    return f"{patch_rows(namespace, _name(first), adds)} && {delete}" if adds else delete


def _name(hpa: Mapping[str, Any]) -> str:
    return str(hpa["metadata"]["name"])


def scaled_object(hpa: Mapping[str, Any]) -> str:
    """Return the ScaledObject that owns an HPA; empty without one."""
    owners = hpa["metadata"].get("ownerReferences") or ()
    return next((str(row["name"]) for row in owners if row.get("kind") == "ScaledObject"), "")
