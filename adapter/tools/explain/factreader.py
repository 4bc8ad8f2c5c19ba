"""Reads objects of a cluster with the caller's rights, and keeps what could not be read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import msgspec

from adapter.tools.client.access import Api
from adapter.tools.client.errors import ClientError
from apiservice.runtime.jsontext import UNREADABLE

T = TypeVar("T")

_MOST: Final = 5000
"""Objects of one list that are read."""


@dataclass(slots=True)
class FactReader:
    """Reads objects, and names what could not be read."""

    api: Api
    unread: dict[str, None]
    """Used as an ordered set."""

    async def read_list(
        self, path: str, reads: Callable[[msgspec.Raw], T], what: str, **by: str
    ) -> list[T]:
        """Return the objects of a list that can be decoded, up to a bound."""
        objects: list[T] = []
        try:
            async for texts in self.api.texts(path, **by):
                for text in texts:
                    try:
                        objects.append(reads(text))
                    except (*UNREADABLE, TypeError, AttributeError, KeyError):
                        self.unread[f"some {what} could not be decoded"] = None
                if len(objects) >= _MOST:
                    self.unread[f"only the first {len(objects)} {what} were read"] = None
                    break
        except ClientError as error:
            self._note_failure(what, error)
        return objects

    async def read_one(self, path: str, decode: Callable[[Any], T], what: str) -> T | None:
        """Return one object; None if it does not exist, or cannot be read."""
        try:
            return decode(await self.api.get(path))
        except ClientError as error:
            self._note_failure(what, error)
        except (msgspec.ValidationError, TypeError, AttributeError, KeyError):
            self.unread[f"{what} could not be decoded"] = None
        return None

    def _note_failure(self, what: str, error: ClientError) -> None:
        """A kind that the cluster does not have leaves no gap."""
        if error.status not in (404, 410):
            brief = error.brief.partition("; an administrator grants")[0]
            self.unread[f"causes that follow from {what} are not shown: {brief}"] = None
