"""The work that a recording shows, independent of how many pods did it.

Demand is the sum of the metric over the pods that had a value. So it is known only for metrics that
work is divided into: utilization, or requests that run. Requests that wait in a queue are others:
what would have waited with other replicas does not follow from what did.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from adapter.hpa import HpaSpec
from adapter.tools.client.errors import ClientError
from adapter.tools.replay.syncs import RecordedSync

SATURATED: Final = 0.95
"""Share of the highest possible value from which work may have waited, so that the demand was
higher than the sum."""


class RecordedDemand(NamedTuple):
    """One sync's demand."""

    time: float
    """Epoch seconds."""
    total: int | None
    """Thousandths of the metric's unit, over all pods; None if no pod had a value."""
    measured: int
    """Pods that had a value."""
    saturated: bool
    """The pods did as much as they can: the demand was at least this."""
    first: bool
    """Nothing is known of the time before."""
    lacking: int = 0
    """Pods that were ready and had no value: what they did is not part of ``total``."""


def lacking_share(work: Sequence[RecordedDemand]) -> float:
    """Return the share of the pods' demand that has no value, where some pods had one.

    Time in which no pod had a value is unknown time, and not part of it.
    """
    partly = [row for row in work if row.measured]
    lacking = sum(row.lacking for row in partly)
    return lacking / (lacking + sum(row.measured for row in partly)) if lacking else 0.0


def demands(
    spec: HpaSpec, syncs: Sequence[RecordedSync], index: int, highest: int | None
) -> list[RecordedDemand]:
    """Return the demand at each sync.

    Args:
        spec: the HPA.
        syncs: of the recording.
        index: of the metric, among those of the HPA.
        highest: the highest value that a pod can have, in thousandths; None if there is none.
    """
    work = []
    for sync in syncs:
        values = sync.seen.values[index]
        by_pod = values if isinstance(values, Mapping) else {}
        alive = [pod for pod in sync.pods if not pod.deleting and not pod.finished]
        live = {pod.ref.name for pod in alive}
        lacking = sum(pod.ready and pod.ref.name not in by_pod for pod in alive)
        counted = [value for name, value in by_pod.items() if name in live]
        total = sum(counted) if counted else None
        full = (
            highest is not None
            and total is not None
            and total >= SATURATED * highest * len(counted)
        )
        work.append(RecordedDemand(sync.time, total, len(counted), full, sync.first, lacking))
    return work


def require_demand(
    spec: HpaSpec, syncs: Sequence[RecordedSync], work: Sequence[RecordedDemand]
) -> None:
    """Raise ClientError if the demand is known at no sync."""
    if any(demand.total is not None for demand in work):
        return
    about = f"HPA {spec.namespace}/{spec.name} cannot be replayed:"
    if not any(sync.pods for sync in syncs) and spec.target is not None:
        raise ClientError(
            f"{about} the recording has no pod of its target, {spec.target.kind} "
            f"{spec.target.name}: check scaleTargetRef"
        )
    absent: Counter[str] = Counter()
    for sync in syncs:
        absent.update(sync.absent)
    reasons = ", ".join(why for why, _ in absent.most_common(3)) or "all of them had ended"
    raise ClientError(
        f"{about} no pod of the recording has a value of {spec.metrics[0].name}: "
        f"{reasons}; see docs/reasons.md and docs/replay.md#what-is-missing"
    )
