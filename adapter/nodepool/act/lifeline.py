"""The lifeline: headroom is deleted if the controller no longer runs.

One Job without pods owns all headroom of its namespace. Another owns the probe, and ends later. The
controller extends the Job's ``activeDeadlineSeconds`` while it runs. When the controller stops, the
Job controller ends the Job at its deadline, the TTL controller deletes it immediately, and the
garbage collector deletes what it owns (docs/decisions/0005-*.md). No headroom is ordered before the
Job has started.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from adapter.nodepool.act.serverside import KubeObject, Writer, label
from adapter.nodepool.model.names import LIFELINE
from apiservice.wire import instant

_LOOKS, _PAUSE = 10, 0.2
"""Number of reads of a new Job, and seconds between them: the Job starts within a second."""
RENEW: Final = 2 / 3
"""The deadline is extended when this fraction of it is left: one write per third of the time."""
_SURPLUS = 10.0
"""Seconds by which a deadline may exceed the setting: clocks of two replicas differ by less. A
longer deadline was written with an earlier setting or by another writer, and is shortened."""


class LifelineError(Exception):
    """The lifeline of a namespace does not run. The message names the Job and the fix."""


@dataclass(frozen=True, slots=True)
class Lifeline:
    """A Job that runs towards its deadline."""

    namespace: str
    uid: str
    ends: float
    """Epoch seconds, from the API server's clock."""
    name: str = LIFELINE

    def reference(self) -> KubeObject:
        """Return the ``ownerReferences`` of its headroom."""
        return {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "name": self.name,
            "uid": self.uid,
        }


def manifest(namespace: str, deadline: int, image: str, name: str = LIFELINE) -> KubeObject:
    """Return the Job. ``deadline`` is in seconds from its start."""
    container = {
        "name": "none",
        "image": image,
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {"app.kubernetes.io/managed-by": "gpu-metrics-adapter-nodepool"},
            "annotations": {
                "gpu-metrics-adapter.io/why": "owns GPU headroom or its probe in this namespace "
                "and ends it when the controller no longer extends activeDeadlineSeconds; has no "
                "pods"
            },
        },
        "spec": {
            "parallelism": 0,
            "completions": 1,
            "activeDeadlineSeconds": deadline,
            "ttlSecondsAfterFinished": 0,
            "template": {
                "spec": {
                    "restartPolicy": "Never",
                    "automountServiceAccountToken": False,
                    "containers": [container],
                }
            },
        },
    }


class Lifelines:
    """Keeps one Job per namespace, and extends its deadline.

    After the last extension a Job lives for at least two thirds of ``seconds``.
    """

    def __init__(self, writer: Writer, seconds: float, image: str, name: str = LIFELINE) -> None:
        self._writer = writer
        self._seconds = seconds
        self._image = image
        self._name = name
        self._known: dict[str, Lifeline] = {}

    async def keep(self, namespace: str, now: float, *, sure: bool = False) -> Lifeline:
        """Return the lifeline of a namespace, with at least two thirds of the configured time.

        Args:
            sure: read the Job first. Required before an object is created that it will own: an
                object whose owner does not exist is deleted immediately.

        Raises:
            LifelineError: the Job does not run towards its deadline.
            WriteError: the Job could not be read or written.
        """
        known_lifeline = self._known.get(namespace)
        if known_lifeline is not None and not sure and self._lasts(known_lifeline, now):
            return known_lifeline
        # Read first: a deadline counts from the Job's start, and a deadline shorter than the
        # Job's age would end it immediately.
        job = await self._writer.read(self._manifest(namespace, 1))
        counted = 0.0 if job is None else now - _read_start_time(job)
        if job is not None and self._lasts(lifeline := _lifeline(namespace, job), now):
            self._known[namespace] = lifeline
            return lifeline
        deadline = math.ceil(counted + self._seconds)
        job = await self._writer.apply(self._manifest(namespace, deadline))
        for _ in range(_LOOKS):
            if (job.get("status") or {}).get("startTime"):
                break
            await asyncio.sleep(_PAUSE)
            job = await self._writer.read(job) or job
        self._known[namespace] = _lifeline(namespace, job)
        return self._known[namespace]

    def _manifest(self, namespace: str, deadline: int) -> KubeObject:
        return manifest(namespace, deadline, self._image, self._name)

    def _lasts(self, lifeline: Lifeline, now: float) -> bool:
        """Return whether the deadline is neither nearly over nor longer than the setting."""
        return self._seconds * RENEW < lifeline.ends - now <= self._seconds + _SURPLUS

    def forget(self) -> None:
        """Read every Job again: another replica may have been the leader meanwhile."""
        self._known.clear()


def _lifeline(namespace: str, job: Mapping[str, Any]) -> Lifeline:
    ends = _read_start_time(job) + int(job["spec"]["activeDeadlineSeconds"])
    meta = job["metadata"]
    return Lifeline(namespace, meta["uid"], ends, meta["name"])


def _read_start_time(job: Mapping[str, Any]) -> float:
    status = job.get("status") or {}
    ended = [row["type"] for row in status.get("conditions") or () if row["status"] == "True"]
    name = label(dict(job))
    if ended:
        raise LifelineError(f"{name} has ended ({', '.join(ended)}): waiting for its deletion")
    if job["spec"].get("suspend"):
        raise LifelineError(f"{name} is suspended and would never end: exempt it from queueing")
    if job["metadata"].get("deletionTimestamp"):
        raise LifelineError(f"{name} is being deleted: waiting for the end of its deletion")
    started = instant.read(status.get("startTime"))
    if started is None:
        raise LifelineError(f"{name} has no start time: check that the Job controller runs")
    return started
