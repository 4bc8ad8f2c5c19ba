"""The queue of the servers in the report of a replay: which metric shows that requests wait."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from adapter.figures import count, short_number
from adapter.tools.client.access import Json
from adapter.tools.replay.queuemetric import QueueEvidence, QueueSignal, Spread

QUEUE_TITLE: Final = "Which metric shows that requests wait"
QUEUE_HEADER: Final = ("METRIC", "NONE-WAITED", "SOME-WAITED", "HIGHER")


def queue_rows(queue: QueueEvidence) -> Iterator[tuple[str, ...]]:
    """Yield a row for each metric."""
    for signal in queue.signals:
        higher = "?" if signal.higher is None else f"{100 * signal.higher:.0f}%"
        yield (signal.metric, _text(signal.without), _text(signal.waiting), higher)


def queue_basis(queue: QueueEvidence) -> Iterator[str]:
    """Yield what the rows mean."""
    yield (
        f"requests waited at {queue.waiting} of {count(queue.syncs, 'sync')}"
        + (
            f", up to {short_number(queue.most / 1000)} of all pods together"
            if queue.waiting
            else ""
        )
    )
    yield (
        "values are of one pod: the median of the syncs, and the range of nine in ten of them; "
        "HIGHER is the probability that a sync with waiting requests has the higher value, and 50% "
        "says nothing"
    )


def saturated_text(queue: QueueEvidence | None) -> str:
    """Return what is known of the demand while the pods did as much as they can."""
    if queue is None or not queue.saturated:
        return "the demand was then at least what is shown, and may have been more"
    syncs = f"{queue.saturated_waiting} of {count(queue.saturated, 'such sync')}"
    if not queue.saturated_waiting:
        return f"requests waited at {syncs}: the demand was hardly more than what is shown"
    more = short_number(round(100 * queue.backlog, 1))
    return (
        f"requests waited at {syncs}, {more} for each 100 that ran: the demand was up to {more} % "
        "more than what is shown"
    )


def queue_json(queue: QueueEvidence) -> Json:
    """Return the same for programs; a number of requests is not in thousandths."""
    return {
        "syncs": queue.syncs,
        "syncsWithWaitingRequests": queue.waiting,
        "mostWaitingRequests": queue.most / 1000,
        "runningRequestsWithoutWaiting": queue.level / 1000,
        "saturatedSyncs": queue.saturated,
        "saturatedSyncsWithWaitingRequests": queue.saturated_waiting,
        "waitingToRunningWhenSaturated": queue.backlog,
        "metrics": [_json(signal) for signal in queue.signals],
    }


def _json(signal: QueueSignal) -> Json:
    return {
        "metric": signal.metric,
        "withoutWaitingRequests": _spread(signal.without),
        "withWaitingRequests": _spread(signal.waiting),
        "probabilityHigher": signal.higher,
    }


def _spread(spread: Spread | None) -> Json | None:
    if spread is None:
        return None
    return {"low": spread.low / 1000, "median": spread.median / 1000, "high": spread.high / 1000}


def _text(spread: Spread | None) -> str:
    if spread is None:
        return "-"
    low, median, high = (short_number(milli / 1000) for milli in spread)
    return f"{median} ({low}-{high})"
