"""One page of a list, and one object, as JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from apiservice.errors import BadQuery
from apiservice.runtime.steps import WaitingSteps, parts
from apiservice.view.options import ListOptions, continue_token
from apiservice.view.presentation import Presentation
from apiservice.view.resource import Json, Key, ServedResource
from apiservice.view.selection import Selection

MOST_BYTES: Final = 16 << 20
"""Bytes that the objects of a list without a limit may take."""
PAGE_BYTES: Final = 4 << 20
"""Bytes after which a page ends, although its limit allows more objects."""
_STEP: Final = 64
"""Objects that a provider prepares at once."""


def page(
    view: ServedResource,
    namespace: str | None,
    options: ListOptions,
    selection: Selection,
    presented: Presentation,
    now: float,
) -> WaitingSteps[bytes]:
    """Render the objects of a selection.

    Raises:
        BadQuery: the list would be too large.
    """
    items: list[bytes] = []
    done = size = 0
    most = PAGE_BYTES if options.limit else MOST_BYTES
    for keys in parts(selection.keys, _STEP):
        if size >= most:
            break
        yield from view.provider.prepare(keys, now)
        for key in keys:
            if size >= most:
                break
            item = presented.render(key)
            done += 1
            if item is not None:
                items.append(item)
                size += len(item)
            yield None
    left = selection.left + len(selection.keys) - done
    if done < len(selection.keys) and not options.limit:
        raise BadQuery(
            f"the answer would be larger than {MOST_BYTES >> 20} MiB: set limit to receive it in "
            f"pages, select fewer objects with labelSelector or fieldSelector, or request each "
            f"namespace separately"
        )
    metadata: Json = {"resourceVersion": _resource_version(now)}
    if left and done:
        metadata["continue"] = continue_token(view.resource, namespace, selection.keys[done - 1])
        if not options.selects:
            metadata["remainingItemCount"] = left
    return presented.body(metadata, items)


def one(
    view: ServedResource, key: Key, render: Callable[[Key], bytes | None], now: float
) -> WaitingSteps[bytes | None]:
    """Render an object; None if it does not exist."""
    yield from view.provider.prepare([key], now)
    return render(key)


def _resource_version(now: float) -> str:
    """Return the version of what is computed as of ``now``: its milliseconds."""
    return str(int(now * 1000))
