"""The status that the kubelet writes for a pod with one container."""

from __future__ import annotations

import datetime
from typing import NamedTuple

from tests.e2e.cluster import Object


class Life(NamedTuple):
    """The state of a pod's container."""

    ready: bool = False
    started: bool = False
    running: bool = False
    restarts: int = 0
    code: int | None = None
    """How it ended, before a restart or permanently."""
    over: bool = False
    """Whether it is not restarted."""
    waiting: str = "ContainerCreating"


def status(pod: Object, address: str, life: Life, since: float, now: float) -> Object:
    """Return the status as a merge patch.

    Args:
        since: when it became ready, or ceased to be.
        now: seconds since the epoch, as ``since``.
    """
    changed = stamp(since)
    flags = {
        "PodScheduled": True,
        "PodReadyToStartContainers": not life.over,
        "Initialized": True,
        "ContainersReady": life.ready,
        "Ready": life.ready,
    }
    conditions = [
        {"type": name, "status": str(value), "lastTransitionTime": changed}
        for name, value in flags.items()
    ]
    container = pod["spec"]["containers"][0]
    return {
        "phase": _phase(life),
        "conditions": conditions,
        "hostIP": "127.0.0.1",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": pod["metadata"]["creationTimestamp"],
        "containerStatuses": [
            {
                "name": container["name"],
                "image": container["image"],
                "imageID": "",
                "ready": life.ready,
                "started": life.started,
                "restartCount": life.restarts,
                "state": _state(life, now),
            }
        ],
    }


def stamp(seconds: float) -> str:
    """Return a time in the format of the API."""
    moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _phase(life: Life) -> str:
    if life.over:
        return "Succeeded" if life.code == 0 else "Failed"
    return "Running" if life.running or life.restarts else "Pending"


def _state(life: Life, now: float) -> Object:
    if life.running:
        return {"running": {"startedAt": stamp(now)}, "terminated": None, "waiting": None}
    if life.over:
        reason = "Completed" if life.code == 0 else "Error"
        ended = {"exitCode": life.code or 0, "reason": reason, "finishedAt": stamp(now)}
        return {"terminated": ended, "running": None, "waiting": None}
    return {"waiting": {"reason": life.waiting}, "running": None, "terminated": None}
