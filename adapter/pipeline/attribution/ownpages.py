"""Choose among the pages that report about one pod's servers: the pod's own come first.

A gateway or a collector may repeat what a pod's page says, and a store may hold both. The copy is
not a further server, so it counts only while there is no page of the pod's own.
"""

from __future__ import annotations

from enum import IntEnum

from adapter.pipeline.catalog.metric import Metric, Scope
from adapter.pipeline.cluster.pod import Pod
from adapter.pipeline.devices.series import DeviceSeries
from adapter.pipeline.devices.serveraddress import MERGED


class Nearness(IntEnum):
    """How near a page is to the server that it reports about."""

    ELSEWHERE = 0
    """An address without a port, or an agent of the pod that serves its other pages once more."""
    OF_A_PORT = 1
    """A port of an address that is not the pod's, such as a node's name."""
    OWN = 2
    """A port of the pod."""


def series_of_own_pages(
    all_series: list[DeviceSeries], pod: Pod, metric: Metric, oldest: float
) -> list[DeviceSeries]:
    """Return the device series without copies: those of pages farther than the nearest current one.

    All of them, if none is current. The answer to a user's own query, which has no address, is not
    a copy of fields that only the query gives.

    Args:
        all_series: all about the pod's servers, or all about its devices, which are kept.
        pod: the pod.
        metric: what is asked for.
        oldest: epoch seconds; a page read earlier is not current.
    """
    if len(all_series) < 2 or metric.scope is not Scope.SERVER:
        return all_series
    fields = {field for formula in metric.formulas for field in formula.fields}
    about = [series for series in all_series if any(map(series.newest, fields))]
    current = (series for series in about if series.received > oldest)
    nearest = max((_nearness(series, pod) for series in current), default=None)
    if nearest is None:
        return all_series
    copies = {id(series) for series in about if _nearness(series, pod) is not nearest}
    near = [series for series in about if id(series) not in copies and series.received > oldest]
    copies |= {id(series) for series in _series_of_named_ports(near, pod)}
    return [series for series in all_series if id(series) not in copies]


def _series_of_named_ports(current: list[DeviceSeries], pod: Pod) -> list[DeviceSeries]:
    """Return those at the name of a port that others give by its number.

    Google's PodMonitoring writes ``instance="<pod>:metrics"``, other jobs the number, and one store
    may have the series of both.
    """
    numbers = {port.name: str(port.port) for port in pod.ports if port.name}
    if not numbers:
        return []
    current_ports = {_port(series) for series in current}
    return [series for series in current if numbers.get(_port(series)) in current_ports]


def _port(series: DeviceSeries) -> str:
    return series.assignment.address.port if series.assignment is not None else ""


def _nearness(series: DeviceSeries, pod: Pod) -> Nearness:
    assigned = series.assignment
    host, port = assigned.address if assigned is not None else ("", "")
    if not port or port in MERGED:
        return Nearness.ELSEWHERE
    return Nearness.OWN if host in (pod.ip, pod.ref.name) else Nearness.OF_A_PORT
