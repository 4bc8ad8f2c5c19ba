"""An exporter's page, or a server's, reduced to what the checks look at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from adapter.pipeline.catalog import built_in
from adapter.pipeline.catalog.field import Spelling
from adapter.pipeline.catalog.serverkinds import looks_like
from adapter.pipeline.cluster.pod import PodRef
from adapter.pipeline.devices.assignment import assignment
from adapter.pipeline.devices.device import device
from adapter.pipeline.devices.validity import complaint
from adapter.pipeline.exposition.page import parse
from adapter.pipeline.exposition.samples import Sample
from adapter.pipeline.exposition.seriesnames import series_names

XID: Final = "DCGM_FI_DEV_XID_ERRORS"
_CATALOG: Final = built_in()
_HTML: Final = (b"<!doctype", b"<html")


class Trouble(StrEnum):
    """Why a page cannot be used."""

    REFUSED = "refused"
    """Nothing listens at the port, or the address is not reached."""
    TIMEOUT = "timeout"
    STATUS = "status"
    """An HTTP status other than 200."""
    HTTPS = "https"
    """The port expects TLS."""
    HTML = "html"
    EMPTY = "empty"
    """No sample of the catalogue."""
    TOO_LARGE = "too_large"
    UNREAD = "unread"
    """The API server did not forward the request."""


@dataclass(frozen=True, slots=True)
class PageDevice:
    """A device on a page."""

    id: str
    mig: bool
    pods: frozenset[str]
    """``namespace/name`` of the pods that its samples name."""
    series: frozenset[str]
    """Fields with a valid value, by the catalogue's names."""
    blank: frozenset[str]
    """Fields with samples and no valid value."""
    xid: int = 0
    """The last XID error; 0 without one."""


@dataclass(frozen=True, slots=True)
class ExporterPage:
    """What one pod answered."""

    pod: str
    node: str
    rule: str
    """The rule that found the pod; ``inference`` for a server."""
    url: str
    """Port and path, as in the request."""
    trouble: Trouble | None = None
    detail: str = ""
    """More about the trouble: the status, or the error."""
    size: int = 0
    samples: int = 0
    fields: frozenset[str] = frozenset()
    """Fields of the catalogue that the page has samples of."""
    series: frozenset[str] = frozenset()
    """The same, as the page spells them."""
    devices: tuple[PageDevice, ...] = ()
    rejects: Mapping[str, int] = field(default_factory=dict)
    """Lines that the adapter leaves out, by reason."""
    proxy: str = ""
    """The path of the API server's proxy; empty if it leads out of it."""

    @property
    def named(self) -> frozenset[str]:
        """The pods that the page names."""
        return frozenset().union(*(row.pods for row in self.devices))


@dataclass(slots=True)
class _Device:
    mig: bool = False
    pods: set[str] = field(default_factory=set)
    valid: set[str] = field(default_factory=set)
    blank: set[str] = field(default_factory=set)
    xid: int = 0

    def to_page_device(self, identity: str) -> PageDevice:
        """Return the device as the page keeps it."""
        valid = frozenset(self.valid)
        blank = frozenset(self.blank) - valid
        return PageDevice(identity, self.mig, frozenset(self.pods), valid, blank, self.xid)


def reduce_page(body: bytes, blank: ExporterPage, *, now: float) -> ExporterPage:
    """Return what a body says.

    Args:
        body: the response's body.
        blank: the page without content: who answered.
        now: epoch seconds.
    """
    start = body[:512].lstrip().lower()
    if start.startswith(_HTML):
        return replace(blank, trouble=Trouble.HTML, detail="an HTML page", size=len(body))
    page = parse(body, time=now, wanted=_CATALOG.series)
    if not page.samples:
        program = looks_like(series_names(body))
        text = "no line of a metrics page that the adapter knows"
        text += f"; it looks like {program}" if program else ""
        detail = text if body.strip() else "an empty body"
        return replace(
            blank, trouble=Trouble.EMPTY, detail=detail, size=len(body), rejects=page.rejects
        )
    devices: dict[str, _Device] = {}
    spelt = set()
    fields = set()
    for sample in page.samples:
        spelling = _spelling(sample)
        if spelling is not None:
            spelt.add(sample.name)
            fields.add(spelling.field.name)
            _note(devices, sample, spelling, blank)
    return replace(
        blank,
        size=len(body),
        samples=len(page.samples),
        fields=frozenset(fields),
        series=frozenset(spelt),
        devices=tuple(entry.to_page_device(key) for key, entry in sorted(devices.items())),
        rejects=page.rejects,
    )


def _spelling(sample: Sample) -> Spelling | None:
    """Return the field of the catalogue that a sample belongs to."""
    spelling = _CATALOG.spellings.get(sample.name)
    if spelling is not None:
        return spelling
    variants = (variant for _, variant in _CATALOG.label_variants.get(sample.name, ()))
    return next((variant for variant in variants if variant.fits(sample.labels)), None)


def _note(
    devices: dict[str, _Device], sample: Sample, spelling: Spelling, page: ExporterPage
) -> None:
    namespace, _, pod = page.pod.partition("/")
    exporter = PodRef(namespace, pod)
    named_device = device(sample.labels, page.url, node=page.node or None, exporter=exporter)
    if named_device is None or spelling.server:
        return
    entry = devices.setdefault(named_device.id, _Device(mig=named_device.mig))
    assigned = assignment(sample.labels, exporter, direct=True)
    if assigned is not None and not assigned.suspect:
        entry.pods.add(f"{assigned.pod.namespace}/{assigned.pod.name}")
    name = spelling.field.name
    high = max(spelling.high, 100.0) if spelling.traps else spelling.high
    if complaint(sample.value, spelling.low, high) is not None:
        entry.blank.add(name)
        return
    entry.valid.add(name)
    if name == XID:
        entry.xid = int(sample.value)
