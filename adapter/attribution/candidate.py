"""One device's value on its way into a reading, and what it is selected by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from adapter.attribution.policy import Policy
from adapter.attribution.reading import Attribution, DeviceReading
from adapter.attribution.sharing import Share
from adapter.attribution.split import Given, Place, given, is_exact, of_request
from adapter.catalog.field import Field
from adapter.catalog.labelvalue import label_value
from adapter.catalog.metric import Metric, Sample, Statistic
from adapter.cluster.pod import Pod, PodRef
from adapter.devices.series import Track


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


_NONE: Final[Mapping[str, Share]] = {}


class Candidate(NamedTuple):
    """What one track says about one device."""

    track: Track
    sample: Sample | None
    shared: bool
    share: Share | None
    """Who shares the device, where that is known."""
    given: Given | str | None
    """The pod's part, why it has none, or None without a sample."""
    place: Place
    apt: bool
    """The sample is of what is asked about: a pod's own processes, or the device itself."""

    def rank(self) -> tuple[bool, bool, float, float]:
        """Of one device's candidates: the apt one, the board's own row, the newest, the larger."""
        value, time = (self.sample.value, self.sample.time) if self.sample else (0.0, 0.0)
        return self.apt, not self.track.mig, time, value

    def labels(self, metric: Metric) -> dict[str, str]:
        """What ``metric.selector`` selects by, in words that it can name; what is not known is
        not there."""
        device, claim = self.track.device, self.track.claim
        labels = {
            "device": label_value(device.id),
            "sharing": "shared" if self.shared else "exclusive",
            "attribution": self._how(metric).value,
        }
        model = device.model or self.place.facts.model
        if model:
            labels["model"] = label_value(model)
        if device.mig_profile:
            labels["mig_profile"] = label_value(device.mig_profile)
        if claim is not None and claim.container:
            labels["container"] = claim.container
        return labels

    def reading(self, metric: Metric) -> DeviceReading:
        """The device's part in a reading; the candidate has a sample and is given of it."""
        sample, part, share = self.sample, self.given, self.share
        assert sample is not None and isinstance(part, Given)  # noqa: S101, PT018 - see above
        return DeviceReading(
            device=self.track.device.id,
            value=part.value,
            time=sample.time,
            labels=self.labels(metric),
            basis=sample.series,
            attribution=part.how,
            policy=self.place.policy.value if self.shared else "",
            evidence=share.evidence.value if share else "",
            sharers=len(share.pods) if share else 1,
        )

    def _how(self, metric: Metric) -> Attribution:
        if isinstance(self.given, Given):
            return self.given.how
        if not self.shared:
            return Attribution.EXACT
        split = metric.divisible and self.place.policy in (Policy.EQUAL, Policy.MEMORY)
        return Attribution.SPLIT if split else Attribution.COPIED


def candidate(
    metric: Metric,
    track: Track,
    sample: Sample | None,
    pod: Pod | None,
    place: Place,
) -> Candidate:
    """A device's sample as a pod has it; None for ``pod`` means the device as a whole."""
    share = place.sharing.of.get(pod.ref, _NONE).get(track.device.id) if pod is not None else None
    shared = track.shared or share is not None
    part: Given | str | None = None
    apt = False
    if sample is not None:
        apt = is_exact(track, sample, place.accounting) is (pod is not None)
        if pod is None or not shared:
            how = Attribution.COPIED if shared else Attribution.EXACT
            part = Given(sample.value, how)
        else:
            part = given(metric, sample, track, share, pod, place)
        if metric.of_request and isinstance(part, Given):
            part = of_request(part, pod, track, place.facts, shared=shared)
    return Candidate(track, sample, shared, share, part, place, apt)


def of_device(found: Sequence[Candidate], metric: Metric, pod: Pod | None) -> Candidate:
    """One device's candidate, all its containers' where each has rows of its own.

    Args:
        found: usable ones of one device, at least one.
        metric: that was read of them.
        pod: None for the device as a whole.
    """
    if len(found) == 1:
        return found[0]
    best = max(found, key=Candidate.rank)
    claim = best.track.claim
    if claim is None or not best.track.own:
        return best
    containers: dict[tuple[PodRef, str], Candidate] = {}
    for one in sorted(found, key=Candidate.rank):
        if one.track.own and one.track.claim is not None:
            containers[one.track.claim.pod, one.track.claim.container] = one
    sample = metric.read(Containers([one.track for one in containers.values()]))
    if len(containers) == 1 or sample is None:
        return best
    track = replace(best.track, claim=claim._replace(container=""))
    return candidate(metric, track, sample, pod, best.place)
