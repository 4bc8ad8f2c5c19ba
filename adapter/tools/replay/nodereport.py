"""The node pool in the report of a replay: a table, and what it rests on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from adapter.figures import age, count, decimal, number
from adapter.tools.client.access import Json
from adapter.tools.replay.nodestudy import NodeRun, NodeStudy, PodWaits
from adapter.tools.replay.options import FORECAST

NODE_HEADER: Final = ("HEADROOM", "NODE-GPU-H", "COST", "WAITED", "LONGEST", "PODS", "NODES")


def node_rows(study: NodeStudy, gpu_hour: float | None) -> Iterator[tuple[str, ...]]:
    """Yield the rows of the table: what happened, then each headroom.

    Args:
        study: the node pool.
        gpu_hour: price of a GPU-hour.
    """
    if study.recorded is not None:
        yield ("recorded", "?", "-" if gpu_hour is None else "?", *_waits(study.recorded), "?")
    for run in study.runs:
        hours = run.gpu_seconds / 3600
        cost = "-" if gpu_hour is None else decimal(hours * gpu_hour, 2)
        shown = decimal(hours, 1) if hours >= 10 else number(hours)
        nodes = f"{run.lowest}-{run.highest}"
        yield (run.tried.text, shown, cost, *_waits(run.waits), nodes)


def node_basis(study: NodeStudy) -> Iterator[str]:
    """Yield what the figures rest on."""
    physics = study.physics
    pods = count(physics.slots, "pod")
    yield (
        f"nodes are simulated: each takes {pods} of {count(study.gpus, 'GPU')} and nothing else, "
        f"boots in {age(physics.boot)}, and is removed {age(physics.unneeded)} after it was last "
        "needed; a pod works as soon as it has a node"
    )
    yield (
        f"the autoscaler looks at a pod that has waited for {age(physics.gpu_wait)}, or at once "
        "if headroom does not fit either; GPU-hours count from the order of a node to its removal"
    )
    forecast = any(run.tried.kind == FORECAST for run in study.runs)
    if forecast:
        yield (
            "forecast is the plan of nodepool without its limits on pods, GPUs and cost; it begins "
            "without a history, so a share of the pods applies until five forecasts have been "
            "checked"
        )
    if study.unknown and forecast:
        yield "forecast orders nothing new while the demand is unknown"
    if study.unknown:
        yield (
            f"the demand is unknown for {age(study.unknown)}: the replicas are held then, and what "
            "pods would have waited is not known"
        )
    if study.recorded is None:
        yield "how long pods waited is not known: no pod of the recording has a node"


def node_json(study: NodeStudy, gpu_hour: float | None) -> Json:
    """Return the same for programs."""
    physics = study.physics
    body: Json = {
        "nodeBootSeconds": physics.boot,
        "nodeUnneededSeconds": physics.unneeded,
        "podsPerNode": physics.slots,
        "gpusPerPod": study.gpus,
        "unknownSeconds": study.unknown,
        "headroom": [_run(run, gpu_hour) for run in study.runs],
    }
    if study.recorded is not None:
        body["recorded"] = _waits_json(study.recorded)
    return body


def _run(run: NodeRun, gpu_hour: float | None) -> Json:
    hours = run.gpu_seconds / 3600
    body: Json = {
        "headroom": run.tried.text,
        "nodeGpuHours": hours,
        "lowestNodes": run.lowest,
        "highestNodes": run.highest,
        **_waits_json(run.waits),
    }
    if gpu_hour is not None:
        body["cost"] = hours * gpu_hour
    return body


def _waits_json(waits: PodWaits) -> Json:
    return {
        "waitedPodSeconds": waits.seconds,
        "longestWaitSeconds": waits.longest,
        "podsThatWaited": waits.pods,
    }


def _waits(waits: PodWaits) -> tuple[str, str, str]:
    return age(waits.seconds), age(waits.longest), str(waits.pods)
