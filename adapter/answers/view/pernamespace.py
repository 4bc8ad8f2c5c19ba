"""Results about the pods of a namespace, computed again only when one of its pods has changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

from adapter.pipeline.cluster.index import PodIndex
from adapter.pipeline.cluster.pod import PodRef
from apiservice.runtime.steps import Steps

V = TypeVar("V")


class _Stamp(NamedTuple):
    changes: int
    serving: frozenset[PodRef]


class PerNamespace(Generic[V]):
    """One result per namespace.

    Args:
        pods: the known pods.
        compute: returns the result of a namespace in steps, from its name and its servers.
    """

    def __init__(
        self, pods: PodIndex, compute: Callable[[str, frozenset[PodRef]], Steps[V]]
    ) -> None:
        self._pods = pods
        self._compute = compute
        self._known: dict[str, tuple[_Stamp, V]] = {}

    def of(self, namespace: str) -> V | None:
        """Return the result as of the last :meth:`refresh` of the namespace."""
        stamped = self._known.get(namespace)
        return stamped[1] if stamped is not None else None

    def refresh(self, namespaces: Sequence[str], serving: frozenset[PodRef]) -> Steps[None]:
        """Bring the results of namespaces up to date, in steps.

        Args:
            namespaces: those that are asked about.
            serving: the pods of all namespaces that have a server page.
        """
        existing = set(self._pods.namespaces())
        for gone in self._known.keys() - existing:
            del self._known[gone]
        servers: dict[str, set[PodRef]] = {}
        for ref in serving:
            servers.setdefault(ref.namespace, set()).add(ref)
        yield
        for namespace in namespaces:
            if namespace not in existing:
                continue
            refs = frozenset(servers.get(namespace, ()))
            stamp = _Stamp(self._pods.changes_in(namespace), refs)
            stamped = self._known.get(namespace)
            if stamped is None or stamped[0] != stamp:
                self._known[namespace] = (stamp, (yield from self._compute(namespace, refs)))
                yield
