"""The routes of a group of views: ``get`` and ``list``, and clear answers to everything else."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, NamedTuple

from starlette.types import Receive, Scope, Send

from apiservice.errors import (
    BadQuery,
    MethodNotAllowed,
    ObjectNotFound,
    RouteNotFound,
    ViewNotWatchable,
)
from apiservice.runtime.nearest import nearest_in_steps
from apiservice.runtime.steps import Steps, WaitingSteps, parts
from apiservice.runtime.turns import Turns
from apiservice.view.negotiation import negotiate
from apiservice.view.options import ListOptions, continue_token, list_options, table_options
from apiservice.view.presentation import Presentation, presentation, single
from apiservice.view.resource import Json, Key, ServedResource, ViewGroup
from apiservice.view.selection import KeyLists, Selection, select
from apiservice.wire.accept import Form, accept_header
from apiservice.wire.answers import Prepared, json_messages
from apiservice.wire.largeanswers import LargeAnswers
from apiservice.wire.routes import (
    ResourcePath,
    check_list_options,
    query_parameters,
    truth,
)

MOST_BYTES: Final = 16 << 20
"""Bytes that the objects of a list without a limit may take."""
PAGE_BYTES: Final = 4 << 20
"""Bytes after which a page ends, although its limit allows more objects."""
_STEP: Final = 64
"""Objects that a provider prepares at once."""
_FEW: Final = 64
"""Objects of a list that is answered at once. A longer list waits for its turn."""
_AROUND: Final = 250
"""Names before and after an unknown one, in the order of the list, that are compared with it."""

MayList = Callable[[], Awaitable[bool]]
"""Says whether the user of the request may list the objects among which it names one."""


def render_page(
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


def render_object(
    view: ServedResource, key: Key, render: Callable[[Key], bytes | None], now: float
) -> WaitingSteps[bytes | None]:
    """Render an object; None if it does not exist."""
    yield from view.provider.prepare([key], now)
    return render(key)


def _resource_version(now: float) -> str:
    """Return the version of what is computed as of ``now``: its milliseconds."""
    return str(int(now * 1000))


class _Wanted(NamedTuple):
    """The objects that a path names."""

    view: ServedResource
    namespace: str | None
    """None for all namespaces, and for cluster-scoped resources."""
    name: str
    """Empty for a list."""


class ViewEndpoint:
    """Answers the authorized requests below one group-version.

    Args:
        group: the views.
        clock: epoch seconds.
        lists: where long lists wait; a place of their own by default.
    """

    def __init__(
        self, group: ViewGroup, clock: Callable[[], float], lists: LargeAnswers | None = None
    ) -> None:
        self._group = group
        self._clock = clock
        self._views = {view.resource.plural: view for view in group.views}
        self._turns = Turns()
        self._lists = KeyLists()
        self._large = LargeAnswers() if lists is None else lists

    async def answer(
        self, scope: Scope, where: ResourcePath, receive: Receive, send: Send, may_list: MayList
    ) -> None:
        """Answer one request.

        Raises:
            ApiError: there is no such object or route, or the request cannot be answered.
        """
        form = negotiate(accept_header(scope["headers"]))
        if scope["method"] != "GET":
            raise MethodNotAllowed
        wanted = self._parse_path(where.parts)
        query = query_parameters(scope["query_string"])
        if wanted.name:
            await _send(await self._object(wanted, form, query, may_list), send)
            return
        if truth(query, "watch"):
            raise ViewNotWatchable(self._group.group, wanted.view.resource.plural)
        options = list_options(wanted.view.resource, wanted.namespace, query)
        shown = table_options(query)
        keys = await self._turns.run(
            self._lists.keys(wanted.view, wanted.namespace, options, self._clock())
        )
        selection = await self._turns.run(select(wanted.view, keys, options))

        async def prepare() -> Prepared:
            now = self._clock()
            presented = presentation(self._group, wanted.view, form, shown, now)
            return _prepare_response(
                await self._turns.run(
                    render_page(wanted.view, wanted.namespace, options, selection, presented, now)
                )
            )

        if len(selection.keys) <= _FEW:
            await _send(await prepare(), send)
        else:
            await self._large.answer(scope["path"], prepare, receive, send)

    def _parse_path(self, parts: tuple[str, ...]) -> _Wanted:
        """Return what a path names.

        Raises:
            RouteNotFound: no resource of this group has such a path.
        """
        namespace = None
        if parts[0] == "namespaces" and len(parts) > 2:
            namespace, parts = parts[1], parts[2:]
        view = self._views.get(parts[0])
        if view is None or len(parts) > 2 or "" in parts or namespace == "":
            raise RouteNotFound
        name = parts[1] if len(parts) == 2 else ""
        namespaced = view.resource.namespaced
        if namespace is not None and not namespaced:
            raise RouteNotFound
        if name and namespaced and namespace is None:
            raise RouteNotFound
        return _Wanted(view, namespace, name)

    async def _object(
        self, wanted: _Wanted, form: Form, query: Mapping[str, str], may_list: MayList
    ) -> Prepared:
        check_list_options(query)
        now = self._clock()
        render = single(self._group, wanted.view, form, table_options(query), now)
        key = Key(wanted.namespace or "", wanted.name)
        body = await self._turns.run(render_object(wanted.view, key, render, now))
        if body is not None:
            return _prepare_response(body)
        names = []
        if await may_list():
            names = await self._turns.run(_similar_names(wanted, key))
        raise ObjectNotFound(self._group.group, wanted.view.resource.plural, wanted.name, names)


def _similar_names(wanted: _Wanted, key: Key) -> Steps[list[str]]:
    """Return names that resemble an unknown one, of the same namespace."""
    keys = yield from wanted.view.provider.keys(wanted.namespace)
    order = wanted.view.resource.order
    index = bisect_left(keys, order(key), key=order)
    around = [near for near in keys[max(0, index - _AROUND) : index + _AROUND] if near != key]
    return (yield from nearest_in_steps(key.name, (near.name for near in around), parts=True))


def _prepare_response(body: bytes) -> Prepared:
    return Prepared(*json_messages(200, body), 0.0)


async def _send(prepared: Prepared, send: Send) -> None:
    await send(prepared.start)
    await send(prepared.body)
