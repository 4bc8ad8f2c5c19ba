"""How many devices the claims of a ResourceClaimTemplate (DRA) ask for. Pure.

``resource.k8s.io`` v1 and v1beta2 nest an exact request under ``exactly``; v1beta1 does not.
Every device counts as a GPU, whatever its class: a cap is then never exceeded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def devices(template: Mapping[str, Any]) -> int | None:
    """The devices of one claim, the most where it leaves a choice.

    Args:
        template: a ResourceClaimTemplate.

    Returns:
        None where no number is named: ``allocationMode: All``, or a mode that is unknown.

    Raises:
        ValueError: a count is negative.
    """
    claim = (template.get("spec") or {}).get("spec") or {}
    total = 0
    for request in (claim.get("devices") or {}).get("requests") or ():
        choices = request.get("firstAvailable") or [request.get("exactly") or request]
        counts = [_count(choice) for choice in choices]
        known = [count for count in counts if count is not None]
        if len(known) < len(counts):
            return None
        total += max(known)
    return total


def _count(request: Mapping[str, Any]) -> int | None:
    if request.get("adminAccess"):
        # Monitoring looks at a device that another pod holds.
        return 0
    if (request.get("allocationMode") or "ExactCount") != "ExactCount":
        return None
    count = request.get("count")
    if count is None:
        return 1
    if int(count) < 0:
        raise ValueError(f"a claim asks for {count} devices")
    return int(count)
