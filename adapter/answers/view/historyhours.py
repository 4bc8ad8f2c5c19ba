"""The resource ``gpuhistoryhours``: the hours of the history as another replica takes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from adapter.answers.history.hours import MINUTES, StoredHour
from adapter.answers.history.ring import MINUTE, HistoryRing
from adapter.answers.view.fragments import Json
from adapter.answers.view.schema import array, integer, struct, text
from apiservice.runtime.steps import Steps, at_once
from apiservice.view.resource import Column, Key, RawCell, ViewProvider, ViewResource
from apiservice.wire import instant

_SECONDS: Final = MINUTES * MINUTE
_DIGITS: Final = 10
"""Digits that no hour has."""

HISTORYHOURS: Final = ViewResource(
    plural="gpuhistoryhours",
    singular="gpuhistoryhour",
    kind="GpuHistoryHour",
    short_names=(),
    namespaced=False,
    columns=(
        Column("Start", "Begin of the hour."),
        Column("Bytes", "Bytes that the hour takes.", "integer"),
    ),
    schema=struct(
        "An hour of the history of all namespaces, for another replica of the adapter.",
        version=integer("Version of the form."),
        states=array("Names of the states, by their numbers.", text("Name of a state.")),
        hour=integer("Hours since 1970."),
        blocks=array("The points.", text("Deflated JSON in base64.")),
    ),
)


class HistoryHours(ViewProvider):
    """Implements :class:`apiservice.view.resource.ViewProvider`.

    Args:
        ring: the points.
    """

    def __init__(self, ring: HistoryRing) -> None:
        self._ring = ring
        self._open: StoredHour | None = None
        """The open hour as it was when somebody asked for it last. The others are at hand."""

    def keys(self, namespace: str | None) -> Steps[Sequence[Key]]:
        """See the port."""
        yield
        return [Key("", str(hour)) for hour in self._ring.hours]

    def prepare(self, keys: Sequence[Key], now: float) -> Steps[None]:
        """See the port."""
        hour = self._ring.open_hour
        if hour is not None and hour in map(_number, keys):
            self._open = yield from self._ring.stored_hour(hour)
        yield

    def cells(self, key: Key, now: float) -> Sequence[RawCell] | None:
        """See the port."""
        stored = self._hour(key)
        if stored is None:
            return None
        return instant.write(stored.hour * _SECONDS), sum(map(len, stored.blocks))

    def object(self, key: Key, now: float) -> Json | None:
        """See the port."""
        stored = self._hour(key)
        return None if stored is None else {"metadata": {"name": key.name}, **_fields(stored)}

    def _hour(self, key: Key) -> StoredHour | None:
        number = _number(key)
        if self._open is not None and self._open.hour == number == self._ring.open_hour:
            return self._open
        return None if number is None else at_once(self._ring.stored_hour(number))


def _number(key: Key) -> int | None:
    """Return the hour that a key names, in hours since 1970; None if it names none."""
    plain = key.name.isascii() and key.name.isdecimal() and len(key.name) < _DIGITS
    return int(key.name) if plain else None


def _fields(hour: StoredHour) -> Json:
    built: Json = msgspec.to_builtins(hour)
    return built
