"""Jobs, each reduced to the number and the shape of its pods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from adapter.nodepool.model.shape import Shape
from adapter.nodepool.seen.meta import NamespacedObject, ObjectMeta
from adapter.nodepool.seen.podspec import shape_of
from adapter.pipeline.cluster.gpuresources import STANDARD, GpuResources
from adapter.pipeline.cluster.table import Table

PATH = "/apis/batch/v1/jobs"
_ENDED = frozenset({"Complete", "Failed", "SuccessCriteriaMet", "FailureTarget"})


@dataclass(frozen=True, slots=True)
class JobInfo(NamespacedObject):
    """A Job."""

    namespace: str
    name: str
    left: int
    """Pods that it should have now."""
    suspended: bool
    """Suspended, for example by Kueue: it has no pods until it is resumed."""
    shape: Shape
    priority_class: str


JobInfoTable = Table[tuple[str, str], JobInfo]


def decode(raw: msgspec.Raw | bytes, resources: GpuResources = STANDARD) -> JobInfo:
    """Decode a Job, with the resources that stand for a GPU.

    Raises:
        msgspec.DecodeError: the text is not JSON.
        ValueError: the Job has no template, or an amount is not a quantity.
    """
    manifest: dict[str, Any] = msgspec.json.decode(raw)
    spec: dict[str, Any] = manifest.get("spec") or {}
    template = (spec.get("template") or {}).get("spec")
    if not template:
        raise ValueError("spec.template.spec is missing")
    meta = msgspec.convert(manifest.get("metadata"), ObjectMeta)
    return JobInfo(
        namespace=meta.namespace,
        name=meta.name,
        left=pods_left(manifest),
        suspended=bool(spec.get("suspend")),
        shape=shape_of(template, resources),
        priority_class=str(template.get("priorityClassName") or ""),
    )


def pods_left(job: Mapping[str, Any]) -> int:
    """Return how many pods a Job should have now, as its controller calculates it.

    The number is ``parallelism``, but at most the remaining ``completions``. Without
    ``completions`` (a work queue), no pod is started after the first success (``manageJob`` of
    ``pkg/controller/job/job_controller.go``).
    """
    spec, status = job.get("spec") or {}, job.get("status") or {}
    rows = status.get("conditions") or ()
    ended = any(row.get("type") in _ENDED and row.get("status") == "True" for row in rows)
    if ended or spec.get("suspend") or (job.get("metadata") or {}).get("deletionTimestamp"):
        return 0
    parallelism, completions = spec.get("parallelism"), spec.get("completions")
    if parallelism is None:
        parallelism = 1
        completions = 1 if completions is None else completions
    succeeded = int(status.get("succeeded") or 0)
    if completions is None:
        return int(status.get("active") or 0) if succeeded else int(parallelism)
    return max(0, min(int(parallelism), int(completions) - succeeded))
