"""What to scale each kind of server on, and why. docs/inference.md has the reasoning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from adapter.catalog.serverkinds import KINDS, ServerKind


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


def _batching(name: str) -> Preset:
    return Preset(KINDS[name].title, (_RUNNING, _WAITING), KINDS[name])


PRESETS: Final[dict[str, Preset]] = {
    "vllm": _batching("vllm"),
    "triton": Preset("Triton", (_UTILIZATION, _WAITING), KINDS["triton"]),
    "tgi": _batching("tgi"),
    "sglang": _batching("sglang"),
    "tei": Preset(KINDS["tei"].title, (_UTILIZATION, _WAITING), KINDS["tei"]),
    "llamacpp": Preset("llama.cpp", (_SLOTS, _WAITING), KINDS["llamacpp"]),
    "nim": _batching("nim"),
    "dynamo": Preset("a worker of NVIDIA Dynamo", (_RUNNING, _WAITING), KINDS["dynamo"]),
    "gpu": Preset("any program on GPUs", (_UTILIZATION,)),
}
"""Value of ``--for`` -> preset, in the order of the help text."""
