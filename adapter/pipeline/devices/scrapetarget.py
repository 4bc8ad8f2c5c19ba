"""Find samples that name the exporter's own pod only because a scrape added its labels.

A Prometheus scrape adds the target's ``pod``, ``namespace`` and ``container`` to every sample.
On a sample of an unassigned device these labels look like an assignment of the device to the
exporter, both with ``honorLabels: false`` and with ``true``. Such a sample is about the device
without a pod.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from adapter.pipeline.cluster.pod import Find, PodRef
from adapter.pipeline.devices.assignment import Assignment, Mismatch, mismatch
from adapter.pipeline.devices.builder import SeriesBuilder
from adapter.pipeline.devices.rejects import Reject, Rejects
from adapter.pipeline.devices.series import SeriesKey
from adapter.pipeline.exposition.podlabels import is_renamed, shows_workload


def find_mismatches(
    builders: Mapping[SeriesKey, SeriesBuilder], targets: Collection[PodRef], find: Find
) -> dict[SeriesKey, Mismatch]:
    """Return the builders whose samples name the scrape target's pod -> the mismatch.

    Args:
        targets: pods of scrape targets.
    """
    mismatches: dict[SeriesKey, Mismatch] = {}
    unknown: dict[SeriesKey, Mismatch] = {}
    for key, builder in builders.items():
        assignment, labels = builder.identity.assignment, builder.identity.labels
        if assignment is None or assignment.serves:
            continue
        reason = _find_mismatch(assignment, labels, targets, find)
        if reason is Mismatch.UNKNOWN_POD:
            unknown[key] = reason
        elif reason is not None:
            mismatches[key] = reason
    if not mismatches and len({key.pod for key in unknown}) == 1:
        # The target is not a known pod: assigned samples with more labels show that it is a target.
        assigned = {
            key.device
            for key, builder in builders.items()
            if shows_workload(builder.identity.labels)
        }
        mismatches = {key: reason for key, reason in unknown.items() if key.device in assigned}
    return mismatches


def _is_assigned(assignment: Assignment, labels: Mapping[str, str]) -> bool:
    """Return whether the labels alone show that the exporter named the pod."""
    return not assignment.suspect and ("instance" not in labels or shows_workload(labels))


def merge_into_devices(
    builders: Mapping[SeriesKey, SeriesBuilder],
    mismatches: Mapping[SeriesKey, Mismatch],
    rejects: Rejects,
    time: float,
) -> dict[SeriesKey, SeriesBuilder]:
    """Return the builders, with those that name a scrape target merged into their devices'."""
    if not mismatches:
        return dict(builders)
    merged = {key: builder for key, builder in builders.items() if key not in mismatches}
    for key, reason in mismatches.items():
        builder = builders[key]
        detail = f"{key.pod.namespace}/{key.pod.name}" if key.pod else ""
        rejects.add(Reject(reason, "", key.device), time, detail=detail)
        bare = SeriesKey(key.device, None, "", "")
        if bare not in merged:
            merged[bare] = SeriesBuilder(
                builder.identity._replace(assignment=None, target=None, replica=False),
                builder.most,
            )
        merged[bare].take(builder)
    return merged


def _find_mismatch(
    assignment: Assignment, labels: Mapping[str, str], targets: Collection[PodRef], find: Find
) -> Mismatch | None:
    if is_renamed(labels):
        return None
    if assignment.pod in targets:
        return Mismatch.SELF_ATTRIBUTION
    if _is_assigned(assignment, labels):
        return None
    pod = find(assignment.pod)
    if pod is not None and pod.may_hold_gpu:
        return None
    return mismatch(assignment._replace(uid=""), pod, None)
