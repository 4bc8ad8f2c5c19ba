"""The state of one exporter: its devices, their assignments, and their samples."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from adapter.pipeline.cluster.pod import Pod, PodRef
from adapter.pipeline.devices.assignment import Assignment, Mismatch
from adapter.pipeline.devices.device import Device
from adapter.pipeline.devices.earlierpages import NO_EARLIER_PAGES, EarlierPages
from adapter.pipeline.devices.idlepower import IdlePower
from adapter.pipeline.devices.series import DeviceSeries, SeriesKey, Verdict, series_key
from adapter.pipeline.devices.validity import RatioScale

NO_REJECTS: Final[Mapping[PodRef, str]] = {}
_NOTHING: Final[Mapping[int, Any]] = {}


class Identity(NamedTuple):
    """What a label set names. Computed once per label set."""

    labels: Mapping[str, str]
    """Kept so that the address of the label set is not reused."""
    device: Device | None
    assignment: Assignment | None = None
    target: PodRef | None = None
    host: str = ""
    replica: bool = False
    """Whether the sample carries the label ``vgpu``."""
    flaw: str = ""
    """Why there is no device: the reject reason of the samples."""
    named: tuple[PodRef, ...] = ()
    """Every pod that the labels could name, once; empty for samples that are not about a
    device."""
    cluster: str = ""
    """The cluster that the sample names, as stores with several clusters write it."""
    otherwise: tuple[Assignment, ...] = ()
    """What the labels may also say: the first of them counts whose pod exists and holds a GPU, if
    that of ``assignment`` does not (:func:`adapter.pipeline.exposition.podlabels.workload`)."""
    address: str = ""
    """The IP address by which the pod of a server was looked for; empty if its labels name it."""

    hides_pods: bool = False
    """Several pods have the device, and the sample names none of them."""

    @property
    def serves(self) -> bool:
        """Whether the sample is about the process that serves the page."""
        return self.assignment is not None and self.assignment.serves

    @property
    def assignable(self) -> bool:
        """Whether the sample is about a device, or a server, and may name a pod."""
        return self.device is not None and (self.assignment is not None or bool(self.otherwise))

    @property
    def key(self) -> SeriesKey:
        """The device series that the sample belongs to."""
        return series_key(self.device, self.assignment)


class Belief(NamedTuple):
    """What a label set names without the labels of a tenant; valid while the pods are unchanged."""

    known: Identity
    """What all of the labels name."""
    pods: tuple[Pod | None, ...]
    """The pods that the labels could name, as they were."""
    identity: Identity
    aside: tuple[str, ...]
    """The reasons for which labels were ignored."""
    key: SeriesKey
    """The key of ``identity``."""
    lasts: bool
    """Whether no label is a tenant's, so that the result depends on nothing else."""


K = TypeVar("K")
V = TypeVar("V")


class OnDemand(Mapping[K, V]):
    """A mapping whose values are made when they are first read.

    Args:
        keys: all of its keys, in their order.
        make: makes the value of a key.
    """

    __slots__ = ("_keys", "_made", "_make")

    def __init__(self, keys: Collection[K], make: Callable[[K], V]) -> None:
        self._keys = keys
        self._make = make
        self._made: dict[K, V] = {}

    def __getitem__(self, key: K) -> V:
        made = self._made.get(key)
        if made is None:
            if key not in self._keys:
                raise KeyError(key)
            made = self._made[key] = self._make(key)
        return made

    def __iter__(self) -> Iterator[K]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)


class Contents(NamedTuple):
    """The device series of an exporter, and what the same pages show. Immutable to its readers."""

    all_series: Mapping[SeriesKey, DeviceSeries]
    reported: Mapping[str, float]
    """Field -> epoch seconds of the last sample of a whole device."""
    idle: IdlePower
    """The power that its devices draw when idle; never changed."""
    pods: Mapping[PodRef, tuple[DeviceSeries, ...]]
    devices: Mapping[str, tuple[DeviceSeries, ...]]


class NumberPages(Protocol):
    """The last pages of an exporter as numbers (:mod:`adapter.pipeline.devices.pages`)."""

    @property
    def outline(self) -> Contents:
        """The device series, maybe without samples."""

    @property
    def idle(self) -> IdlePower:
        """See :class:`Contents`."""

    def contents(self) -> Contents:
        """Return the device series."""

    def verdict(self, key: SeriesKey) -> Verdict | None:
        """Return the verdict on a device series; None if there is no such series."""


def contents_of(
    all_series: Mapping[SeriesKey, DeviceSeries], reported: Mapping[str, float], idle: IdlePower
) -> Contents:
    """Return contents with their device series by pod and by device."""
    pods: dict[PodRef, list[DeviceSeries]] = {}
    devices: dict[str, list[DeviceSeries]] = {}
    for key, series in all_series.items():
        devices.setdefault(key.device, []).append(series)
        if key.pod is not None:
            pods.setdefault(key.pod, []).append(series)
    by_device = {device: tuple(its) for device, its in devices.items()}
    by_pod = {}
    for ref, its in pods.items():
        # Most pods have one device, and most devices one pod: then both have the same tuple.
        same = by_device[its[0].device.id]
        by_pod[ref] = same if len(its) == len(same) == 1 else tuple(its)
    return Contents(all_series, reported, idle, by_pod, by_device)


class ExporterState:
    """The state of one origin after a scrape result.

    Immutable to its readers: it computes its device series when somebody first reads them, and
    caches ``answers``.
    """

    __slots__ = (
        *("_contents", "answers", "beliefs", "disowned", "earlier"),
        *("origin", "pages", "pod", "received", "rejected", "scale"),
    )

    def __init__(
        self,
        *,
        origin: str,
        received: float,
        pod: PodRef | None,
        contents: Contents | NumberPages,
        scale: RatioScale,
        beliefs: Mapping[int, Belief],
        disowned: Mapping[PodRef, Mismatch],
        rejected: Mapping[PodRef, str] = NO_REJECTS,
        earlier: EarlierPages = NO_EARLIER_PAGES,
    ) -> None:
        self.origin = origin
        self.received = received
        """Epoch seconds."""
        self.pod = pod
        """The exporter's own pod, if known."""
        self.scale = scale
        self.beliefs = beliefs
        """Address of a label set of the last result (plus a salt for servers) -> what it names.

        Empty while the last pages are rows of numbers: who keeps no labels needs no addresses. A
        server page, of which it matters whom it repeats, is never such a page.
        """
        self.disowned = disowned
        """Pods that samples of the last result appear to name for devices, and the mismatch."""
        self.rejected = rejected
        """Pods that samples of the last result name without a device, and the reject reason."""
        self.earlier = earlier
        """What the pages show of series that they do not have; they are a server's, if any."""
        self.answers: dict[object, object] = {}
        """Cache of what readers computed from these device series; discarded with the state."""
        self._contents = contents if isinstance(contents, Contents) else None
        self.pages = None if isinstance(contents, Contents) else contents
        """The pages that have the numbers; None if the next page's samples must be read."""

    @property
    def contents(self) -> Contents:
        """The device series, with the numbers of all pages."""
        if self._contents is None:
            assert self.pages is not None  # noqa: S101 - see __init__
            self._contents = self.pages.contents()
        return self._contents

    @property
    def outline(self) -> Contents:
        """The same device series, pods and devices as in ``contents``, maybe without samples.

        It costs nothing, and suffices for questions such as who has which device.
        """
        return self.contents if self.pages is None else self.pages.outline

    @property
    def all_series(self) -> Mapping[SeriesKey, DeviceSeries]:
        """Every device series."""
        return self.contents.all_series

    @property
    def reported(self) -> Mapping[str, float]:
        """See :class:`Contents`."""
        return self.contents.reported

    @property
    def idle(self) -> IdlePower:
        """See :class:`Contents`."""
        return self.contents.idle if self.pages is None else self.pages.idle

    @property
    def pods(self) -> Mapping[PodRef, tuple[DeviceSeries, ...]]:
        """Pod -> the device series that name it."""
        return self.contents.pods

    @property
    def devices(self) -> Mapping[str, tuple[DeviceSeries, ...]]:
        """Device id -> its device series."""
        return self.contents.devices

    def verdict(self, key: SeriesKey) -> Verdict | None:
        """Return the verdict on a device series; None if there is no such series."""
        if self.pages is not None:
            return self.pages.verdict(key)
        series = self.all_series.get(key)
        return None if series is None else series.verdict

    def after(self, received: float, pages: NumberPages) -> ExporterState:
        """Return the state with rows of numbers, or with other ones.

        Args:
            received: epoch seconds of the last page.
        """
        return ExporterState(
            origin=self.origin,
            received=received,
            pod=self.pod,
            contents=pages,
            scale=self.scale,
            beliefs=_NOTHING,
            disowned=self.disowned,
            rejected=self.rejected,
        )


def still_reported_fields(
    earlier: Mapping[str, float], now: Iterable[str], received: float, oldest: float
) -> dict[str, float]:
    """Return the fields that an exporter has written within the age limit -> when last.

    Args:
        earlier: the same at the scrape result before.
        now: the fields of the scrape result that was received at ``received`` (epoch seconds).
        oldest: the age limit in seconds.
    """
    since = received - oldest
    recent = {name: t for name, t in earlier.items() if since < t <= received}
    return recent | dict.fromkeys(now, received)
