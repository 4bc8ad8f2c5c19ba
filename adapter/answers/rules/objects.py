"""The names of the objects that a request for ``*`` is about.

Pods are known from the watch. Other objects are listed by the API server, as metadata alone, with
the label selector of the request; an answer serves for a few seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final
from urllib.parse import urlencode

import msgspec
import structlog

from adapter.answers.rules.apidiscovery import Ask
from adapter.answers.rules.kinds import ResourceKind
from adapter.answers.rules.labels import NAMESPACES, ROOT
from adapter.pipeline.cluster.lookup import NODES, PODS, SERVICES, ObjectLookup
from apiservice.errors import BadQuery, Unavailable
from apiservice.labels.selector import Selector
from apiservice.runtime.bytecache import ByteCache, weight
from apiservice.runtime.flight import SingleFlight
from apiservice.runtime.steps import WaitingSteps, wait_for_result

log = structlog.get_logger(__name__)

MAX_OBJECTS: Final = 5000
"""Objects of one answer."""
FRESH: Final = 5.0
"""Seconds for which a list of objects is used."""
CACHE_BYTES: Final = 8 << 20
"""Bytes of all lists that are kept."""
_METADATA: Final = (
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
)


class _Meta(msgspec.Struct):
    name: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _Object(msgspec.Struct):
    metadata: _Meta


class _List(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    items: list[_Object] | None = None


class ObjectNames:
    """Lists the names of objects.

    Args:
        objects: the watched collections.
        ask: requests a path of the API server; None without a cluster.
    """

    def __init__(self, objects: ObjectLookup, ask: Ask | None) -> None:
        self._objects = objects
        self._ask = ask
        self._lists: ByteCache[str, Sequence[str]] = ByteCache(CACHE_BYTES, ttl=FRESH)
        self._flights: SingleFlight[str, Sequence[str]] = SingleFlight()

    @property
    def version(self) -> int:
        """Grows with every change of the watched collections."""
        return self._objects.version

    def names(
        self, kind: ResourceKind, namespace: str | None, selector: Selector
    ) -> WaitingSteps[Sequence[str]]:
        """Return the names of the selected objects.

        Raises:
            BadQuery: they are too many, or their labels are not known.
            Unavailable: the API server did not list them.
        """
        if kind.name == PODS:
            index = self._objects.pod_index
            if not index.synced:
                raise Unavailable("the pods have not been listed yet; /readyz/pods says why")
            pods = yield from index.select_in_steps(namespace, selector)
            return _bound_names(kind, [pod.ref.name for pod in pods])
        if self._ask is None:
            return _bound_names(kind, self._names_from_file(kind, namespace, selector))
        path = _path(kind, namespace, selector)
        names = self._lists.get(path)
        if names is None:
            listing = self._flights.ask(path, partial(self._list, self._ask, kind, path))
            names = yield from wait_for_result(listing)
        return names

    def _names_from_file(
        self, kind: ResourceKind, namespace: str | None, selector: Selector
    ) -> Sequence[str]:
        if kind.name == SERVICES and namespace is not None:
            return [service.name for service in self._objects.services.select(namespace, selector)]
        if kind.name == NODES:
            return [node.name for node in self._objects.nodes.select(selector)]
        if kind.name == NAMESPACES and selector.empty:
            return self._objects.pod_index.namespaces()
        raise BadQuery(f"{kind.name} cannot be listed without a cluster: name one object")

    async def _list(self, ask: Ask, kind: ResourceKind, path: str) -> Sequence[str]:
        try:
            answer = msgspec.json.decode(await ask(path, _METADATA), type=_List)
        except Exception as error:
            log.warning("cannot list objects", resource=str(kind.name), error=str(error)[:300])
            raise Unavailable(
                f"{kind.name} could not be listed; grant list on {kind.name} to the adapter's "
                "ServiceAccount (its log has the API server's answer)"
            ) from None
        if answer.metadata.continue_:
            raise _too_many_error(kind)
        names = list(_bound_names(kind, [row.metadata.name for row in answer.items or ()]))
        self._lists.put(path, names, weight(path, names))
        return names


def _path(kind: ResourceKind, namespace: str | None, selector: Selector) -> str:
    where = "" if namespace is None or kind.name in ROOT else f"/namespaces/{namespace}"
    query = {"limit": str(MAX_OBJECTS)} | (
        {} if selector.empty else {"labelSelector": str(selector)}
    )
    return f"{kind.path}{where}/{kind.resource}?{urlencode(query)}"


def _bound_names(kind: ResourceKind, names: Sequence[str]) -> Sequence[str]:
    if len(names) > MAX_OBJECTS:
        raise _too_many_error(kind)
    return names


def _too_many_error(kind: ResourceKind) -> BadQuery:
    return BadQuery(
        f"more than {MAX_OBJECTS} {kind.name} are selected: select fewer with labelSelector"
    )
