"""``inference_slo_ratio``: how near a pod is to the load at which its promise breaks."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

from adapter.answers.promises.capacity import ENOUGH, PodCapacity, load_of
from adapter.pipeline.catalog.increases import sum_increases
from adapter.pipeline.catalog.promise import MOST, Promise, describe_promise
from adapter.pipeline.catalog.requestwindow import RequestWindow

CAUTIOUS_RUNNING: Final = 24.0
CAUTIOUS_WAITING: Final = 4.0
"""The targets of the recipe for servers whose capacity is not known (docs/inference.md)."""
DRAIN: Final = 300.0
"""Seconds in which a queue above the capacity is to be worked off."""
WORST_LATENCY: Final = 1.5
"""What a latency can say at most: above the promise, a quantile of an overloaded server says little
about how much is missing."""
FEW: Final = 10.0
"""Requests in a window below which its latency says nothing."""


class Basis(StrEnum):
    """What decided a value."""

    CAUTIOUS = "cautious rule"
    """There is no capacity yet."""
    LOAD = "load"
    TOKENS = "tokens per second"
    LATENCY = "measured latency"


class Ratio(NamedTuple):
    """A pod's value, and what decided it."""

    value: float
    """1 where the promise is just kept."""
    basis: Basis


def pod_ratio(
    window: RequestWindow, capacity: PodCapacity | None, latency: float | None, growth: float
) -> Ratio | None:
    """Return a pod's value; None if the page shows no load.

    Args:
        latency: what :func:`latency_ratio` says of the workload.
    """
    load = load_of(window)
    if load is None:
        return None
    if capacity is None:
        value = max((window.running or 0.0) / CAUTIOUS_RUNNING, 0.0)
        value = max(value, (window.waiting or 0.0) / CAUTIOUS_WAITING)
        return Ratio(min(MOST, value), Basis.CAUTIOUS)
    ratio = load / capacity.load
    ratios = []
    if window.output_tokens is not None and capacity.tokens:
        # Requests run longer in a fuller batch, so the load falls faster than the traffic does.
        # Tokens per second follow the traffic, up to the capacity; above it, only the load does.
        tokens = window.output_tokens / capacity.tokens
        ratios.append(Ratio(min(1.0, tokens), Basis.TOKENS))
        if ratio > 1 and window.requests and tokens:
            arriving = tokens * max(0.0, 1.0 + growth / window.requests)
            drain = (load - capacity.load) * tokens / (window.requests * DRAIN)
            # The load of an overloaded pod grows for as long as no other pod helps, so it says how
            # long the overload lasts rather than how large it is.
            ratio = min(ratio, max(1.0, arriving + drain))
    ratios.append(Ratio(min(MOST, ratio), Basis.LOAD))
    if latency is not None and latency > 1:
        ratios.append(Ratio(latency, Basis.LATENCY))
    return max(ratios, key=lambda candidate: candidate.value)


def latency_ratio(promise: Promise, windows: list[RequestWindow]) -> float | None:
    """Return the workload's latency divided by its promise, at most :data:`WORST_LATENCY`.

    None if too few requests came to say so.
    """
    worst = None
    for bound in promise:
        sums = [w.latencies[bound.latency] for w in windows if bound.latency in w.latencies]
        total = sum_increases(sums)
        quantile = total.quantile(bound.share) if total and total.count >= FEW else None
        if quantile is not None:
            worst = max(worst or 0.0, min(WORST_LATENCY, quantile.value / bound.seconds))
    return worst


def describe_unknown(promise: Promise, evidence: float) -> str:
    """Return in words why there is no capacity, from the requests behind what is known."""
    terms = describe_promise(promise)
    if evidence >= ENOUGH:
        return f"no load that was seen keeps {terms} ({evidence:.0f} requests)"
    return f"the capacity at {terms} is not known yet ({evidence:.0f} requests)"


def describe_ratio(
    ratio: Ratio,
    window: RequestWindow,
    capacity: PodCapacity | None,
    promise: Promise,
    evidence: float,
    latency: float | None,
) -> str:
    """Return in words what decided a value.

    Args:
        evidence: requests behind what is known.
        latency: what :func:`latency_ratio` says of the workload.
    """
    terms = describe_promise(promise)
    load = load_of(window) or 0.0
    if capacity is not None:
        certainty = "seen to break" if capacity.seen else "not seen to break up to there"
        text = (
            f"load {load:.3g} of capacity {capacity.load:.3g} at {terms}, {certainty} "
            f"({capacity.requests:.0f} requests)"
        )
    else:
        text = describe_unknown(promise, evidence)
    if ratio.basis is Basis.CAUTIOUS:
        text += (
            f"; cautious rule: {window.running or 0:g} running of {CAUTIOUS_RUNNING:g}, "
            f"{window.waiting or 0:g} waiting of {CAUTIOUS_WAITING:g}"
        )
    if latency is not None:
        text += f"; measured latency {latency:.2g} of the promise"
    return f"{text}; decided by {ratio.basis.value}"
