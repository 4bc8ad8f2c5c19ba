"""What a source hands over: samples of one exporter, with the time each was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from apiservice.runtime.steps import Steps


class Decimals(float):
    """A number that its page writes with decimals.

    dcgm-exporter prints integers with ``%d`` and doubles with ``%f``. So ``1.000000`` is a
    double, although its value does not show it.
    """

    __slots__ = ()


ONE_WITH_DECIMALS: Final = Decimals(1.0)
"""The one number whose spelling says more than its value: see
:func:`adapter.devices.validity.scale_shown`."""


class Sample(NamedTuple):
    """One sample of one series."""

    name: str
    """The series' name as the exporter writes it."""
    labels: Mapping[str, str]
    """Interned: the same object for the same label text of the same exporter."""
    value: float
    """Unfiltered: may be NaN, infinite or a sentinel."""
    time: float
    """Epoch seconds at which the value was scraped or, where the page says so, measured."""


@dataclass(frozen=True, slots=True)
class ScrapeResult:
    """All samples of one exporter at one time, or all its samples since the last query."""

    origin: str
    """The exporter: a scrape URL, or Prometheus' ``instance``. Samples of one origin replace
    that origin's earlier samples: a series missing from a scrape result has disappeared."""
    node: str | None
    """The node the exporter runs on, where the source knows it for certain."""
    samples: Sequence[Sample]
    received: float
    """Epoch seconds."""
    rejects: Mapping[str, int] = field(default_factory=dict)
    """Lines or series that could not be read, by reason."""
    pod: tuple[str, str] | None = None
    """(namespace, name) of the exporter's own pod, where known: samples that name it are
    the exporter's self-attribution."""
    serves: bool = False
    """The page is ``pod``'s own, an inference server's: every sample is about that pod, whatever
    its labels say, and nothing is believed about devices."""

    @property
    def direct(self) -> bool:
        """The page was fetched from this pod: no store has added or renamed a label."""
        return self.pod is not None


class Sink(Protocol):
    """Where a source puts what it read."""

    def ingest(self, result: ScrapeResult) -> None:
        """Take a scrape result. Never raises for bad samples: they are counted."""

    def steps(self, result: ScrapeResult) -> Steps[None]:
        """Take a scrape result in steps. Nothing of it is visible, or counted, before the last."""

    def forget(self, origin: str) -> None:
        """The origin is no longer a target; its samples stand until the age limit."""
