"""The fixes of the view API's reasons, as they last: by what manages the object that they change.

The adapter sees pods alone. What manages their workload is read here, with the caller's rights.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from adapter.pipeline.attribution.reasons import changed_object, lasting_fix
from adapter.pipeline.cluster.changes import ChangedObject
from adapter.pipeline.cluster.managers import Manager, Way
from adapter.tools.client.access import Api, Json
from adapter.tools.client.changedobjects import read_changed
from adapter.tools.client.errors import ClientError

MOST: Final = 20
"""Objects that are read for the hints of one report; the others keep the adapter's words."""


async def put_lasting_fixes(api: Api, bodies: Iterable[Any]) -> None:
    """Put the fix that lasts in the place of each hint that changes an object.

    Args:
        api: the cluster.
        bodies: objects of the view API, which are changed.
    """
    rows: dict[str, list[Json]] = {}
    for row in _reasons(bodies):
        rows.setdefault(str(row["changes"]), []).append(row)
    for changes, those in list(rows.items())[:MOST]:
        of = await _read_changed_object(api, changes)
        for row in those:
            fix = lasting_fix(str(row.get("reason")), of)
            if fix is not None:
                row["hint"] = fix.line


async def _read_changed_object(api: Api, changes: str) -> ChangedObject:
    of = changed_object(changes)
    try:
        return await read_changed(api, of.kind, of.namespace, of.name)
    except ClientError:
        return of._replace(manager=Manager(of.kubectl("get", "-o yaml"), Way.UNKNOWN))


def _reasons(value: Any) -> Iterator[Json]:
    """Yield the reasons of objects that change an object."""
    if isinstance(value, dict):
        if value.get("changes"):
            yield value
        value = [value[key] for key in _HOLDERS if key in value]
    if isinstance(value, list | tuple):
        for part in value:
            yield from _reasons(part)


_HOLDERS: Final = ("reason", "absent", "devices", "leftOut", "reasons")
"""Fields of the view API's objects that hold reasons."""
