"""How an answer presents objects: whole, as metadata, or as rows of a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec

from apiservice.errors import NotAcceptable
from apiservice.view.cells import RowWriter
from apiservice.view.negotiation import TABLE
from apiservice.view.options import TableOptions
from apiservice.view.resource import Json, Key, ServedResource, ViewGroup
from apiservice.wire.accept import Form

_NAME: Final[Json] = {
    "name": "Name",
    "type": "string",
    "format": "name",
    "description": "The name of the object; it is unique in its namespace.",
    "priority": 0,
}
_json = msgspec.json.Encoder().encode


class Presentation(NamedTuple):
    """How a list presents objects."""

    kind: str
    """Of the list."""
    api_version: str
    items: str
    """The key of the items: ``items`` or ``rows``."""
    render: Callable[[Key], bytes | None]
    """Returns one item; None if the object no longer exists."""
    columns: list[Json] | None = None

    def body(self, metadata: Json, items: list[bytes]) -> bytes:
        """Return the list."""
        head: Json = {"kind": self.kind, "apiVersion": self.api_version, "metadata": metadata}
        if self.columns is not None:
            head["columnDefinitions"] = self.columns
        return b'%b,"%b":[%b]}' % (_json(head)[:-1], self.items.encode(), b",".join(items))


def presentation(
    group: ViewGroup, view: ServedResource, form: Form, options: TableOptions, now: float
) -> Presentation:
    """Return how a list presents objects in the negotiated form."""
    if form.kind == TABLE:
        return _table(group, view, form, options, now)
    if form.kind:
        if not form.kind.endswith("List"):
            raise NotAcceptable(f"{form.kind}List, because a list is requested")
        return Presentation(form.kind, form.api_version, "items", _metadata(view, form, now))
    kind = f"{view.resource.kind}List"
    return Presentation(
        kind, group.api_version, "items", _objects(group, view, now, view.provider.object)
    )


def single(
    group: ViewGroup, view: ServedResource, form: Form, options: TableOptions, now: float
) -> Callable[[Key], bytes | None]:
    """Return what renders one object in the negotiated form."""
    if form.kind == TABLE:
        table = _table(group, view, form, options, now)

        def render(key: Key) -> bytes | None:
            row = table.render(key)
            return None if row is None else table.body({}, [row])

        return render
    if form.kind:
        if form.kind.endswith("List"):
            raise NotAcceptable("PartialObjectMetadata, because one object is requested")
        return _metadata(view, form, now)
    return _objects(group, view, now, view.whole or view.provider.object)


def _objects(
    group: ViewGroup,
    view: ServedResource,
    now: float,
    made: Callable[[Key, float], Json | None],
) -> Callable[[Key], bytes | None]:
    head = {"kind": view.resource.kind, "apiVersion": group.api_version}

    def render(key: Key) -> bytes | None:
        content = made(key, now)
        return None if content is None else _json(head | content)

    return render


def _metadata(view: ServedResource, form: Form, now: float) -> Callable[[Key], bytes | None]:
    head = _partial(form)

    def render(key: Key) -> bytes | None:
        content = view.provider.object(key, now)
        return None if content is None else _json(head | {"metadata": content["metadata"]})

    return render


def _table(
    group: ViewGroup, view: ServedResource, form: Form, options: TableOptions, now: float
) -> Presentation:
    provider, partial = view.provider, _partial(form)
    head = {"kind": view.resource.kind, "apiVersion": group.api_version}
    include, writer = options.include, RowWriter(view.resource.columns, numbers=options.numbers)

    def shown(key: Key) -> Json | None:
        if include == "Metadata":
            # Without the parts that only the whole object has, which would cost more than the row.
            return {**partial, "metadata": {**_identity(key), "labels": provider.labels(key)}}
        content = provider.object(key, now) if include == "Object" else None
        return None if content is None else head | content

    def render(key: Key) -> bytes | None:
        cells = provider.cells(key, now)
        if cells is None:
            return None
        return _json({"cells": writer.row(key.name, cells), "object": shown(key)})

    return Presentation(
        TABLE, form.api_version, "rows", render, _columns(view, numbers=options.numbers)
    )


def _identity(key: Key) -> dict[str, Any]:
    if not key.namespace:
        return {"name": key.name}
    return {"name": key.name, "namespace": key.namespace}


def _partial(form: Form) -> Json:
    return {"kind": "PartialObjectMetadata", "apiVersion": form.api_version}


def _columns(view: ServedResource, *, numbers: bool) -> list[Json]:
    columns = view.resource.columns
    texts = [_column(*column[:3], wide=column.wide) for column in columns]
    more = [
        _column(name, column.description, "number", wide=True)
        for column in columns
        for name in (column.numbers if numbers else ())
    ]
    return [_NAME, *texts, *more]


def _column(name: str, description: str, kind: str, *, wide: bool) -> Json:
    return {
        "name": name,
        "type": kind,
        "format": "",
        "description": description,
        "priority": int(wide),
    }
