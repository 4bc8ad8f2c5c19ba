"""Commands that correct an HPA, or what its controller may read; ``explain`` and ``doctor`` print
them.
"""

from __future__ import annotations

import json
import re
import shlex
from typing import Final

from adapter.catalog.metric import Unit

CONTROLLER: Final = "kube-system:horizontal-pod-autoscaler"
"""ServiceAccount of the HPA controller."""
_MIB_MILLI: Final = 1000 << 20


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
    return (
        f"kubectl create clusterrole {role} --verb=get,list --resource={shlex.quote(f'*.{group}')}"
        f" && kubectl create clusterrolebinding {role} --clusterrole={role}"
        f" --serviceaccount={CONTROLLER}"
    )


def other_unit(unit: str, milli: int) -> tuple[str, str] | None:
    """Return what a target means and the number that was probably meant; None for a usual one.

    Args:
        unit: of the metric.
        milli: the target in thousandths, above 0.
    """
    text = f"{milli / 1000:.3f}".rstrip("0").rstrip(".")
    if unit == Unit.PERCENT and milli <= 1000:
        return f"{text} %", f"{milli / 10:.2f}".rstrip("0").rstrip(".")
    if unit == Unit.BYTES and milli < _MIB_MILLI:
        return f"{text} bytes", f"{text}Gi"
    if unit == Unit.MEBIBYTES and milli > _MIB_MILLI:
        return f"{milli // 1000} MiB", str(milli // _MIB_MILLI)
    return None
