"""Build what learns the loads of workloads, if the settings turn it on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adapter.config.settings import Settings
from adapter.pipeline.cluster.lookup import ObjectLookup
from adapter.server.serve.build import Loop
from adapter.server.serve.pipeline import PipelineSwitcher


def build_ahead(
    settings: Settings, pipelines: PipelineSwitcher, objects: ObjectLookup, client: Any
) -> Sequence[Loop]:
    """Serve what loads will not exceed, and return the loops that learn and store it.

    Args:
        client: None without a cluster: then what is learned ends with the process.
    """
    chosen = settings.ahead
    if not chosen.enabled:
        return ()
    # Imported here: at rest, the forecast costs no memory.
    from adapter.server.ahead.learner import Learner  # noqa: PLC0415
    from adapter.server.ahead.stored import stored_loads  # noqa: PLC0415

    learner = Learner(pipelines, pipelines, objects.pod_index, chosen.probability)
    pipelines.look_ahead(learner)
    loops: list[Loop] = [learner.run]
    if client is not None:
        loops.append(stored_loads(learner, client, chosen.interval).run)
    return loops
