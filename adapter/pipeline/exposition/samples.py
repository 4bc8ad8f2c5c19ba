"""The samples and scrape results that a source produces, and the sink that takes them."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
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
"""The only number for which the spelling matters.

See :func:`adapter.pipeline.devices.validity.scale_shown`.
"""


class Sample(NamedTuple):
    """One sample of one series."""

    name: str
    """The series' name as the exporter writes it."""
    labels: Mapping[str, str]
    """Shared: one object for equal label texts of one exporter."""
    value: float
    """Unchecked: may be NaN, infinite or a sentinel."""
    time: float
    """Epoch seconds at which the value was measured, if the page states it, or scraped."""


@dataclass(frozen=True, slots=True)
class ScrapeResult:
    """All samples of one exporter at one time, or all its samples since the last query."""

    origin: str
    """The exporter: a scrape URL, or Prometheus' ``instance``.

    The samples replace the earlier samples of the origin: a series that is missing from a scrape
    result has disappeared.
    """
    node: str | None
    """The node on which the exporter runs, if the source knows it for certain."""
    samples: Sequence[Sample]
    received: float
    """Epoch seconds."""
    rejects: Mapping[str, int] = field(default_factory=dict)
    """Lines or series that could not be read, by reason."""
    pod: tuple[str, str] | None = None
    """(namespace, name) of the exporter's own pod, if known.

    Samples that name this pod are the exporter's self-attribution.
    """
    serves: bool = False
    """The page is the server page of ``pod``.

    Every sample is about that pod, regardless of its labels, and says nothing about devices.
    """
    unread: Sequence[Sample] = ()
    """Samples whose number could not be read, as not a number; they are in ``rejects`` too."""
    incomplete: frozenset[str] = frozenset()
    """Names of series of which samples beyond a limit were left out."""
    sought: Container[str] | None = None
    """The series names for which the page was read in full: one that is not among the samples is
    not on the page. None if that is not known."""

    @property
    def direct(self) -> bool:
        """Whether the page was fetched from this pod, so that no store added or renamed a label."""
        return self.pod is not None


class Sink(Protocol):
    """Takes the scrape results of a source."""

    def steps(self, result: ScrapeResult) -> Steps[None]:
        """Take a scrape result in steps. It becomes visible, and is counted, with the last step.

        Invalid samples do not raise an error: they are counted.
        """

    def forget(self, origin: str) -> None:
        """Note that the origin is no longer a target; its samples are kept until the age limit."""
