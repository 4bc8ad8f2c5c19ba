"""Containers on one device whose rows are their own parts of it, taken together.

An exporter that looks into containers (HAMi) has a row per container where others have the
device's; so two containers of a pod on one device use what both rows say.
"""

from __future__ import annotations

from collections.abc import Sequence

from adapter.catalog.field import Field
from adapter.catalog.metric import Sample, Statistic
from adapter.devices.state import Track


class Containers:
    """Implements :class:`adapter.catalog.metric.Evidence`: their own values added up.

    A sum of shares that were measured one after the other may exceed what a device has: it
    is bounded by the field's range. It is as old as its oldest part.

    Args:
        tracks: of one device, one per container.
    """

    def __init__(self, tracks: Sequence[Track]) -> None:
        self._tracks = tracks

    @property
    def mig(self) -> bool:
        """The device is a MIG instance."""
        return self._tracks[0].mig

    def sample(self, field: str, what: Statistic) -> Sample | None:
        """The sum over the containers that have the field; the newest of what is not theirs."""
        found = [s for track in self._tracks if (s := track.sample(field, what)) is not None]
        if not found:
            return None
        newest = max(found, key=lambda sample: sample.time)
        kind = self._field(field)
        if kind is None or not kind.exact:
            return newest
        total = min(sum(sample.value for sample in found), kind.high)
        return newest._replace(value=total, time=min(sample.time for sample in found))

    def reports(self, field: str) -> bool:
        """An exporter of one of them writes rows of this field."""
        return any(track.reports(field) for track in self._tracks)

    def _field(self, name: str) -> Field | None:
        for track in self._tracks:
            layout = track.history.layout
            for column in layout.of_field.get(name, ()):
                return layout.columns[column].field
        return None
