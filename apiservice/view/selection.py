"""Which objects a page of a list has."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final, NamedTuple

from apiservice.runtime.steps import Steps, parts
from apiservice.view.options import NAMESPACE_FIELD, ListOptions
from apiservice.view.resource import Key, ViewProvider
from apiservice.wire.routes import NAME_FIELD

_STEP: Final = 64
"""Objects that are compared with a selector in one step."""


class Selection(NamedTuple):
    """The keys of one page."""

    keys: Sequence[Key]
    left: int
    """Keys after the last one; with a selector, they may be of objects that it leaves out."""


def select(provider: ViewProvider, namespace: str | None, options: ListOptions) -> Steps[Selection]:
    """Return the keys of a page."""
    keys = yield from provider.keys(namespace)
    first = 0 if options.after is None else bisect_right(keys, options.after)
    most = options.limit or len(keys)
    if not options.selects:
        return Selection(keys[first : first + most], max(0, len(keys) - first - most))
    chosen: list[Key] = []
    at = first
    for some in parts(keys[first:], _STEP):
        for key in some:
            if len(chosen) == most:
                return Selection(chosen, len(keys) - at)
            at += 1
            if _selected(provider, key, options):
                chosen.append(key)
        yield
    return Selection(chosen, 0)


def _selected(provider: ViewProvider, key: Key, options: ListOptions) -> bool:
    if options.fields.requirements:
        own = {NAME_FIELD: key.name, NAMESPACE_FIELD: key.namespace}
        if not options.fields.matches({**own, **provider.fields(key)}):
            return False
    return options.labels.empty or options.labels.matches(provider.labels(key))
