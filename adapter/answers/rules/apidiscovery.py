"""Read which resources the cluster has, from the API server's discovery documents.

A current API server answers with all groups in one document. An older one is asked for each
group-version.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Final, NamedTuple

import msgspec

from adapter.answers.rules.kinds import KindTable, ResourceKind

Ask = Callable[[str, str], Awaitable[bytes]]
"""Path and accepted media type -> the body; raises an exception if there is none."""

MAX_RESOURCES: Final = 20_000
"""Resources that are read."""
MAX_GROUP_VERSIONS: Final = 500
"""Group-versions that an older API server is asked for."""
_NAMES: Final = 253
"""Characters of a name."""
_JSON: Final = "application/json"
_AGGREGATED: Final = ",".join(
    f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
    for version in ("v2", "v2beta1")
)
_OWN: Final = frozenset({"custom.metrics.k8s.io", "external.metrics.k8s.io", "metrics.k8s.io"})
"""Groups whose resources are metrics, not objects."""


class _Kind(msgspec.Struct):
    kind: str = ""


class _Resource(msgspec.Struct):
    resource: str = ""
    singularResource: str = ""  # noqa: N815 - the wire's name
    responseKind: _Kind | None = None  # noqa: N815 - the wire's name


class _Version(msgspec.Struct):
    version: str
    resources: list[_Resource] = []


class _Meta(msgspec.Struct):
    name: str = ""


class _Group(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    versions: list[_Version] = []


class _Groups(msgspec.Struct):
    kind: str = ""
    items: list[_Group] = []


class _GroupVersion(msgspec.Struct):
    groupVersion: str  # noqa: N815 - the wire's name


class _OldGroup(msgspec.Struct):
    name: str
    versions: list[_GroupVersion] = []
    preferredVersion: _GroupVersion | None = None  # noqa: N815 - the wire's name


class _OldGroups(msgspec.Struct):
    groups: list[_OldGroup] = []


class _OldResource(msgspec.Struct):
    name: str
    kind: str = ""
    singularName: str = ""  # noqa: N815 - the wire's name


class _OldResources(msgspec.Struct):
    resources: list[_OldResource] = []


class ClusterKinds(NamedTuple):
    """The resources of the cluster."""

    table: KindTable
    failed: tuple[str, ...] = ()
    """Group-versions that did not answer."""


async def read_kinds(ask: Ask) -> ClusterKinds:
    """Return the resources that the API server serves.

    Raises:
        Exception: as ``ask`` raises it, or msgspec.MsgspecError for another kind of answer.
    """
    kinds: list[ResourceKind] = []
    failed: list[str] = []
    for path in ("/api", "/apis"):
        body = await ask(path, f"{_AGGREGATED},{_JSON}")
        groups = msgspec.json.decode(body, type=_Groups)
        if groups.kind == "APIGroupDiscoveryList":
            kinds += _kinds_of_groups(groups)
        else:
            await _read_older_kinds(ask, path, body, kinds, failed)
    del kinds[MAX_RESOURCES:]
    return ClusterKinds(KindTable(kinds), tuple(failed))


def _kinds_of_groups(groups: _Groups) -> Iterator[ResourceKind]:
    for group in groups.items:
        if group.metadata.name in _OWN:
            continue
        for version in group.versions:  # the preferred version is the first
            for resource in version.resources:
                kind = resource.responseKind.kind if resource.responseKind else ""
                name = group.metadata.name, version.version, resource.resource
                yield from _kind(*name, resource.singularResource, kind)


async def _read_older_kinds(
    ask: Ask, path: str, body: bytes, kinds: list[ResourceKind], failed: list[str]
) -> None:
    versions = ["v1"] if path == "/api" else _versions(body)
    for version in versions[:MAX_GROUP_VERSIONS]:
        try:
            answer = await ask(f"{path}/{version}", _JSON)
            listing = msgspec.json.decode(answer, type=_OldResources)
        except Exception:
            # One extension API server that is down must not hide the other groups.
            failed.append(version)
            continue
        group, _, number = version.rpartition("/")
        for resource in listing.resources:
            kinds += _kind(group, number, resource.name, resource.singularName, resource.kind)


def _versions(body: bytes) -> list[str]:
    versions: list[str] = []
    for group in msgspec.json.decode(body, type=_OldGroups).groups:
        if group.name in _OWN:
            continue
        preferred = group.preferredVersion
        if preferred is not None:
            versions.append(preferred.groupVersion)
        versions += [
            version.groupVersion
            for version in group.versions
            if preferred is None or version.groupVersion != preferred.groupVersion
        ]
    return versions


def _kind(
    group: str, version: str, resource: str, singular: str, kind: str
) -> Iterator[ResourceKind]:
    if not resource or "/" in resource or max(map(len, (group, resource, kind))) > _NAMES:
        return
    yield ResourceKind(group, version, resource, singular or kind.lower(), kind)
