"""What to scale each kind of server on, and why. docs/inference.md has the reasoning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from adapter.pipeline.catalog.promise import SLO_RATIO
from adapter.pipeline.catalog.serverkind import Scaling, ServerKind
from adapter.pipeline.catalog.serverkinds import KINDS


@dataclass(frozen=True, slots=True)
class ScaledMetric:
    """A metric, its target for each replica, and the reasons as they are printed."""

    name: str
    target: str
    reason: str
    number: str
    """Where the target comes from, and how to find the right one."""


@dataclass(frozen=True, slots=True)
class Preset:
    """The metrics for one kind of server. The first follows the load, and ``--target`` sets it."""

    title: str
    metrics: tuple[ScaledMetric, ...]
    server: ServerKind | None = None
    """None if the values come from an exporter, not from the pods' own page."""


_MEASURE: Final = "a starting point: measure one replica (docs/inference.md#find-your-targets)"
_ALARM: Final = "adds replicas once requests wait; 0 until a replica is full, so never alone"
_WAITING: Final = ScaledMetric(
    "inference_requests_waiting",
    "4",
    _ALARM,
    "the requests that may wait for as long as you accept",
)
_RUNNING: Final = ScaledMetric(
    "inference_requests_running", "24", "follows the load, up to the limit of the batch", _MEASURE
)
_SLOTS: Final = ScaledMetric(
    "inference_requests_running",
    "3",
    "follows the load, up to the number of slots",
    "three of four slots: keep it below the server's --parallel",
)
_UTILIZATION: Final = ScaledMetric(
    "gpu_utilization",
    "70",
    "follows the load of the GPU, which no queue shows before a replica is full",
    "percent; the rest absorbs the load while a new replica starts",
)


PROMISED: Final = ScaledMetric(
    SLO_RATIO,
    "0.5",
    "how near a replica is to the load at which the promise breaks: 1 there",
    "the rest absorbs the load while a new replica starts (docs/inference.md#promise-a-latency)",
)
_FOLLOWS: Final = {
    Scaling.BATCH: _RUNNING,
    Scaling.SLOTS: _SLOTS,
    Scaling.DEVICE: _UTILIZATION,
}
"""What follows the load -> the metric that replicas follow."""
_FIRST: Final = ("vllm", "triton", "tgi", "sglang", "tei", "llamacpp", "nim", "dynamo")
"""Kinds in the order of the help text, before the others."""


def _preset(kind: ServerKind) -> Preset | None:
    """Return the preset of a kind; None for a gateway, which is not scaled so."""
    if kind.scaling is None:
        return None
    return Preset(kind.title, (_FOLLOWS[kind.scaling], _WAITING), kind)


PRESETS: Final[dict[str, Preset]] = {
    **{
        name: preset
        for name in dict.fromkeys((*_FIRST, *KINDS))
        if (preset := _preset(KINDS[name])) is not None
    },
    "gpu": Preset("any program on GPUs", (_UTILIZATION,)),
}
"""Value of ``--for`` -> preset, in the order of the help text."""
