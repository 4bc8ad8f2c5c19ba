"""Check the classic histograms of a page as a whole, and hand their series to the builders.

One bad bucket makes all quantiles wrong, so of a histogram with a flaw nothing is kept; the rest of
the page is. A histogram is flawed if a bucket has fewer hits than a lower one, if its last bucket
(``+Inf``) is missing, if a number is not a count, if a bound is not one of a duration or an amount,
or if it has more bounds than any server's.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from math import inf
from typing import Final, Protocol

from adapter.pipeline.catalog import Catalog
from adapter.pipeline.catalog.field import Role, Spelling
from adapter.pipeline.devices.builder import SeriesBuilder
from adapter.pipeline.devices.validity import complaint
from apiservice.runtime.steps import Steps

FALLING: Final = "buckets_decrease"
NO_LAST: Final = "no_inf_bucket"
NO_BOUND: Final = "bad_bucket_bound"
TOO_MANY: Final = "too_many_buckets"
MOST_BOUNDS: Final = 256
"""vLLM has 22 bounds, SGLang lets users set up to a few dozen. For native histograms,
client_golang's documentation advises a limit of 160 buckets."""
_HIGHEST: Final = 1e12
"""The highest bound below ``+Inf``: a quantile between higher ones could not be computed."""
_STEP: Final = 128
"""Series that one step checks."""

_Place = tuple[SeriesBuilder, str, float]


class CountsRejects(Protocol):
    """Counts a reject, and notes that the builder's field has none."""

    def __call__(
        self, builder: SeriesBuilder, spelling: Spelling, reason: str, value: float
    ) -> None:
        """Count a reject of a series."""


class Histograms:
    """The histograms of one scrape result.

    Args:
        catalog: knows the series of buckets.
        reject: counts what is left out.
    """

    __slots__ = ("_catalog", "_flawed", "_numbers", "_reject")

    def __init__(self, catalog: Catalog, reject: CountsRejects) -> None:
        self._catalog = catalog
        self._reject = reject
        self._numbers: dict[_Place, dict[Spelling, float]] = {}
        self._flawed: set[_Place] = set()

    def add(
        self,
        builder: SeriesBuilder,
        spelling: Spelling,
        labels: Mapping[str, str],
        value: float,
        time: float,
    ) -> None:
        """Add a sample of a histogram, with the bound in its name or among its labels."""
        place = (builder, spelling.family, time)
        if place in self._flawed:
            return
        if spelling.role is Role.BUCKET and spelling.bound is None:
            bucket = self._find_bucket(spelling, labels)
            if bucket is None:
                self._flaw(place, spelling, NO_BOUND, value)
                return
            spelling = bucket
        bound = spelling.bound
        if bound is not None and not (0 <= bound <= _HIGHEST or bound == inf):
            self._flaw(place, spelling, NO_BOUND, value)
            return
        wrong = complaint(value, spelling.low, spelling.high)
        numbers = self._numbers.setdefault(place, {})
        if wrong is not None and spelling.role is Role.SUM:
            self._reject(builder, spelling, wrong, value)  # the buckets do not need it
        elif wrong is not None:
            self._flaw(place, spelling, wrong, value)
        elif len(numbers) > MOST_BOUNDS + len(Role):
            self._flaw(place, spelling, TOO_MANY, value)
        else:
            # Of one series under two jobs, the newer count is the larger one.
            number = value * spelling.factor
            numbers[spelling] = max(number, numbers.get(spelling, number))

    def _find_bucket(self, spelling: Spelling, labels: Mapping[str, str]) -> Spelling | None:
        try:
            bound = float(labels.get("le", ""))
        except ValueError:
            return None
        return self._catalog.bucket(spelling.series, bound) if bound == bound else None  # noqa: PLR0124 - not NaN

    def _flaw(self, place: _Place, spelling: Spelling, reason: str, value: float) -> None:
        self._reject(place[0], spelling, reason, value)
        self._flawed.add(place)

    def settle(self) -> Steps[None]:
        """Hand over the series of the histograms without a flaw."""
        work = 0
        for place, numbers in self._numbers.items():
            builder, _, time = place
            work += len(numbers)
            if work > _STEP:
                work = 0
                yield
            if place in self._flawed:
                continue
            buckets = sorted(
                ((s.bound, n, s) for s, n in numbers.items() if s.bound is not None),
                key=lambda bucket: bucket[:2],
            )
            wrong = _flaw_of([(bound, hits) for bound, hits, _ in buckets])
            if wrong is not None:
                _, hits, spelling = buckets[-1]
                self._flaw(place, spelling, wrong, hits)
                continue
            for spelling, number in numbers.items():
                if not (buckets and spelling.role is Role.COUNT):  # the last bucket says the same
                    builder.put(spelling, number, time)


def _flaw_of(buckets: list[tuple[float, float]]) -> str | None:
    if not buckets:
        return None  # a sum and a count, without buckets
    if buckets[-1][0] != inf:
        return NO_LAST
    return FALLING if any(high < low for (_, low), (_, high) in pairwise(buckets)) else None
