"""Kubernetes Events about orders, one per change."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import structlog

from adapter.nodepool.act.orders import OrderOutcome
from adapter.nodepool.act.serverside import KubeObject, WriteError, Writer
from adapter.nodepool.model.capacity import ProvisioningMethod
from adapter.nodepool.model.names import MANAGER
from adapter.nodepool.model.reason import count_pods
from apiservice.wire import instant

log = structlog.get_logger(__name__)

_LONGEST: Final = 1024
"""Maximum characters of a message that the API server accepts."""


class Events:
    """Writes an Event when an order changes."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._said: dict[tuple[str, str], tuple[int, str]] = {}

    async def announce(
        self, outcomes: Iterable[OrderOutcome], method: ProvisioningMethod | None, now: float
    ) -> None:
        """Write an Event for each order whose replicas or failure changed."""
        current: dict[tuple[str, str], tuple[int, str]] = {}
        for outcome in outcomes:
            state = (outcome.order.replicas, outcome.failure)
            current[outcome.place] = state
            before = self._said.get(outcome.place, (outcome.order.was, ""))
            if state == before:
                continue
            _log(outcome)
            if not outcome.uid:
                continue
            try:
                await self._writer.create(event(outcome, method, now))
            except WriteError as error:
                log.warning("event not written", error=str(error))
        self._said = current


def _log(outcome: OrderOutcome) -> None:
    order = outcome.order
    say = log.warning if outcome.failure else log.info
    say(
        f"headroom {_outcome_word(outcome)}",
        namespace=order.namespace,
        workloads=list(order.about),
        pool=order.pool,
        was=order.was,
        replicas=order.replicas,
        reason=outcome.text,
        **({"failure": outcome.failure} if outcome.failure else {}),
    )


def _outcome_word(outcome: OrderOutcome) -> str:
    """Return the outcome of an order in one word."""
    order = outcome.order
    if outcome.failure:
        return "refused"
    if not order.replicas:
        return "released"
    return "lowered" if order.replicas < order.was else "ordered"


def _message(outcome: OrderOutcome) -> str:
    order = outcome.order
    where = f" in pool {order.pool}" if order.pool else ""
    about = f" for {', '.join(order.about)}" if order.about else ""
    namespace = f"{about} of namespace {order.namespace}"
    number = f"from {order.was} to {count_pods(order.replicas)}{where}{namespace}"
    return f"{number}: {outcome.text}"


def event(outcome: OrderOutcome, method: ProvisioningMethod | None, now: float) -> KubeObject:
    """Return the Event about an order. It refers to the order's object."""
    namespace, name = outcome.place
    buffer = method is ProvisioningMethod.BUFFER
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
        "reason": f"Headroom{_outcome_word(outcome).capitalize()}",
        "message": _message(outcome)[:_LONGEST],
        "source": {"component": MANAGER},
        "reportingComponent": MANAGER,
        "firstTimestamp": stamp,
        "lastTimestamp": stamp,
        "count": 1,
    }
