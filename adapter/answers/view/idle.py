"""Since when devices, pods and workloads are idle."""

from __future__ import annotations

from collections.abc import Iterable

from adapter.answers.view.podvalues import AskedPod
from adapter.pipeline.devices.series import DeviceSeries, idle_since
from adapter.pipeline.store.snapshot import Snapshot


def device_idle(all_series: Iterable[DeviceSeries], snapshot: Snapshot, now: float) -> float | None:
    """Return since when a device is idle (epoch seconds).

    None if one of its series shows work, if none can show it, or if they are past the age limit.
    """
    return idle_since(all_series, now - snapshot.options.oldest)


def pod_idle(asked_pod: AskedPod) -> float | None:
    """Return since when all devices that samples name the pod for are idle, at most since its
    creation. None for a placeholder, whose devices are free."""
    if asked_pod.pod.placeholder:
        return None
    since = device_idle(
        asked_pod.snapshot.series_naming(asked_pod.pod.ref), asked_pod.snapshot, asked_pod.now
    )
    return None if since is None else max(since, asked_pod.pod.born)
