"""Build what learns the loads of workloads, if the settings turn it on; and its metrics."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

from prometheus_client.core import Metric

from adapter.config.settings import Settings
from adapter.pipeline.cluster.lookup import ObjectLookup
from adapter.server.serve.memory import MemoryPart
from adapter.server.serve.pipeline import PipelineSwitcher
from apiservice.selfmetrics.families import gauge

if TYPE_CHECKING:
    from adapter.server.ahead.learner import Learner

LOADS: Final = gauge(
    "gma_ahead_loads",
    "Loads of workloads that are learned, by what their expected metrics have: a stated "
    "probability, the present load (too few forecasts were checked, or they failed), or no value.",
    "value",
    known=("stated", "present", "unknown"),
)
FAMILIES: Final = (LOADS,)


def build_ahead(
    settings: Settings, pipelines: PipelineSwitcher, objects: ObjectLookup
) -> Learner | None:
    """Let the stores say what loads will not exceed; None if it is off."""
    chosen = settings.ahead
    if not chosen.enabled:
        return None
    # Imported here: at rest, the forecast costs no memory.
    from adapter.server.ahead.learner import Learner  # noqa: PLC0415

    learner = Learner(pipelines, pipelines, objects.pod_index, chosen.probability)
    pipelines.look_ahead(learner)
    return learner


def loads_part(learner: Learner) -> MemoryPart:
    """Return what a learner keeps over restarts."""
    from adapter.server.ahead.storedloads import merge  # noqa: PLC0415 - at rest, it costs no memory

    return MemoryPart("loads", partial(merge, learner))


def ahead_families(learner: Learner) -> Iterator[Metric]:
    """Yield the metrics."""
    yield LOADS.by(learner.count_expectations())
