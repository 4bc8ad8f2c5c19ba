"""Build what learns the loads of workloads, if the settings turn it on; and its metrics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from prometheus_client.core import Metric

from adapter.config.settings import Settings
from adapter.pipeline.cluster.lookup import ObjectLookup
from adapter.server.serve.build import Loop
from adapter.server.serve.pipeline import PipelineSwitcher
from apiservice.selfmetrics.families import gauge

if TYPE_CHECKING:
    from adapter.server.ahead.learner import Learner
    from adapter.server.ahead.stored import StoredLoads

LOADS: Final = gauge(
    "gma_ahead_loads",
    "Loads of workloads that are learned, by what their expected metrics have: a stated "
    "probability, the present load (too few forecasts were checked, or they failed), or no value.",
    "value",
    known=("stated", "present", "unknown"),
)
STORED: Final = gauge(
    "gma_ahead_stored",
    "0 while what was learned of loads cannot be read or stored; the log says why. Absent without "
    "a cluster.",
)
FAMILIES: Final = (LOADS, STORED)


class Ahead(NamedTuple):
    """What looks ahead."""

    learner: Learner
    stored: StoredLoads | None
    """None without a cluster: then what is learned ends with the process."""

    @property
    def loops(self) -> Sequence[Loop]:
        """What learns, and keeps what was learned."""
        return (self.learner.run, *(() if self.stored is None else (self.stored.run,)))


def build_ahead(
    settings: Settings, pipelines: PipelineSwitcher, objects: ObjectLookup, client: Any
) -> Ahead | None:
    """Let the stores say what loads will not exceed; None if it is off.

    Args:
        client: None without a cluster.
    """
    chosen = settings.ahead
    if not chosen.enabled:
        return None
    # Imported here: at rest, the forecast costs no memory.
    from adapter.server.ahead.learner import Learner  # noqa: PLC0415
    from adapter.server.ahead.stored import stored_loads  # noqa: PLC0415

    learner = Learner(pipelines, pipelines, objects.pod_index, chosen.probability)
    pipelines.look_ahead(learner)
    stored = None if client is None else stored_loads(learner, client, chosen.interval)
    return Ahead(learner, stored)


def ahead_families(ahead: Ahead) -> Iterator[Metric]:
    """Yield the metrics."""
    yield LOADS.by(ahead.learner.stated())
    if ahead.stored is not None:
        yield STORED.one(not ahead.stored.problem)
