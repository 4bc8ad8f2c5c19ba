"""Read-only resources of a view API: their names, columns and schema, and where objects come from.

A view is a list of objects that are computed when they are requested. It has no storage and no
watch. :mod:`apiservice.view` answers ``get`` and ``list`` from it, as JSON and as ``Table``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

from apiservice.runtime.steps import Steps, WaitingSteps

Json = dict[str, Any]
Cell = str | int | float | bool | None
"""A table cell; None becomes ``<none>``, because kubectl prints null as nothing."""
RawCell = Cell | tuple[float | None, ...]
"""A cell of a provider; a tuple has the numbers of a column with several."""


class Column(NamedTuple):
    """A column of a resource's table, as ``meta.k8s.io/v1`` TableColumnDefinition."""

    name: str
    """Title as a user reads it: ``Util``; kubectl prints it in upper case."""
    description: str
    type: Literal["string", "integer", "number", "boolean", "date"] = "string"
    wide: bool = False
    """Shown with ``-o wide`` only (priority 1)."""
    numbers: tuple[str, ...] = ()
    """Names, with units (``Mem-Bytes``), of what the text is written from: the provider returns
    these numbers, and no text. They are sent on request only."""
    write: Callable[..., str] | None = None
    """Writes the text; takes one argument for each of the numbers. None without numbers."""


class Key(NamedTuple):
    """Identifies an object of one resource."""

    namespace: str
    """Empty for cluster-scoped resources."""
    name: str


def by_name(key: Key) -> Any:
    """Return the usual place of an object in a list: by namespace, then by name."""
    return key


@dataclass(frozen=True, slots=True)
class ViewResource:
    """The description of one resource; static."""

    plural: str
    """As in the path: ``gpus``."""
    singular: str
    """Empty for a resource of another group's name, so that kubectl finds that one."""
    kind: str
    short_names: tuple[str, ...]
    namespaced: bool
    columns: tuple[Column, ...]
    """Without ``Name``, which is always first."""
    schema: Json
    """OpenAPI v3 schema of the object: ``type``, ``description``, ``properties`` (without
    apiVersion, kind and metadata, which are added)."""
    fields: tuple[str, ...] = ()
    """Field selectors beside ``metadata.name`` and ``metadata.namespace``: ``node``."""
    categories: tuple[str, ...] = ()
    """Names that stand for several resources. None may be a name of a resource: kubectl would not
    know which one is meant."""
    order: Callable[[Key], Any] = by_name
    """Returns what lists are sorted by. No two keys have an equal one."""


class ViewProvider(Protocol):
    """The objects of one resource. Only ``prepare`` may wait for a network."""

    def keys(self, namespace: str | None) -> Steps[Sequence[Key]]:
        """Return the keys of all objects, in the order of the resource; of one namespace if it is
        given.

        Raises:
            Unavailable: the data needed has never been read.
        """

    def prepare(self, keys: Sequence[Key], now: float) -> WaitingSteps[None]:
        """Compute, in steps, what the methods below need for these keys, so that each is fast.

        The routes run it before ``cells`` and ``object``, with the keys of one page, and for a
        single object before anything else. A key may name an object that does not exist.

        Raises:
            Unavailable: what they need cannot be had now.
        """

    def labels(self, key: Key) -> Mapping[str, str]:
        """Return an object's labels; empty without any, and if it no longer exists. Fast."""
        return {}

    def fields(self, key: Key) -> Mapping[str, str]:
        """Return an object's selectable fields (``ViewResource.fields``). Fast."""
        return {}

    def cells(self, key: Key, now: float) -> Sequence[RawCell] | None:
        """Return an object's cells, one for each column; None if it no longer exists.

        The cell of a column with one number is that number, and of one with several a tuple of
        them. None stands for a missing value in either case.
        """

    def object(self, key: Key, now: float) -> Json | None:
        """Return the object without apiVersion and kind; None if it no longer exists.

        ``metadata`` has name, namespace if namespaced, labels, and uid and creationTimestamp if
        known.
        """


class ServedResource(NamedTuple):
    """A resource, and where its objects come from."""

    resource: ViewResource
    provider: ViewProvider
    whole: Callable[[Key, float], Json | None] | None = None
    """Returns an object that is asked for by its name, if it has more than in a list."""


@dataclass(frozen=True, slots=True)
class ViewGroup:
    """The resources of one group-version."""

    group: str
    version: str
    views: tuple[ServedResource, ...]

    def __post_init__(self) -> None:
        """Raise ValueError if a name stands for two things."""
        names = Counter(
            name
            for resource, *_ in self.views
            for name in {resource.plural, resource.singular, *resource.short_names} - {""}
        )
        names.update({name for resource, *_ in self.views for name in resource.categories})
        if several := [name for name, count in names.items() if count > 1]:
            message = f"names of several resources or categories: {', '.join(several)}"
            raise ValueError(message)

    @property
    def api_version(self) -> str:
        """The ``apiVersion`` of its objects; the group without a name has only a version."""
        return f"{self.group}/{self.version}".lstrip("/")
