"""Which delegate is asked for a metric, and discovery with the delegates' metrics.

The caller has authorized the client's request. Delegates are asked in the order of the settings.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from operator import is_
from typing import Final
from urllib.parse import quote, urlencode

from apiservice.delegate.delegate import Delegate, Delegated
from apiservice.errors import LoopDetected, RouteNotFound, Unavailable
from apiservice.provider import MetricResource
from apiservice.wire.delegationheader import is_delegated
from apiservice.wire.metricvalues import CUSTOM_GROUP, EXTERNAL_GROUP
from apiservice.wire.routes import ResourcePath, custom_query, external_query

EVERY: Final = 30.0
"""Seconds between two reads of a delegate's discovery."""
_SELECTORS: Final = ("labelSelector", "metricLabelSelector")
"""The parameters that are forwarded."""

Headers = Sequence[tuple[bytes, bytes]]


class Delegation:
    """All delegates of a server."""

    def __init__(self, delegates: Sequence[Delegate]) -> None:
        self.delegates = tuple(delegates)
        self.loops = 0
        """Requests that were refused because they had already been delegated."""
        self._merged: dict[str, tuple[tuple[object, ...], tuple[MetricResource, ...]]] = {}

    @property
    def readers(self) -> Sequence[Callable[[], Awaitable[None]]]:
        """Return the loops that read the delegates' discovery."""
        return [_Reader(delegate).run for delegate in self.delegates]

    async def answer(
        self,
        where: ResourcePath,
        parameters: Mapping[str, str],
        headers: Headers,
    ) -> Delegated | None:
        """Return a delegate's answer about a metric that this server does not have.

        Returns:
            None if no delegate claims the metric.

        Raises:
            LoopDetected: a server that delegates sent the request.
            Unavailable: the delegate gave no usable answer, or it is not known which has it.
        """
        resource, metric = _requested_metric(where, parameters)
        claims = [
            (delegate, delegate.claims(where.group, resource, metric))
            for delegate in self.delegates
        ]
        claimants = [delegate for delegate, claim in claims if claim]
        unread = [delegate for delegate, claim in claims if claim is None]
        if not claimants and not unread:
            return None
        if is_delegated(headers):
            self.loops += 1
            raise LoopDetected(
                f"another server delegated the request for {metric} to this server, which would "
                f"delegate it to {(claimants or unread)[0].name}: remove one of the two delegates"
            )
        suffix = _suffix(where, parameters)
        absent: Delegated | None = None
        for delegate in claimants:
            answer = await delegate.ask(where.group, where.version, suffix)
            if answer.code != 404:
                return answer
            absent = answer
        if unread:
            raise Unavailable(
                f"{metric} is not known here, and the metrics of delegate {unread[0].name} are not "
                f"known: {unread[0].problem}"
            )
        return absent

    def custom_rows(self, own_rows: Sequence[MetricResource]) -> Sequence[MetricResource]:
        """Return the rows of custom.metrics.k8s.io: this server's own, then the delegates'."""
        return self._rows(CUSTOM_GROUP, own_rows)

    def external_names(self, own_names: Sequence[str]) -> Sequence[str]:
        """Return the names of external.metrics.k8s.io: this server's own, then the delegates'."""
        names = (row.metric for rows in self._lists(EXTERNAL_GROUP) for row in rows)
        return tuple(dict.fromkeys((*own_names, *names)))

    def _lists(self, group: str) -> list[tuple[MetricResource, ...]]:
        lists = (other.listing(group) for other in self.delegates if group in other.options.groups)
        return [group_list.rows for group_list in lists if group_list is not None]

    def _rows(self, group: str, own_rows: Sequence[MetricResource]) -> tuple[MetricResource, ...]:
        lists = self._lists(group)
        inputs = (own_rows, *lists)
        memo = self._merged.get(group)
        if memo is not None and len(memo[0]) == len(inputs) and all(map(is_, memo[0], inputs)):
            return memo[1]
        made = merge_rows(own_rows, lists)
        self._merged[group] = (inputs, made)
        return made


def merge_rows(
    own_rows: Sequence[MetricResource], lists: Sequence[Sequence[MetricResource]]
) -> tuple[MetricResource, ...]:
    """Return rows without duplicates, with one scope per resource: that of its first row."""
    scopes: dict[str, bool] = {}
    rows: dict[tuple[str, str], MetricResource] = {}
    for some in (own_rows, *lists):
        for row in some:
            resource = str(row.resource)
            scope = scopes.setdefault(resource, row.namespaced)
            scoped = row if scope == row.namespaced else replace(row, namespaced=scope)
            rows.setdefault((resource, row.metric), scoped)
    return tuple(rows.values())


class _Reader:
    """Reads the discovery of one delegate repeatedly."""

    def __init__(self, delegate: Delegate) -> None:
        self._delegate = delegate

    async def run(self) -> None:
        """Read until cancelled; soon again while nothing has been read."""
        pause = 1.0
        while True:
            await self._delegate.refresh()
            if not self._delegate.problem:
                pause = EVERY
            await asyncio.sleep(pause)
            pause = min(EVERY, 2 * pause)


def _requested_metric(where: ResourcePath, parameters: Mapping[str, str]) -> tuple[str, str]:
    """Return resource (empty for external metrics) and metric of a path."""
    if where.group == EXTERNAL_GROUP:
        return "", external_query(where.parts, parameters).metric
    query = custom_query(where.parts, parameters)
    return str(query.resource), query.metric


def _suffix(where: ResourcePath, parameters: Mapping[str, str]) -> str:
    """Return path and query as they were authorized: no part may lead to another path."""
    if any(part in (".", "..") for part in where.parts):
        raise RouteNotFound
    path = "/".join(quote(part, safe="") for part in where.parts)
    forwarded = [(name, parameters[name]) for name in _SELECTORS if parameters.get(name)]
    return f"{path}?{urlencode(forwarded)}" if forwarded else path
