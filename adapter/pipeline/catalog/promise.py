"""A promise as a person writes it: ``ttft_p90: 1s``, ``itl_p90: 50ms``.

The keys and values are labels, so that they fit the metric selector of an HPA, the metadata of a
KEDA trigger and an annotation alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from adapter.pipeline.catalog.requestwindow import Latency
from apiservice.errors import BadQuery
from apiservice.labels.requirement import Requirement

SLO_RATIO: Final = "inference_slo_ratio"
"""How near a pod is to the load at which its latency promise breaks: 1 there. The only metric whose
selector states a promise."""
MOST: Final = 4.0
"""No value of it is higher, however long the queue."""
LATENCIES: Final[Mapping[str, Latency]] = MappingProxyType(
    {
        "ttft": Latency.FIRST_TOKEN,
        "itl": Latency.OUTPUT_TOKEN,
        "e2e": Latency.REQUEST,
    }
)
"""The first part of a key -> what it promises."""
QUANTILES: Final = ("p50", "p90", "p95", "p99")
_KEY: Final = re.compile(r"([a-z0-9]+)_(p[0-9]+)")
_VALUE: Final = re.compile(r"(-?[0-9]+(?:\.[0-9]+)?)(ms|s|)")
_UNITS: Final = {"ms": 0.001, "s": 1.0}
_LONGEST: Final = 3600.0
"""Seconds; a longer promise is a typing error."""
_LONGEST_TEXT: Final = 63
"""Characters of a key and of a value, as of a label's: an error repeats them."""
_EXAMPLE: Final = "such as ttft_p90: 1s or itl_p90: 50ms"


class PromiseError(BadQuery):
    """The promise cannot be meant; the text names its part and the fix."""


class LatencyBound(NamedTuple):
    """One latency of a promise: so many of the requests are not slower than this."""

    key: str
    """As it was written: ``ttft_p90``."""
    latency: Latency
    share: float
    """Of the requests, 0-1."""
    seconds: float

    @property
    def tolerance(self) -> float:
        """The share of requests that may be slower."""
        return 1.0 - self.share

    def __str__(self) -> str:
        """Return it as people write it."""
        return f"{self.key} {describe_seconds(self.seconds)}"


Promise = tuple[LatencyBound, ...]
"""All bounds, in the order of their keys; at least one."""


def describe_promise(promise: Promise) -> str:
    """Return a promise as people write it: ``itl_p90 50ms and ttft_p90 1s``."""
    return " and ".join(map(str, promise))


def parse_promise(labels: Mapping[str, str]) -> Promise:
    """Return the promise that labels state.

    Raises:
        PromiseError: there is no bound, or one that cannot be meant.
    """
    if not labels:
        raise PromiseError(f"inference_slo_ratio has no promise: add one, {_EXAMPLE}")
    return tuple(_bound(key, labels[key]) for key in sorted(labels))


def promise_in(requirements: Iterable[Requirement]) -> Promise:
    """Return the promise that the requirements of a metric selector state.

    Raises:
        PromiseError: it states none, or one that cannot be meant.
    """
    labels: dict[str, str] = {}
    for key, op, values in requirements:
        if op not in ("=", "==", "in") or len(values) != 1:
            raise PromiseError(f"promise {key}: write one value with =, such as ttft_p90=1s")
        if key in labels:
            raise PromiseError(f"promise {key} is given more than once")
        labels[key] = values[0]
    return parse_promise(labels)


def is_bound(key: str) -> bool:
    """Return whether a label is meant as a part of a promise, right or wrong."""
    return _KEY.fullmatch(key) is not None or key in LATENCIES


def _bound(key: str, value: str) -> LatencyBound:
    if len(key) > _LONGEST_TEXT or len(value) > _LONGEST_TEXT:
        raise PromiseError(
            f"promise {key[:_LONGEST_TEXT]!r} is longer than {_LONGEST_TEXT}: write {_EXAMPLE}"
        )
    name = _KEY.fullmatch(key)
    if name is None or name[1] not in LATENCIES or name[2] not in QUANTILES:
        choices = f"{', '.join(LATENCIES)} with {', '.join(QUANTILES)}"
        raise PromiseError(f"promise {key!r} is not known: write one of {choices}, {_EXAMPLE}")
    amount = _VALUE.fullmatch(value.strip())
    if amount is None:
        raise PromiseError(f"promise {key}: {value!r} is not a duration: write {_EXAMPLE}")
    if not amount[2]:
        raise PromiseError(f"promise {key}: {value!r} has no unit: write {value}s or {value}ms")
    seconds = float(amount[1]) * _UNITS[amount[2]]
    if seconds <= 0:
        raise PromiseError(f"promise {key}: {value!r} is not above 0: write {_EXAMPLE}")
    if seconds > _LONGEST:
        raise PromiseError(
            f"promise {key}: {value!r} is longer than {_LONGEST:.0f}s: write {_EXAMPLE}"
        )
    return LatencyBound(key, LATENCIES[name[1]], int(name[2][1:]) / 100, seconds)


def describe_seconds(seconds: float) -> str:
    """Return a duration as a promise writes it: ``1.5s``, ``50ms``."""
    return f"{seconds:g}s" if seconds >= 1 else f"{seconds * 1000:g}ms"
