"""Convert a pod's spec to its shape, and a shape to the spec of a pause pod.

The calculation follows ``PodRequests`` of ``k8s.io/component-helpers/resource/helpers.go``: a
sidecar (an init container with ``restartPolicy: Always``) runs beside the containers and
beside every init container after it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from adapter.config.settings.nodepool import PlaceholderSettings
from adapter.hpa.quantity import parse, to_milli
from adapter.nodepool.model.shape import Shape
from adapter.pipeline.cluster.gpuresources import STANDARD, GpuResources
from adapter.pipeline.cluster.taints import Toleration

_IMAGE: Final = PlaceholderSettings().image
_EVERY_POD = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
"""Taints that the API server adds tolerations for (DefaultTolerationSeconds). Templates do not have
these tolerations. They are ignored, so that a template and its pods have the same shape."""
_POD_LEVEL = ("cpu", "memory")
"""Resources, besides huge pages, that a pod-level ``spec.resources`` may name."""
_HUGE = "hugepages-"


def shape_of(
    spec: Mapping[str, Any], resources: GpuResources = STANDARD, *, priority: int | None = None
) -> Shape:
    """Return the shape of a pod, or of the pods of a template. The size of its claims is unknown.

    Args:
        spec: ``spec`` of a Pod or of a pod template, as in the API.
        resources: those that stand for a GPU.
        priority: resolved from the PriorityClass. None uses the priority of the spec, or 0.

    Raises:
        ValueError: a quantity is invalid or negative.
    """
    overhead = spec.get("overhead") or {}
    selector = spec.get("nodeSelector") or {}
    claims = sorted(
        claim["resourceClaimTemplateName"]
        for claim in spec.get("resourceClaims") or ()
        if claim.get("resourceClaimTemplateName")
    )
    spec_priority = spec.get("priority") or 0
    return Shape(
        requests=tuple(sorted(_requests(spec, overhead).items())),
        node_selector=tuple(sorted((str(k), str(v)) for k, v in selector.items())),
        tolerations=_tolerations(spec.get("tolerations") or ()),
        node_affinity=_affinity(spec),
        claims=tuple(claims),
        claim_devices=None if claims else 0,
        # An admitted pod already includes overhead and scheduling of its RuntimeClass. If the
        # pause pod named the class, the API server would add them again.
        runtime_class="" if overhead else str(spec.get("runtimeClassName") or ""),
        priority=spec_priority if priority is None else priority,
        resources=resources,
    )


def pod_spec(shape: Shape) -> dict[str, Any]:
    """Return the spec of a pause pod with the requirements of the shape.

    The caller sets the priority, because headroom has its own.
    """
    # The request of an extended resource and of huge pages must equal its limit (Kubernetes,
    # "Extended resources", "Manage HugePages"). Other resources need no limit.
    amounts = {name: _text(name, milli) for name, milli in shape.requests if name != "pods"}
    limits = {name: text for name, text in amounts.items() if "/" in name or name.startswith(_HUGE)}
    resources: dict[str, Any] = {"requests": amounts}
    if limits:
        resources["limits"] = limits
    spec: dict[str, Any] = {
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "headroom", "image": _IMAGE, "resources": resources}],
    }
    if shape.node_selector:
        spec["nodeSelector"] = dict(shape.node_selector)
    if shape.tolerations:
        spec["tolerations"] = [_toleration(toleration) for toleration in shape.tolerations]
    if shape.node_affinity:
        required = json.loads(shape.node_affinity)
        spec["affinity"] = {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}
        }
    if shape.runtime_class:
        spec["runtimeClassName"] = shape.runtime_class
    if shape.claims:
        names = {f"claim-{number}": claim for number, claim in enumerate(shape.claims)}
        resources["claims"] = [{"name": name} for name in names]
        spec["resourceClaims"] = [
            {"name": name, "resourceClaimTemplateName": claim} for name, claim in names.items()
        ]
    return spec


def _requests(spec: Mapping[str, Any], overhead: Mapping[str, Any]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for container in spec.get("containers") or ():
        total.update(_amounts(container))
    starting: dict[str, int] = {}
    sidecars: Counter[str] = Counter()
    for container in spec.get("initContainers") or ():
        needed = _amounts(container)
        if container.get("restartPolicy") == "Always":
            sidecars.update(needed)
            total.update(needed)
            needed = {}
        for name in {*needed, *sidecars}:
            both = needed.get(name, 0) + sidecars[name]
            starting[name] = max(starting.get(name, 0), both)
    for name, milli in starting.items():
        total[name] = max(total[name], milli)
    whole = spec.get("resources") or {}
    for name, milli in _amounts({"resources": whole}).items():
        requested = name in (whole.get("requests") or {})
        if (name in _POD_LEVEL or name.startswith(_HUGE)) and (requested or name not in total):
            total[name] = milli
    total.update(_milli_amounts(overhead))
    # For the scheduler, the maximum number of pods of a node is a resource too.
    return {name: milli for name, milli in total.items() if milli} | {"pods": 1000}


def _amounts(container: Mapping[str, Any]) -> dict[str, int]:
    """Return the requests. A limit is the default of a missing request (``SetDefaults_Pod``)."""
    resources = container.get("resources") or {}
    requests = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return _milli_amounts(requests)


def _milli_amounts(amounts: Mapping[str, Any]) -> dict[str, int]:
    milli_amounts = {name: to_milli(parse(amount)) for name, amount in amounts.items()}
    for name, milli in milli_amounts.items():
        if milli < 0:
            raise ValueError(f"{name} is negative: {amounts[name]}")
    return milli_amounts


def _tolerations(rows: Sequence[Mapping[str, Any]]) -> tuple[Toleration, ...]:
    tolerations = {
        Toleration(
            str(row.get("key") or ""),
            str(row.get("operator") or "Equal"),
            str(row.get("value") or ""),
            str(row.get("effect") or ""),
        )
        for row in rows
        if not (row.get("key") in _EVERY_POD and row.get("tolerationSeconds") is not None)
    }
    return tuple(sorted(tolerations))


def _toleration(toleration: Toleration) -> dict[str, str]:
    # A toleration with Exists must have no value, and an empty key must be left out.
    return {name: value for name, value in toleration._asdict().items() if value}


def _affinity(spec: Mapping[str, Any]) -> str:
    node = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = node.get("requiredDuringSchedulingIgnoredDuringExecution")
    if not required:
        return ""
    terms = [
        {
            kind: sorted((_expression(row) for row in term[kind]), key=_canonical_json)
            for kind in ("matchExpressions", "matchFields")
            if term.get(kind)
        }
        for term in required.get("nodeSelectorTerms") or ()
    ]
    return _canonical_json({"nodeSelectorTerms": sorted(terms, key=_canonical_json)})


def _expression(row: Mapping[str, Any]) -> dict[str, Any]:
    values = sorted(row.get("values") or ())
    return {
        "key": row["key"],
        "operator": row["operator"],
        **({"values": values} if values else {}),
    }


def _canonical_json(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _text(name: str, milli: int) -> str:
    """Return an amount as text: whole MiB in ``Mi``, other amounts in their unit or in ``m``."""
    whole, rest = divmod(milli, 1000)
    if rest:
        return f"{milli}m"
    if name != "cpu" and "/" not in name and whole and whole % (1 << 20) == 0:
        return f"{whole >> 20}Mi"
    return str(whole)
