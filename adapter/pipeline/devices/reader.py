"""Read the samples of a scrape result into builders: check names, units, ranges and duplicates."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from adapter.pipeline.catalog import Catalog
from adapter.pipeline.catalog.field import Spelling
from adapter.pipeline.cluster.pod import PodRef
from adapter.pipeline.devices.assignment import Mismatch
from adapter.pipeline.devices.builder import SeriesBuilder, merge_without_uid
from adapter.pipeline.devices.histograms import Histograms
from adapter.pipeline.devices.identity import NO_DEVICE, identify
from adapter.pipeline.devices.location import KnownCluster
from adapter.pipeline.devices.options import MAX_SAMPLES, PAGE_TIMES, TelemetryOptions
from adapter.pipeline.devices.parts import Parts
from adapter.pipeline.devices.rejects import Reject, Rejects
from adapter.pipeline.devices.scrapetarget import find_mismatches, merge_into_devices
from adapter.pipeline.devices.series import NO_FIELDS, SeriesKey
from adapter.pipeline.devices.state import NO_REJECTS, Belief, ExporterState, Identity
from adapter.pipeline.devices.tenantlabels import form_belief, keeps_address
from adapter.pipeline.devices.validity import (
    LEAST_SENTINEL,
    SENTINELS,
    Invalid,
    RatioScale,
    complaint,
    percent_of,
    scale_shown,
)
from adapter.pipeline.exposition.bucketnames import bucket_of
from adapter.pipeline.exposition.line import BAD_VALUE, LONG_LABEL, MANY_LABELS
from adapter.pipeline.exposition.lines import CUT_LINE
from adapter.pipeline.exposition.podlabels import possible_pods
from adapter.pipeline.exposition.samples import Sample, ScrapeResult
from apiservice.runtime.steps import StepBudget, Steps, parts

FUTURE = "future_timestamp"
STALE = "stale_sample"
DUPLICATE = "duplicate_series"
INVALID_ON_MIG = "invalid_on_mig"
TOO_MANY = "too_many_devices"
TOO_MANY_TIMES = "too_many_timestamps"

_NO_DEVICE: Final = frozenset((NO_DEVICE, LONG_LABEL, MANY_LABELS))
"""Why a sample that names a pod names no device."""
SAMPLES: Final = 512
"""Samples with known label sets that one step reads: about 0.3 ms."""
DEVICES: Final = 16
"""New label sets that one step reads, or devices that it computes: about 0.3 ms."""

_NOTHING: Final = (0, 0.0, 0.0, 1.0)
"""The numbers of a series that the catalogue does not contain."""


class PageReader:
    """Reads the samples of one scrape result into one builder per device and container."""

    def __init__(
        self,
        before: ExporterState | None,
        result: ScrapeResult,
        catalog: Catalog,
        options: TelemetryOptions,
        rejects: Rejects,
        cluster: KnownCluster,
    ) -> None:
        self._before = before
        self._result = result
        self._catalog = catalog
        self._options = options
        self._times = PAGE_TIMES if result.direct else MAX_SAMPLES
        self._rejects = rejects
        self._builders: dict[int, SeriesBuilder | None] = {}
        self._ratios: list[tuple[SeriesBuilder, Spelling, float, float]] = []
        self._parts = Parts(direct=result.direct)
        self._histograms: Histograms | None = None
        self._forked: list[Sample] = []
        """Samples to read again under each field that their labels select."""
        self.by_key: dict[SeriesKey, SeriesBuilder] = {}
        self.beliefs: dict[int, Belief] = {}
        """See :attr:`adapter.pipeline.devices.state.ExporterState.beliefs`."""
        self.reported: set[str] = set()
        """Fields for which whole devices have samples."""
        self._cluster = cluster
        self.undecided: dict[str, dict[str, float]] = {}
        """Device -> field -> epoch seconds of the newest unreadable sample."""
        self.scale = before.scale if before else RatioScale.AUTO
        """The scale of the exporter's ``_RATIO`` samples."""
        self.pod = PodRef(*result.pod) if result.pod else before.pod if before else None
        """The exporter's own pod, if known."""
        self.plain = False
        """Whether each sample was read regardless of the others; set by the last step."""
        self.incomplete = NO_FIELDS
        """See :attr:`adapter.pipeline.devices.series.DeviceSeries.incomplete`."""
        self.disowned: Mapping[PodRef, Mismatch] = {}
        """See :attr:`adapter.pipeline.devices.state.ExporterState.disowned`."""
        self._declared = 0
        """Builders of parts whose labels the catalogue states."""
        self._refusals = 0
        """Label sets without a builder, because there are too many."""
        self._incomplete: set[str] = set()
        """Fields of servers of which samples were refused."""
        self._unidentified: list[Identity] = []
        self.rejected: Mapping[PodRef, str] = NO_REJECTS
        """See :attr:`adapter.pipeline.devices.state.ExporterState.rejected`."""

    def read(self) -> Steps[None]:
        """Read the scrape result. Use the builders only after the last step."""
        yield from self._read(self._result.samples)
        yield from self._read(self._forked)
        self._note_unread()
        self._note_incomplete()
        yield from self._settle_ratios()
        yield from self._parts.settle()
        if self._histograms is not None:
            yield from self._histograms.settle()
        if self._incomplete:
            yield from self._leave_out_incomplete()
        yield from self._report()
        if len(self.by_key) > DEVICES:
            yield
        as_read = self.by_key
        self.disowned = self._disown()
        self.rejected = self._pods_without_device()
        self.by_key = merge_without_uid(self.by_key)
        self.plain = not (
            self._forked
            or self._ratios
            or self.undecided
            or self.disowned
            or self._refusals
            or self.by_key.keys() != as_read.keys()
        )

    def flaw_and_builder(
        self, labels: Mapping[str, str], spelling: Spelling
    ) -> tuple[str, SeriesBuilder | None]:
        """Return the builder of a sample that was read, and why it would be left out."""
        address = id(labels) + spelling.salt
        builder = self._builders[address]
        return self._flaw(address, builder), builder

    def _read(self, samples: Sequence[Sample]) -> Steps[None]:
        """Read every sample whose series the catalogue contains, in steps."""
        if len(samples) <= SAMPLES:
            yield from self._take(samples)
            return
        for some in parts(samples, SAMPLES):
            yield from self._take(some)
            yield

    def _take(self, samples: Sequence[Sample]) -> Steps[None]:
        """Read some samples. This loop is the main cost of a scrape."""
        spellings, builders, sentinel = self._catalog.spellings, self._builders, LEAST_SENTINEL
        received = self._result.received
        stale = received - self._options.oldest
        last, spelling, salt = None, None, 0
        low, high, factor = 0.0, 0.0, 1.0
        for name, labels, value, time in samples:
            if name is not last:  # the samples of one series are adjacent
                last, spelling = name, spellings.get(name) or self._bucket(name)
                salt, low, high, factor = _NOTHING if spelling is None else spelling.numbers
            if spelling is None:
                self._forked += self._label_variants(name, labels, value, time)
                continue
            # A label set may describe both a device and a server. Addresses are aligned.
            try:
                builder = builders[id(labels) + salt]
            except KeyError:
                builder = builders[id(labels) + salt] = self._builder(
                    id(labels) + salt, labels, spelling
                )
                if not len(builders) % DEVICES:
                    yield
            if builder is None or (builder.mig and not spelling.on_mig):
                self._count_flaw(id(labels) + salt, builder, spelling)
                continue
            measured = time if stale < time <= received else self._odd_time(time)
            if spelling.special:
                self._put_aside(builder, spelling, labels, value, measured)
            elif low <= value <= high and (value < sentinel or value not in SENTINELS):
                # The same as complaint and SeriesBuilder.put, without the cost of the calls.
                frame = builder.last if builder.time == measured else builder.frame(measured)
                number = value * factor
                if frame.setdefault(spelling, number) != number:
                    frame[spelling] = max(frame[spelling], number)
                    self._rejects.count(DUPLICATE)
            else:
                wrong = complaint(value, low, high)
                self._reject(builder, spelling, wrong or Invalid.OUT_OF_RANGE, value)

    def _report(self) -> Steps[None]:
        """Keep each device's newest times. Record the fields of whole devices."""
        spellings: set[Spelling] = set()
        step = StepBudget(SAMPLES)
        for builder in self.by_key.values():
            builder.keep_newest()
            if not builder.mig:
                spellings.update(*builder.frames.values())
            if step.spent(len(builder.frames)):
                yield
        self.reported.update(spelling.field.name for spelling in spellings)

    def _flaw(self, address: int, builder: SeriesBuilder | None) -> str:
        """Return why the samples of a label set are left out."""
        if builder is not None:
            return INVALID_ON_MIG
        belief = self.beliefs.get(address)
        return TOO_MANY if belief is None else belief.identity.flaw

    def _count_flaw(self, address: int, builder: SeriesBuilder | None, spelling: Spelling) -> None:
        """Count a sample that is left out, and note a server's field that is incomplete now."""
        flaw = self._flaw(address, builder)
        self._rejects.count(flaw)
        if flaw is TOO_MANY and spelling.server:
            self._incomplete.add(spelling.field.name)

    def _leave_out_incomplete(self) -> Steps[None]:
        """Leave out the fields of servers of which samples were refused.

        The sum of some parts is smaller than that of all, and so is that of earlier pages.
        """
        self.incomplete = frozenset(self._incomplete)
        self.reported |= self.incomplete
        earlier = dict.fromkeys(self.incomplete, self._result.received)
        for number, builder in enumerate(self.by_key.values(), 1):
            if builder.identity.serves:
                builder.drop(self.incomplete)
                self.undecided.setdefault(builder.identity.key.device, {}).update(earlier)
            if not number % SAMPLES:
                yield

    def _label_variants(
        self, name: str, labels: Mapping[str, str], value: float, time: float
    ) -> Iterator[Sample]:
        """Yield the sample once for each field that its labels select."""
        bucket = bucket_of(name)
        if bucket is not None:
            name, labels = bucket[0], {**labels, "le": bucket[1]}
            if name in self._catalog.spellings:  # a user's own row about the bucket
                yield Sample(name, labels, value, time)
        for alias, spelling in self._catalog.label_variants.get(name, ()):
            if spelling.fits(labels):
                yield Sample(alias, labels, value, time)

    def _put_aside(
        self,
        builder: SeriesBuilder,
        spelling: Spelling,
        labels: Mapping[str, str],
        value: float,
        time: float,
    ) -> None:
        """Keep a sample whose meaning depends on the rest of the page."""
        if spelling.traps:
            self._ratios.append((builder, spelling, value, time))
            return
        if spelling.role is not None:
            if self._histograms is None:
                self._histograms = Histograms(self._catalog, self._reject)
            self._histograms.add(builder, spelling, labels, value, time)
            return
        wrong = complaint(value, spelling.low, spelling.high)
        if wrong is not None:
            self._reject(builder, spelling, wrong, value)
            self._parts.reject(builder, spelling, time)
        elif not self._parts.add(builder, spelling, labels, value * spelling.factor, time):
            self._rejects.count(DUPLICATE)

    def _settle_ratios(self) -> Steps[None]:
        """Read the ``_RATIO`` samples, whose scale follows only from the whole page."""
        sound = []
        for number, (builder, spelling, value, time) in enumerate(self._ratios, 1):
            if not number % SAMPLES:
                yield
            wrong = complaint(value, 0.0, 100.0)
            if wrong is not None:
                self._reject(builder, spelling, wrong, value)
            else:
                sound.append((builder, spelling, value, time))
        if self._options.ratio_scale is RatioScale.AUTO:
            self.scale = scale_shown((value for _, _, value, _ in sound), self.scale)
        else:
            self.scale = self._options.ratio_scale
        for number, (builder, spelling, value, time) in enumerate(sound, 1):
            if not number % SAMPLES:
                yield
            percent = percent_of(value, self.scale)
            if isinstance(percent, Invalid):
                self._reject(builder, spelling, percent, value)
                if percent is Invalid.AMBIGUOUS_SCALE:
                    self._leave_open(builder, spelling, time)
            elif not builder.put(spelling, percent, time):
                self._rejects.count(DUPLICATE)

    def _leave_open(self, builder: SeriesBuilder, spelling: Spelling, time: float) -> None:
        """Drop samples up to ``time`` for a device that may be at 1 % or at 100 %."""
        fields = self.undecided.setdefault(builder.identity.key.device, {})
        name = spelling.field.name
        fields[name] = max(time, fields.get(name, time))

    def _has_room(self, *, declared: bool) -> bool:
        """Return whether one more builder fits.

        Args:
            declared: the catalogue states which labels identify it. Clients cannot make more of
                these, so the parts that clients make leave room for them.
        """
        kept = self._declared if declared else len(self.by_key) - self._declared
        return kept < self._most_builders()

    def _most_builders(self) -> int:
        options = self._options
        return options.server_series if self._result.serves else options.max_series

    def _is_futile(self, spelling: Spelling, *, declared: bool) -> bool:
        """Return whether one more label set is not worth its identity, which costs time.

        Each label set that clients make is a part of its own, so none has a builder already. One
        of a device may have; but of a page with twice as many label sets as fit, no more is read.
        """
        if spelling.server:
            return not (declared or self._has_room(declared=False))
        return self._refusals > self._most_builders()

    def _builder(
        self, address: int, labels: Mapping[str, str], spelling: Spelling
    ) -> SeriesBuilder | None:
        declared = spelling.has_declared_parts(direct=self._result.direct)
        if self._is_futile(spelling, declared=declared):
            self._refusals += 1
            return None
        before = self._before.beliefs.get(address) if self._before else None
        if (
            before is not None
            and before.known.labels is labels
            and keeps_address(before, self._cluster)
        ):
            known = before.known
        else:
            known = self._identify(labels, spelling)
        belief = form_belief(
            known,
            self._cluster.pod,
            lambda left: self._identify(left, spelling),
            before,
        )
        identity, key = belief.identity, belief.key
        device = identity.device
        builder = self.by_key.get(key) if device is not None else None
        if device is not None and builder is None and not self._has_room(declared=declared):
            self._refusals += 1
            return None
        self.beliefs[address] = belief
        for reason in belief.aside:
            self._rejects.add(
                Reject(reason, "", device.id if device else ""), self._result.received
            )
        if device is None:
            self._unidentified.append(known)
            return None
        if builder is None:
            builder = self.by_key[key] = SeriesBuilder(identity, self._times)
            self._declared += declared
        builder.replica = builder.replica or identity.replica
        return builder

    def _identify(self, labels: Mapping[str, str], spelling: Spelling) -> Identity:
        return identify(labels, spelling, self._result, self.pod, self._cluster.pod_at)

    def _odd_time(self, time: float) -> float:
        if time > self._result.received:
            self._rejects.count(FUTURE)
            return self._result.received
        self._rejects.count(STALE)
        return time

    def _bucket(self, name: str) -> Spelling | None:
        """Return the spelling of a bucket whose name has its bound; None for other series."""
        bucket = bucket_of(name)
        if bucket is None or bucket[0] in self._catalog.label_variants:
            return None
        return self._catalog.bucket(bucket[0], float(bucket[1]))

    def _reject(
        self, builder: SeriesBuilder, spelling: Spelling, reason: str, value: float
    ) -> None:
        device = builder.identity.device
        builder.rejected.add(spelling.field.name)
        if not builder.mig:
            self.reported.add(spelling.field.name)
        reject = Reject(reason, spelling.name, device.id if device else "")
        self._rejects.add(reject, self._result.received, value)

    def _note_unread(self) -> None:
        """Note the devices of samples whose number could not be read; the page is bounded."""
        for name, labels, _, time in self._result.unread:
            spelling = self._catalog.spellings.get(name)
            if spelling is None:
                continue
            address = id(labels) + spelling.salt
            if address not in self._builders:
                self._builders[address] = self._builder(address, labels, spelling)
            builder = self._builders[address]
            device = builder.identity.device if builder is not None else None
            if builder is None or device is None:
                continue
            builder.rejected.add(spelling.field.name)
            self._parts.reject(builder, spelling, time)
            if not builder.mig:
                self.reported.add(spelling.field.name)
            self._rejects.note(Reject(BAD_VALUE, spelling.name, device.id), self._result.received)

    def _note_incomplete(self) -> None:
        """Note the fields of a server of which the page does not have all samples, or not all that
        were read: the sum of the others is too small."""
        for name in self._result.incomplete if self._result.serves else ():
            bucket = bucket_of(name)
            spelling = self._catalog.spellings.get(bucket[0] if bucket else name)
            if spelling is not None and spelling.server:
                self._incomplete.add(spelling.field.name)
        if CUT_LINE in self._result.rejects and self._result.samples:
            last_spelling = self._catalog.spellings.get(self._result.samples[-1].name)
            if last_spelling is not None:
                self._parts.reject_all(last_spelling)

    def _pods_without_device(self) -> Mapping[PodRef, str]:
        """Return the pods that samples without a device name, and why there is none."""
        flawed = [identity for identity in self._unidentified if identity.flaw in _NO_DEVICE]
        if not flawed:
            return NO_REJECTS
        if self._result.serves and self.pod is not None:
            return {self.pod: flawed[-1].flaw}
        direct = self._result.direct
        return {
            PodRef(*names): identity.flaw
            for identity in flawed
            for names in possible_pods(identity.labels, direct=direct)
        }

    def _disown(self) -> Mapping[PodRef, Mismatch]:
        """Return samples that name the scrape target to their devices, and find the exporter's pod.

        Returns:
            The pods that the samples name without being about them, and why.
        """
        identities = (belief.identity for belief in self.beliefs.values())
        scraped = frozenset(i.target for i in identities if i.target is not None)
        mismatches = find_mismatches(self.by_key, scraped, self._cluster.pod)
        self.by_key = merge_into_devices(
            self.by_key, mismatches, self._rejects, self._result.received
        )
        disowned: dict[PodRef, Mismatch] = {}
        for key, reason in mismatches.items():
            # Samples may differ in whether they look like the target's: then one that does decides.
            if key.pod and disowned.get(key.pod) is not Mismatch.SELF_ATTRIBUTION:
                disowned[key.pod] = reason
        if self._result.pod is None:
            # A range of samples may name an exporter's pod and its successor.
            existing = {ref for ref in scraped or disowned if self._cluster.pod(ref) is not None}
            self.pod = next(
                (r for r in map(_only_ref, (existing, scraped)) if r is not None), self.pod
            )
        return disowned


def _only_ref(refs: Collection[PodRef]) -> PodRef | None:
    return next(iter(refs)) if len(refs) == 1 else None
