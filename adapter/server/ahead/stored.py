"""What was learned of loads as text, so that no restart loses it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
import structlog

from adapter.nodepool.learn.boots import KEPT
from adapter.nodepool.learn.historytext import decode, encode
from adapter.server.ahead.learner import Learner
from adapter.server.ahead.replicaload import ReplicaLoad
from adapter.server.ahead.starts import StartTimes
from adapter.server.ahead.workloadload import LoadKey, WorkloadLoad
from apiservice.provider import GroupResource
from apiservice.runtime.jsontext import UNREADABLE

log = structlog.get_logger(__name__)

_BYTES: Final = 700_000
"""Bytes of the text, of the ConfigMap's 1 MiB. Beyond that, what was asked about least recently is
left out."""


class _StoredLoad(msgspec.Struct):
    namespace: str
    group: str
    resource: str
    name: str
    metric: str
    history: str
    replica: ReplicaLoad
    starts: list[float]
    asked: float


def merge(learner: Learner, text: str, now: float) -> str:
    """Let a learner take over what a text knows better, and return the text of what both know.

    Args:
        now: epoch seconds.
    """
    learner.restore(dict(_restored(text.splitlines())), now)
    return dump(learner.loads) if learner.loads else text


def dump(loads: Mapping[LoadKey, WorkloadLoad]) -> str:
    """Return loads as lines of JSON, with those asked about last first, in bounded size."""
    rows: list[bytes] = []
    size = 0
    for key, load in sorted(loads.items(), key=lambda item: -item[1].asked):
        row = _StoredLoad(
            key.namespace,
            key.resource.group,
            key.resource.resource,
            key.name,
            key.metric,
            encode(load.history),
            load.replica,
            [*load.starts.watched],
            load.asked,
        )
        text = msgspec.json.encode(row)
        size += len(text) + 1
        if size > _BYTES:
            break
        rows.append(text)
    return b"\n".join(rows).decode()


def _restored(lines: Iterable[str]) -> Iterable[tuple[LoadKey, WorkloadLoad]]:
    """Yield what the lines hold. Log and leave out lines that cannot be read."""
    for line in lines:
        try:
            row = msgspec.json.decode(line, type=_StoredLoad)
        except UNREADABLE as error:
            log.warning("stored load ignored", error=str(error))
            continue
        found = decode(row.history)
        if found.problem is not None:
            log.warning("stored load ignored", workload=row.name, error=found.problem)
            continue
        resource = GroupResource(row.resource, row.group)
        key = LoadKey(row.namespace, resource, row.name, row.metric)
        starts = StartTimes(watched=tuple(row.starts[-KEPT:]))
        yield (
            key,
            WorkloadLoad(row.asked, history=found.history, replica=row.replica, starts=starts),
        )
