"""The metrics that a delegate's discovery lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from apiservice.delegate.failure import DelegateFailure
from apiservice.delegate.options import MAX_ROWS
from apiservice.provider import GroupResource, MetricResource
from apiservice.runtime.jsontext import UNREADABLE
from apiservice.wire.metricvalues import CUSTOM_GROUP, CUSTOM_VERSIONS, EXTERNAL_VERSIONS

GENERIC: Final = "externalmetrics"
"""The only name that KEDA's metrics server lists. It means every external metric."""
_LONGEST: Final = 512
"""Characters of a row's name."""


class _Resource(msgspec.Struct):
    name: str
    namespaced: bool = True


class _Resources(msgspec.Struct, rename="camel"):
    kind: str
    group_version: str
    resources: list[_Resource] | None = None


_decode = msgspec.json.Decoder(_Resources).decode


@dataclass(frozen=True, slots=True)
class Listing:
    """One group of a delegate, read at one time."""

    group: str
    versions: tuple[str, ...]
    """Those that it serves, the preferred one first; none if it does not serve the group."""
    rows: tuple[MetricResource, ...]
    """External metrics have an empty resource."""
    time: float
    names: frozenset[tuple[str, str]] = field(default_factory=frozenset)
    """Resource and metric of each row."""

    def claims(self, resource: str, metric: str) -> bool:
        """Return whether the delegate has this metric."""
        return (resource, metric) in self.names or (not resource and ("", GENERIC) in self.names)


def versions_of(group: str) -> tuple[str, ...]:
    """Return the versions of a group, the preferred one first."""
    return CUSTOM_VERSIONS if group == CUSTOM_GROUP else EXTERNAL_VERSIONS


def read_listing(
    group: str, bodies: dict[str, bytes], now: float, before: Listing | None = None
) -> Listing:
    """Return what the APIResourceLists of the served versions say.

    Args:
        before: the last list; equal rows are the same object, so that nothing is merged again.

    Raises:
        DelegateFailure: one is malformed, or too long.
    """
    rows: tuple[MetricResource, ...] = ()
    for version, body in reversed(bodies.items()):
        rows = tuple(_rows(group, version, body))  # the preferred version comes last
    if before is not None and rows == before.rows:
        return Listing(group, tuple(bodies), before.rows, now, before.names)
    names = frozenset((str(row.resource), row.metric) for row in rows)
    return Listing(group, tuple(bodies), rows, now, names)


def _rows(group: str, version: str, body: bytes) -> Sequence[MetricResource]:
    try:
        listed = _decode(body)
    except UNREADABLE as error:
        text = f"the list of {group}/{version} is malformed: {error}"
        raise DelegateFailure("invalid", text) from error
    if (listed.kind, listed.group_version) != ("APIResourceList", f"{group}/{version}"):
        text = (
            f"the list of {group}/{version} is a {listed.kind[:80]} of {listed.group_version[:80]}"
        )
        raise DelegateFailure("invalid", text)
    resources = listed.resources or []
    if len(resources) > MAX_ROWS:
        text = f"the list of {group}/{version} has more than {MAX_ROWS} rows"
        raise DelegateFailure("too_large", text)
    made: list[MetricResource] = []
    for row in resources:
        resource, _, metric = row.name.rpartition("/")
        plain = row.name.isprintable() and len(row.name) <= _LONGEST
        expected = bool(resource) == (group == CUSTOM_GROUP) and "/" not in resource
        if plain and metric and expected:
            made.append(MetricResource(GroupResource.parse(resource), metric, row.namespaced))
    return made
