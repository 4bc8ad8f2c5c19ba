"""The lifeline: headroom ends without this controller when nothing prolongs it.

One Job without pods owns all headroom of its namespace. This controller prolongs the Job's
``activeDeadlineSeconds`` while it runs. When it stops, the Job controller ends the Job at its
deadline, the TTL controller deletes it at once, and the garbage collector deletes what it owns
(docs/decisions/0005-*.md). No headroom is ordered before the Job has started.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adapter.nodepool.act.serverside import KubeObject, Writer, label
from adapter.nodepool.model.names import LIFELINE
from adapter.nodepool.seen import instant

_LOOKS, _PAUSE = 10, 0.2
"""Looks at a new Job, and seconds between them: the Job controller starts it within a second."""
_RENEW = 2 / 3
"""Share of the deadline that may be left before it is prolonged: one write in a third of it."""
_SURPLUS = 10.0
"""Seconds that a deadline may exceed the setting: clocks of two replicas differ by less. A longer
one was written under an earlier setting, or by another writer, and is shortened."""


class LifelineError(Exception):
    """Headroom in a namespace would have no end; the message names the Job and the fix."""


@dataclass(frozen=True, slots=True)
class Lifeline:
    """A Job that counts."""

    namespace: str
    uid: str
    ends: float
    """Epoch seconds, by the API server's clock."""

    def reference(self) -> KubeObject:
        """What its headroom has as ``ownerReferences``."""
        return {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "name": LIFELINE,
            "uid": self.uid,
        }


def manifest(namespace: str, deadline: int, image: str) -> KubeObject:
    """The Job; ``deadline`` is in seconds from its start."""
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
            "name": LIFELINE,
            "namespace": namespace,
            "labels": {"app.kubernetes.io/managed-by": "gpu-metrics-adapter-nodepool"},
            "annotations": {
                "gpu-metrics-adapter.io/why": "owns the GPU headroom of this namespace and ends "
                "it when its controller no longer prolongs activeDeadlineSeconds; has no pods"
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
    """The Job of each namespace with headroom, as a rule one; prolonged when it is time."""

    def __init__(self, writer: Writer, seconds: float, image: str) -> None:
        self._writer = writer
        self._seconds = seconds
        self._image = image
        self._known: dict[str, Lifeline] = {}

    async def keep(self, namespace: str, now: float, *, sure: bool = False) -> Lifeline:
        """The lifeline of a namespace, with two thirds of the set time left or more.

        Args:
            sure: read the Job first, before an object is created that it will own: an object
                whose owner is gone is deleted at once.

        Raises:
            LifelineError: it does not count.
            WriteError: it could not be read or written.
        """
        known = self._known.get(namespace)
        if known is not None and not sure and self._lasts(known, now):
            return known
        # Read first: a deadline counts from the Job's start, and a shorter one than it has
        # would end it at once.
        job = await self._writer.read(manifest(namespace, 1, self._image))
        counted = 0.0 if job is None else now - _started(job)
        if job is not None and self._lasts(found := _lifeline(namespace, job), now):
            self._known[namespace] = found
            return found
        deadline = math.ceil(counted + self._seconds)
        job = await self._writer.apply(manifest(namespace, deadline, self._image))
        for _ in range(_LOOKS):
            if (job.get("status") or {}).get("startTime"):
                break
            await asyncio.sleep(_PAUSE)
            job = await self._writer.read(job) or job
        self._known[namespace] = _lifeline(namespace, job)
        return self._known[namespace]

    def _lasts(self, lifeline: Lifeline, now: float) -> bool:
        """Whether its deadline is the setting's: neither nearly over nor longer."""
        return self._seconds * _RENEW < lifeline.ends - now <= self._seconds + _SURPLUS

    def forget(self) -> None:
        """Read every Job again: another replica may have led in the meantime."""
        self._known.clear()


def _lifeline(namespace: str, job: Mapping[str, Any]) -> Lifeline:
    ends = _started(job) + int(job["spec"]["activeDeadlineSeconds"])
    return Lifeline(namespace, job["metadata"]["uid"], ends)


def _started(job: Mapping[str, Any]) -> float:
    status = job.get("status") or {}
    ended = [row["type"] for row in status.get("conditions") or () if row["status"] == "True"]
    name = label(dict(job))
    if ended:
        raise LifelineError(f"{name} has ended ({', '.join(ended)}): waiting until it is deleted")
    if job["spec"].get("suspend"):
        raise LifelineError(f"{name} is suspended and would never end: exempt it from queueing")
    if job["metadata"].get("deletionTimestamp"):
        raise LifelineError(f"{name} is being deleted: waiting until it is gone")
    started = instant.read(status.get("startTime"))
    if started is None:
        raise LifelineError(f"{name} has not begun to count: is the Job controller running?")
    return started
