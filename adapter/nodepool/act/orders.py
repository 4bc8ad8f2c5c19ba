"""Apply a plan: first the lifelines, then the objects of each order.

The order of the writes makes it safe. No headroom is written or kept without a lifeline. The
object of the previous provisioning method is deleted only when the new object exists. A refused
write is tried again only when its order changes or after some minutes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, NamedTuple

import structlog

from adapter.config.settings.nodepool import NodepoolSettings
from adapter.nodepool.act.lifeline import Lifeline, LifelineError, Lifelines
from adapter.nodepool.act.methods import (
    capacitybuffer,
    headroomobjects,
    placeholder,
)
from adapter.nodepool.act.methods.choice import MethodChoice
from adapter.nodepool.act.methods.headroomobjects import name_of
from adapter.nodepool.act.serverside import KubeObject, WriteError, WriteFailure, Writer
from adapter.nodepool.model.capacity import ProvisioningMethod
from adapter.nodepool.model.home import Home
from adapter.nodepool.model.names import BUFFER_GROUP, BUFFER_VERSIONS
from adapter.nodepool.plan.order import Order
from adapter.nodepool.seen.headroom import HeadroomObject
from adapter.nodepool.seen.priorityclasses import PriorityClass
from adapter.nodepool.seen.servedapis import ServedApis

log = structlog.get_logger(__name__)

_AGAIN: Final = 300.0
"""Seconds until a refused write is tried again."""


@dataclass(frozen=True, slots=True)
class OrderOutcome:
    """The outcome of an order."""

    order: Order
    namespace: str
    """Namespace and name of its objects."""
    uid: str
    """UID of the object; empty if it does not exist."""
    failure: str
    """``WriteFailure``, ``lifeline``, ``priority``, ``method`` or ``error``; empty on success."""
    text: str

    @property
    def place(self) -> tuple[str, str]:
        """Namespace and name of its objects."""
        return (self.namespace, name_of(self.order))


class _Means(NamedTuple):
    """What the cluster offers in one round to carry out orders with."""

    choice: MethodChoice
    served: ServedApis
    classes: Mapping[str, PriorityClass]
    now: float


class _Refused(NamedTuple):
    replicas: int
    until: float
    outcome: OrderOutcome


class Orders:
    """Applies orders with the provisioning method of the cluster."""

    def __init__(
        self, writer: Writer, lifelines: Lifelines, home: Home, settings: NodepoolSettings
    ) -> None:
        self._writer = writer
        self._lifelines = lifelines
        self._home = home
        self._settings = settings
        self._refused: dict[tuple[str, str], _Refused] = {}

    async def carry_out(
        self,
        orders: Iterable[Order],
        existing: Iterable[HeadroomObject],
        choice: MethodChoice,
        served: ServedApis,
        classes: Mapping[str, PriorityClass],
        now: float,
    ) -> list[OrderOutcome]:
        """Apply all orders.

        Returns:
            One outcome per order that has, or should have, an object.
        """
        by_place: dict[tuple[str, str], list[HeadroomObject]] = {}
        for row in existing:
            if row.shape is not None:
                by_place.setdefault(row.key, []).append(row)
        means = _Means(choice, served, classes, now)
        rows = list(orders)
        places = {self._place(order) for order in rows}
        self._refused = {place: row for place, row in self._refused.items() if place in places}
        outcomes = []
        for order in rows:
            place = self._place(order)
            objects = by_place.get(place, [])
            if not objects and not order.replicas:
                continue
            refused = self._refused.get(place)
            if refused and refused.replicas == order.replicas and now < refused.until:
                if order.replicas:
                    with suppress(LifelineError, WriteError):
                        await self._lifelines.keep(place[0], now)
                outcomes.append(refused.outcome)
                continue
            outcome = await self._outcome(order, objects, means)
            self._refused.pop(place, None)
            if outcome.failure and outcome.failure not in _PASSING:
                self._refused[place] = _Refused(order.replicas, now + _AGAIN, outcome)
            outcomes.append(outcome)
        return outcomes

    def _place(self, order: Order) -> tuple[str, str]:
        """Return the namespace and name of an order's objects."""
        return self._home.of(order.namespace, order.shape), name_of(order)

    async def _outcome(
        self, order: Order, objects: list[HeadroomObject], means: _Means
    ) -> OrderOutcome:
        """Apply one order. An unexpected error affects only this order."""
        try:
            return await self._apply(order, objects, means)
        except Exception as error:
            log.exception("order failed", namespace=order.namespace, name=name_of(order))
            text = f"{type(error).__name__}: {error}"
            uid = objects[0].uid if objects else ""
            return OrderOutcome(order, self._place(order)[0], uid, failure="error", text=text)

    async def _apply(
        self, order: Order, objects: list[HeadroomObject], means: _Means
    ) -> OrderOutcome:
        choice, served, now = means.choice, means.served, means.now
        uid = objects[0].uid if objects else ""
        place, _ = self._place(order)
        try:
            # Deleting needs neither a method nor a lifeline.
            if not order.replicas:
                await self._let_go(objects, served)
                return OrderOutcome(order, place, uid, failure="", text=order.why)
            try:
                lifeline = await self._lifelines.keep(place, now, sure=not objects)
            except LifelineError as error:
                # Without a lifeline, existing headroom would never be deleted.
                await self._let_go(objects, served)
                return OrderOutcome(order, place, uid, failure="lifeline", text=str(error))
            method = choice.method
            if method is None:
                return OrderOutcome(order, place, uid, failure="method", text=choice.reason)
            current = next((row for row in objects if row.method is method), None)
            name = self._settings.placeholder.priority_class
            refusal = placeholder.refusal(name, means.classes.get(name), order.shape)
            if method is ProvisioningMethod.PLACEHOLDER and refusal:
                return OrderOutcome(order, place, uid, failure="priority", text=refusal)
            if headroomobjects.worth_a_write(order, current, method, lifeline):
                uid = await self._write(order, current, method, lifeline, served, now)
            await self._let_go((row for row in objects if row.method is not method), served)
            return OrderOutcome(order, place, uid, failure="", text=order.why)
        except WriteError as error:
            return OrderOutcome(order, place, uid, failure=error.failure, text=str(error))

    async def _write(
        self,
        order: Order,
        current: HeadroomObject | None,
        method: ProvisioningMethod,
        lifeline: Lifeline,
        served: ServedApis,
        now: float,
    ) -> str:
        image = self._settings.placeholder.image
        if method is ProvisioningMethod.PLACEHOLDER:
            name = self._settings.placeholder.priority_class
            done = await self._writer.apply(placeholder.manifest(order, lifeline, image, name))
            return str(done["metadata"]["uid"])
        nudged_at = current.nudged_at if current is not None else None
        template, buffer = capacitybuffer.manifests(
            order, served.buffers, lifeline, image, now if order.nudge else nudged_at
        )
        await self._writer.apply(template)
        done = await self._writer.apply(buffer)
        return str(done["metadata"]["uid"])

    async def _let_go(self, rows: Iterable[HeadroomObject], served: ServedApis) -> None:
        for row in rows:
            meta = {"namespace": row.namespace, "name": row.name}
            if row.method is ProvisioningMethod.PLACEHOLDER:
                await self._writer.delete(_object("apps/v1", "Deployment", meta))
                continue
            version = served.buffers or BUFFER_VERSIONS[0]
            await self._writer.delete(_object(f"{BUFFER_GROUP}/{version}", "CapacityBuffer", meta))
            await self._writer.delete(_object("v1", "PodTemplate", meta))


_PASSING: Final = frozenset(
    {"method", "lifeline", WriteFailure.UNREACHABLE, WriteFailure.NOT_LEADING}
)
"""Failures that may be over in the next round."""


def _object(version: str, kind: str, meta: KubeObject) -> KubeObject:
    return {"apiVersion": version, "kind": kind, "metadata": meta}
