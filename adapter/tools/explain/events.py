"""The last events about an object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from adapter.figures import age
from adapter.tools.client.access import Api, Json
from adapter.tools.client.errors import ClientError
from adapter.tools.explain.history import event_time
from adapter.tools.explain.words import one_line

_SHOWN: Final = 4


class RecentEvents(NamedTuple):
    """RecentEvents, or why they cannot be read."""

    rows: Sequence[Json] = ()
    """The newest last."""
    problem: ClientError | None = None

    def last(self, now: float, well_since: float | None = None) -> list[Json]:
        """Return the newest events, the newest first, without those that repeat a newer one.

        Args:
            now: epoch seconds.
            well_since: since when the object is well; earlier warnings are left out. None if it is
                not well.
        """
        newest: list[Json] = []
        # An event without a time sorts as the oldest, and its age is not known.
        for row in sorted(self.rows, key=lambda row: event_time(row) or 0.0, reverse=True):
            moment = event_time(row)
            old = well_since is not None and moment is not None and moment < well_since
            if old and row.get("type") == "Warning":
                continue
            if not any(_repeats(row, newer) for newer in newest):
                newest.append(row)
        return [
            {
                "age": _age(event_time(row), now),
                "type": str(row.get("type") or "Normal"),
                "reason": str(row.get("reason") or ""),
                "message": one_line(row.get("message") or ""),
            }
            for row in newest[:_SHOWN]
        ]


def _age(at: float | None, now: float) -> str | None:
    return None if at is None else age(now - at)


def _repeats(row: Json, newer: Json) -> bool:
    """Return whether one of two messages has the other: the controller reports a failure twice."""
    message, other = str(row.get("message") or ""), str(newer.get("message") or "")
    return bool(message and other) and (message in other or other in message)


NO_EVENTS: Final = RecentEvents()


async def events_of(api: Api, kind: str, name: str, namespace: str = "") -> RecentEvents:
    """Return the events about an object of the caller's namespace, or of another one."""
    path = f"/api/v1/namespaces/{namespace or api.namespace}/events"
    fields = f"involvedObject.kind={kind},involvedObject.name={name}"
    try:
        return RecentEvents(await api.list(path, fields=fields))
    except ClientError as error:
        return RecentEvents((), error)
