"""The state of the page as named parts, each whole and with the revision of its last change.

A client that has seen revision R has the newest version of each part whose revision is at most R.
So a client needs only the parts that changed after R, and each only in its newest version.
"""

from __future__ import annotations

import asyncio
import secrets
from typing import Final, NamedTuple

_EVENT: Final = b"event: %b\nid: %b-%d\ndata: %b\n\n"


class Part(NamedTuple):
    """One part of the page's state."""

    name: str
    revision: int
    data: bytes
    """JSON, on one line."""


class PageParts:
    """All parts. Belongs to one event loop."""

    def __init__(self) -> None:
        self.epoch: Final = secrets.token_hex(4)
        """Differs between two processes, whose revisions have nothing in common."""
        self.closed = False
        """The process stops: streams end."""
        self._parts: dict[str, Part] = {}
        self._content: dict[str, bytes] = {}
        self._revision = 0
        self._changed = asyncio.Event()

    def publish(self, name: str, content: bytes, *, numbered: bool = False, of: int = 0) -> int:
        """Replace a part, unless it is the same. Return the revision of its last change.

        Args:
            name: of the part.
            content: a JSON object.
            numbered: add the part's own revision to the object.
            of: if set, the revision of another part, which is added to the object.
        """
        if of:
            content = b'{"of":%d,%b' % (of, content[1:])
        if self._content.get(name) == content:
            return self._parts[name].revision
        self._revision += 1
        self._content[name] = content
        data = b'{"revision":%d,%b' % (self._revision, content[1:]) if numbered else content
        self._parts[name] = Part(name, self._revision, data)
        self._wake()
        return self._revision

    def get(self, name: str) -> bytes | None:
        """Return a part's JSON; None before it is published."""
        part = self._parts.get(name)
        return None if part is None else part.data

    def after(self, revision: int) -> Part | None:
        """Return the oldest part that changed after a revision; None if there is none."""
        newer = (part for part in self._parts.values() if part.revision > revision)
        return min(newer, key=lambda part: part.revision, default=None)

    async def wait_for_change(self) -> None:
        """Return after the next change, or when the process stops."""
        await self._changed.wait()

    def close(self) -> None:
        """End every stream."""
        self.closed = True
        self._wake()

    def event(self, part: Part) -> bytes:
        """Return a part as a server-sent event."""
        return _EVENT % (part.name.encode(), self.epoch.encode(), part.revision, part.data)

    def seen_revision(self, last_event_id: str) -> int:
        """Return the revision that a client has; 0 if it has seen none of this process."""
        epoch, _, revision = last_event_id.partition("-")
        valid = epoch == self.epoch and revision.isascii() and revision.isdecimal()
        number = int(revision) if valid and len(revision) < 16 else 0
        return number if number <= self._revision else 0

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
