"""Which objects a page of a list has."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final, NamedTuple

from apiservice.runtime.steps import Steps, parts
from apiservice.view.options import NAMESPACE_FIELD, ListOptions
from apiservice.view.resource import Key, ServedResource, ViewProvider
from apiservice.wire.routes import NAME_FIELD

_KEPT: Final = 10.0
"""Seconds for which the keys of a list are kept for its next pages."""
_STEP: Final = 64
"""Objects that are compared with a selector in one step."""


class Selection(NamedTuple):
    """The keys of one page."""

    keys: Sequence[Key]
    left: int
    """Keys after the last one; with a selector, they may be of objects that it leaves out."""


class _Listed(NamedTuple):
    """The keys of a list, and when they were taken."""

    namespace: str | None
    keys: Sequence[Key]
    at: float


class KeyLists:
    """Takes the keys of lists. The pages of one list share them, so that each page is cheap.

    Keeps the newest list of each resource. Its next pages show no object that was created since;
    an object that is gone is left out.
    """

    def __init__(self) -> None:
        self._newest: dict[str, _Listed] = {}

    def keys(
        self, view: ServedResource, namespace: str | None, options: ListOptions, now: float
    ) -> Steps[Sequence[Key]]:
        """Return the sorted keys of which ``options`` selects a page."""
        plural = view.resource.plural
        newest = self._newest.get(plural)
        if (
            options.after is not None
            and newest is not None
            and newest.namespace == namespace
            and 0 <= now - newest.at < _KEPT
        ):
            return newest.keys
        keys = yield from view.provider.keys(namespace)
        if options.limit and len(keys) > options.limit:
            self._newest[plural] = _Listed(namespace, keys, now)
        return keys


def select(view: ServedResource, keys: Sequence[Key], options: ListOptions) -> Steps[Selection]:
    """Return the keys of a page."""
    provider, order = view.provider, view.resource.order
    first = 0
    if options.after is not None:
        first = bisect_right(keys, order(options.after), key=order)
    most = options.limit or len(keys)
    if not options.selects:
        return Selection(keys[first : first + most], max(0, len(keys) - first - most))
    chosen: list[Key] = []
    index = first
    for some in parts(keys[first:], _STEP):
        for key in some:
            if len(chosen) == most:
                return Selection(chosen, len(keys) - index)
            index += 1
            if _is_selected(provider, key, options):
                chosen.append(key)
        yield
    return Selection(chosen, 0)


def _is_selected(provider: ViewProvider, key: Key, options: ListOptions) -> bool:
    if options.fields.requirements:
        key_fields = {NAME_FIELD: key.name, NAMESPACE_FIELD: key.namespace}
        if not options.fields.matches({**key_fields, **provider.fields(key)}):
            return False
    return options.labels.empty or options.labels.matches(provider.labels(key))
