"""Build a device series while the samples of a page are read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from math import inf, nan

from adapter.pipeline.catalog.field import Spelling
from adapter.pipeline.cluster.pod import PodRef
from adapter.pipeline.devices.history import Frame
from adapter.pipeline.devices.options import MAX_SAMPLES
from adapter.pipeline.devices.series import SeriesKey
from adapter.pipeline.devices.state import Identity

Holders = Mapping[str, set[PodRef]]
"""Device -> the pods that it is assigned to in this scrape result."""


class SeriesBuilder:
    """Collects the samples of one device series.

    Args:
        most: times to keep, the newest ones.
    """

    __slots__ = (
        *("frames", "identity", "last", "left_out", "mig", "most", "rejected", "replica", "time"),
    )

    def __init__(self, identity: Identity, most: int = MAX_SAMPLES) -> None:
        self.identity = identity
        self.most = most
        self.mig = identity.device is not None and identity.device.mig
        self.replica = identity.replica
        self.frames: dict[float, Frame] = {}
        self.last: Frame = {}
        """The frame of ``time``, which was requested last."""
        self.time = nan
        self.left_out = 0
        """Samples older than the newest ``most`` times."""
        self.rejected: set[str] = set()
        """Fields of which a sample was left out because of its number."""

    def frame(self, time: float) -> Frame:
        """Return the frame of a time; create it if needed."""
        frame = self.frames.get(time)
        if frame is None:
            if len(self.frames) >= 2 * self.most:
                self.keep_newest()
            frame = self.frames[time] = {}
        self.time, self.last = time, frame
        return frame

    def keep_newest(self) -> None:
        """Forget the oldest times beyond ``most``, in any order of samples."""
        surplus = len(self.frames) - self.most
        if surplus <= 0:
            return
        for time in sorted(self.frames)[:surplus]:
            self.left_out += len(self.frames.pop(time))
        self.time = nan

    def put(self, spelling: Spelling, value: float, time: float) -> bool:
        """Add a sample; return False if the frame already had a different value.

        Two replicas of one GPU in one pod see the same processes. Of two values the larger one is
        kept, never the sum (dcgm-exporter#725).
        """
        frame = self.frame(time)
        earlier = frame.setdefault(spelling, value)
        if earlier == value:
            return True
        frame[spelling] = max(earlier, value)
        return False

    def take(self, other: SeriesBuilder) -> None:
        """Add the samples of another builder of the same device series."""
        for time, frame in other.frames.items():
            for spelling, value in frame.items():
                self.put(spelling, value, time)
        self.replica = self.replica or other.replica
        self.left_out += other.left_out
        self.rejected |= other.rejected
        self.keep_newest()

    def drop(self, fields: frozenset[str], until: float = inf, but: Collection[float] = ()) -> bool:
        """Remove every value of these fields up to a time, except at the times in ``but``.

        Returns:
            Whether a value was removed.
        """
        dropped, self.time = False, nan
        for time, frame in self.frames.items():
            if time <= until and time not in but:
                left = {s: v for s, v in frame.items() if s.field.name not in fields}
                dropped = dropped or len(left) < len(frame)
                self.frames[time] = left
        return dropped


def merge_without_uid(
    builders: Mapping[SeriesKey, SeriesBuilder],
) -> dict[SeriesKey, SeriesBuilder]:
    """Merge builders whose samples have no pod UID into those of the same pod that have one.

    Only some samples of a page carry a UID. If the UID distinguishes two pods with one name,
    the samples without it could be about either and stay separate.
    """
    with_uid: dict[SeriesKey, list[SeriesKey]] = {}
    for key in builders:
        if key.uid:
            with_uid.setdefault(key._replace(uid=""), []).append(key)
    merged = dict(builders)
    for bare, keys in with_uid.items():
        if len(keys) == 1 and bare in merged:
            merged[keys[0]].take(merged.pop(bare))
    return merged


def holders(builders: Iterable[SeriesKey]) -> Holders:
    """Return each device's assigned pods."""
    by_device: dict[str, set[PodRef]] = {}
    for key in builders:
        if key.pod is not None:
            by_device.setdefault(key.device, set()).add(key.pod)
    return by_device


def find_superseded(builders: Mapping[SeriesKey, SeriesBuilder]) -> frozenset[SeriesKey]:
    """Return the builders of pods whose device was assigned to another pod later.

    A range of stored samples holds both the pod that had a device and the pod that has it
    now. This alone does not make the device shared. Pods of one page, and pods that alternate
    within the range, do share it.
    """
    taken: dict[str, float] = {}
    contested = {device for device, pods in holders(builders).items() if len(pods) > 1}
    if not contested:
        return frozenset()
    for key, builder in builders.items():
        if key.device in contested and key.pod is not None and builder.frames:
            first = min(builder.frames)
            taken[key.device] = max(first, taken.get(key.device, first))
    return frozenset(
        key
        for key, builder in builders.items()
        if key.pod is not None
        and key.device in contested
        and max(builder.frames, default=float("inf")) < taken.get(key.device, float("-inf"))
    )
