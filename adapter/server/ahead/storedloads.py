"""What was learned of loads as text, so that no restart loses it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Annotated, Final

import msgspec
import structlog

from adapter.nodepool.learn.boots import KEPT, LONGEST
from adapter.nodepool.learn.history import SETBACK
from adapter.nodepool.learn.historytext import decode, encode
from adapter.server.ahead.learner import Learner
from adapter.server.ahead.replicaload import ReplicaLoad
from adapter.server.ahead.starts import StartTimes
from adapter.server.ahead.workloadload import LoadKey, WorkloadLoad
from apiservice.provider import GroupResource
from apiservice.runtime.inturn import in_turn
from apiservice.runtime.jsontext import UNREADABLE

log = structlog.get_logger(__name__)

_BYTES: Final = 700_000
"""Bytes of the text, of the ConfigMap's 1 MiB. Beyond that, what was asked about least recently is
left out, of the namespaces with most lines."""
_Start = Annotated[float, msgspec.Meta(gt=0, le=LONGEST)]


class _StoredLoad(msgspec.Struct):
    namespace: str
    group: str
    resource: str
    name: str
    metric: str
    history: str
    replica: ReplicaLoad
    starts: list[_Start]
    asked: Annotated[float, msgspec.Meta(ge=0)]


def merge(learner: Learner, text: str, now: float) -> str:
    """Let a learner take over what a text knows better, and return the text of what both know.

    What cannot be read, and what the text has no room for, is left out and logged.

    Args:
        now: epoch seconds.
    """
    learner.restore(dict(_read_loads(text.splitlines(), now)), now)
    if not learner.loads:
        return text
    merged, left_out = dump(learner.loads)
    if left_out:
        log.warning("too many loads to keep all of them", left_out=left_out)
    return merged


def dump(loads: Mapping[LoadKey, WorkloadLoad]) -> tuple[str, int]:
    """Return loads as lines of JSON, and how many were too many for the bounded size.

    The namespaces come in turn, and of one namespace what was asked about last comes first.
    """
    ranked = sorted(loads, key=lambda key: (-loads[key].asked, key))
    rows: list[bytes] = []
    size = 0
    for key in in_turn(ranked, attrgetter("namespace")):
        load = loads[key]
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
    return b"\n".join(rows).decode(), len(loads) - len(rows)


def _read_loads(lines: Iterable[str], now: float) -> Iterable[tuple[LoadKey, WorkloadLoad]]:
    """Yield what the lines hold. Log and leave out lines that cannot be read."""
    for line in lines:
        try:
            row = msgspec.json.decode(line, type=_StoredLoad)
        except UNREADABLE as error:
            log.warning("stored load ignored", error=str(error))
            continue
        decoded = decode(row.history)
        problem = decoded.problem
        if max(row.asked, row.replica.at) > now + SETBACK:
            problem = "its times are ahead of the clock"
        if problem is not None:
            log.warning("stored load ignored", workload=row.name, error=problem)
            continue
        resource = GroupResource(row.resource, row.group)
        key = LoadKey(row.namespace, resource, row.name, row.metric)
        starts = StartTimes(watched=tuple(row.starts[-KEPT:]))
        yield (
            key,
            WorkloadLoad(row.asked, history=decoded.history, replica=row.replica, starts=starts),
        )
