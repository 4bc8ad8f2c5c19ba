"""What an HPA was in the last half hour, in one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from adapter.answers.judgement.states import ORDER
from adapter.figures import count, memory, number
from adapter.tools.client.access import Api
from adapter.tools.client.errors import ClientError
from adapter.tools.client.histories import SHOWN, HpaPast, Points, read_history

Json = dict[str, Any]

_NONE: Final = (404, 410)
"""The view API is off, or ``serve`` is of an older release: there is nothing to read."""


class ReadPast(NamedTuple):
    """The past of an HPA, or why it cannot be read."""

    past: HpaPast | None = None
    problem: str = ""

    @property
    def text(self) -> str:
        """The past as a sentence; empty without one."""
        past = self.past
        if past is None or not past.time:
            return ""
        parts = []
        write = memory if past.metric.endswith("_bytes") else number
        if spread := _spread(past.value, write):
            goal = next((point for point in reversed(past.target) if point is not None), None)
            target = "" if goal is None else f" (target {write(goal)})"
            parts.append(f"{past.metric} {spread}{target}")
        if spread := _spread(past.current, number):
            parts.append(f"replicas {spread}")
        minutes = past.states()
        parts += [f"{state} {minutes[state]} min" for state in ORDER if minutes[state]]
        if unknown := past.state.count(None):
            parts.append(f"{unknown} min are not known")
        return f"last {count(len(past.time), 'minute')}: {'; '.join(parts)}"

    def json(self) -> Json:
        """The points for programs."""
        return {} if self.past is None else {"past": self.past._asdict()}


NO_PAST: Final = ReadPast()


async def past_of(api: Api, namespace: str, name: str, now: float) -> ReadPast:
    """Return what ``serve`` has noted of an HPA in the last half hour."""
    try:
        past = await read_history(api, namespace, name)
    except ClientError as error:
        problem = "" if error.status in _NONE else f"the past is not shown: {error.brief}"
        return ReadPast(None, problem)
    return NO_PAST if past is None else ReadPast(past.last(SHOWN, now))


def _spread(points: Points, write: Callable[[float], str]) -> str:
    numbers = [point for point in points if point is not None]
    if not numbers:
        return ""
    least, most = write(min(numbers)), write(max(numbers))
    return least if least == most else f"{least} to {most}"
