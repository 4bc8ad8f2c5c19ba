"""Events about what this controller did, once for each change."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import structlog

from adapter.nodepool.capacity import Way
from adapter.nodepool.orders import Outcome
from adapter.nodepool.seen import instant
from adapter.nodepool.serverside import Object, WriteError, Writer
from adapter.nodepool.ways.names import MANAGER

log = structlog.get_logger(__name__)

_LONGEST: Final = 1024
"""Characters of a message that the API server takes."""


class Events:
    """Remembers what was said last of each order, and says only what is new."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._said: dict[tuple[str, str], tuple[int, str]] = {}

    async def tell(self, outcomes: Iterable[Outcome], way: Way | None, now: float) -> None:
        """Write an Event for each order whose number or failure is another than before."""
        current: dict[tuple[str, str], tuple[int, str]] = {}
        for outcome in outcomes:
            said = (outcome.order.replicas, outcome.failure)
            current[outcome.place] = said
            before = self._said.get(outcome.place, (outcome.order.was, ""))
            if said == before:
                continue
            _log(outcome)
            if not outcome.uid:
                continue
            try:
                await self._writer.create(event(outcome, way, now))
            except WriteError as error:
                log.warning("event not written", error=str(error))
        self._said = current


def _log(outcome: Outcome) -> None:
    order = outcome.order
    say = log.warning if outcome.failure else log.info
    say(
        "headroom refused" if outcome.failure else "headroom ordered",
        namespace=order.namespace,
        workloads=[f"{row.kind}/{row.name}" for row in order.workloads],
        pool=order.pool,
        was=order.was,
        replicas=order.replicas,
        why=outcome.text or [reason.text for reason in order.reasons],
        **({"reason": outcome.failure} if outcome.failure else {}),
    )


def event(outcome: Outcome, way: Way | None, now: float) -> Object:
    """The Event about an order, on its object."""
    namespace, name = outcome.place
    buffer = way is Way.BUFFER
    order = outcome.order
    why = outcome.text if outcome.failure else "; ".join(row.text for row in order.reasons)
    stamp = instant.write(now)
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": f"{name}.", "namespace": namespace},
        "involvedObject": {
            "apiVersion": "autoscaling.x-k8s.io/v1beta1" if buffer else "apps/v1",
            "kind": "CapacityBuffer" if buffer else "Deployment",
            "namespace": namespace,
            "name": name,
            "uid": outcome.uid,
        },
        "type": "Warning" if outcome.failure else "Normal",
        "reason": "HeadroomRefused" if outcome.failure else "HeadroomOrdered",
        "message": f"{order.was} to {order.replicas} pods in pool {order.pool or '-'}: {why}"[
            :_LONGEST
        ],
        "source": {"component": MANAGER},
        "reportingComponent": MANAGER,
        "firstTimestamp": stamp,
        "lastTimestamp": stamp,
        "count": 1,
    }
