"""Settings of an HPA to try: each combination of the values that were given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Final

from adapter.figures import number
from adapter.hpa import Behavior, HpaSpec
from adapter.tools.client.errors import ClientError

MOST: Final = 200
"""Variants of one replay."""


@dataclass(frozen=True, slots=True)
class Tried:
    """The values to combine; an empty sequence keeps the HPA's own."""

    targets: Sequence[int] = ()
    """Thousandths of the metric's unit."""
    windows: Sequence[float] = ()
    """Seconds of the stabilization window for scaling down."""
    lows: Sequence[int] = ()
    highs: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Variant:
    """One HPA to try."""

    spec: HpaSpec
    text: str
    """What differs: ``target 60, window 120 s``."""
    now: bool = False
    """These are the HPA's own settings."""


def variants(spec: HpaSpec, tried: Tried, window: float) -> list[Variant]:
    """Return the HPA itself, and every combination that differs from it.

    Args:
        spec: with one metric.
        tried: the values.
        window: seconds of the controller's own stabilization window for scaling down.

    Raises:
        ClientError: there are too many, or minReplicas is always above maxReplicas.
    """
    present = (_target(spec), _window(spec, window), spec.min_replicas, spec.max_replicas)
    chosen = zip((tried.targets, tried.windows, tried.lows, tried.highs), present, strict=True)
    axes = [tuple(dict.fromkeys(values)) or (mine,) for values, mine in chosen]
    count = 1
    for axis in axes:
        count *= len(axis)
    if count > MOST:
        raise ClientError(f"{count} combinations are too many: give fewer values, {MOST} in all")
    lowest, highest = min(map(int, axes[2])), max(map(int, axes[3]))
    if lowest > highest:
        raise ClientError(f"minReplicas {lowest} is above maxReplicas {highest}: change one")
    combinations = [Variant(spec, "now", now=True)]
    for target, down, low, high in product(*axes):
        if (target, down, low, high) != present and low <= high:
            made = _change_spec(
                spec, int(target), float(down), int(low), int(high), float(present[1])
            )
            combinations.append(Variant(made, difference(made, spec, window)))
    return combinations


def _change_spec(
    spec: HpaSpec, target: int, down: float, low: int, high: int, own_window: float
) -> HpaSpec:
    metric = spec.metrics[0]
    metric = replace(metric, target=metric.target._replace(milli=target))
    behavior = spec.behavior
    if down != own_window:
        behavior = behavior or Behavior()
        behavior = replace(behavior, scale_down=replace(behavior.scale_down, window=down))
    return replace(spec, metrics=(metric,), behavior=behavior, min_replicas=low, max_replicas=high)


def _target(spec: HpaSpec) -> int:
    return spec.metrics[0].target.milli


def _window(spec: HpaSpec, default: float) -> float:
    window = spec.behavior.scale_down.window if spec.behavior is not None else None
    return default if window is None else window


def difference(made: HpaSpec, spec: HpaSpec, default: float) -> str:
    """Return what differs between two HPAs; ``default`` is the controller's own window."""
    parts = []
    if _target(made) != _target(spec):
        parts.append(f"target {number(_target(made) / 1000)}")
    if _window(made, default) != _window(spec, default):
        parts.append(f"window {number(_window(made, default))} s")
    if made.min_replicas != spec.min_replicas:
        parts.append(f"min {made.min_replicas}")
    if made.max_replicas != spec.max_replicas:
        parts.append(f"max {made.max_replicas}")
    return ", ".join(parts)
