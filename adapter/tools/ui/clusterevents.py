"""Entries of the timeline from the cluster's own events."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, Final

from adapter.pipeline.cluster.gpuresources import STANDARD
from adapter.tools.explain.history import event_time
from adapter.tools.explain.words import one_line
from adapter.tools.ui.entries import About, TimelineEntry

Json = dict[str, Any]

_SIZE: Final = re.compile(r"New size: (\d{1,9})(?:; reason: (.*))?", re.DOTALL)
_RESOURCE: Final = re.compile(r"[a-z0-9.-]{1,253}/[A-Za-z0-9_.-]{0,62}[A-Za-z0-9]")
_REPEATS: Final = ("FailedComputeMetricsReplicas",)
"""Says what another event of the same sync says."""
_LONGEST: Final = 250


def entry_of(event: Json, gpu_pods: Collection[tuple[str, str]]) -> TimelineEntry | None:
    """Return the entry of an event; None for one that the timeline does not show.

    Args:
        event: of ``v1``.
        gpu_pods: the pods of ``gpupods``: other pods wait for other reasons.
    """
    time, about = event_time(event), event.get("involvedObject") or {}
    if time is None or event.get("reason") in _REPEATS:
        return None
    namespace, name = str(about.get("namespace") or ""), str(about.get("name") or "")
    reason, message = str(event.get("reason") or ""), str(event.get("message") or "")
    if about.get("kind") == "HorizontalPodAutoscaler":
        return _of_hpa(time, About("hpa", namespace, name), event, reason, message)
    if about.get("kind") != "Pod":
        return None
    where = About("pod", namespace, name)
    if (namespace, name) not in gpu_pods and not any(
        map(STANDARD.is_gpu, _RESOURCE.findall(message))
    ):
        return None
    if reason == "FailedScheduling":
        text = f"pod {namespace}/{name} waits for a node"
        return TimelineEntry(time, "pod", "warning", text, where, one_line(message, _LONGEST))
    text = f"a node is ordered for pod {namespace}/{name}"
    return TimelineEntry(time, "node", "info", text, where, one_line(message, _LONGEST))


def _of_hpa(
    time: float, about: About, event: Json, reason: str, message: str
) -> TimelineEntry | None:
    name = f"{about.namespace}/{about.name}"
    if match := _SIZE.search(message):
        why = one_line(match[2] or "", _LONGEST)
        return TimelineEntry(time, "scale", "info", f"{name} scales to {match[1]}", about, why)
    if event.get("type") != "Warning":
        return None
    text = f"{name}: {one_line(reason, 60)}"
    return TimelineEntry(time, "hpa", "warning", text, about, one_line(message, _LONGEST))
