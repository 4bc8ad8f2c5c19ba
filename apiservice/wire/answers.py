"""Prepared answers: rendered once, and dropped when the data changes or a value gets too old."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from apiservice.runtime.bytecache import ENTRY as SLOT
from apiservice.runtime.bytecache import ByteCache

Message = dict[str, Any]
Key = tuple[str, bytes]
"""Decoded path and raw query string, which identify a GET."""
ENTRY = 1024
"""Bytes of a cached answer beside its request and body: messages, headers, a slot
(812 by tracemalloc on CPython 3.11, rounded up)."""
LARGE = 1 << 20
"""The largest body, in bytes, that is sent at once."""
_EMPTY = sys.getsizeof("")


class Prepared(NamedTuple):
    """A complete answer. Requests share the messages, so they must not be edited."""

    start: Message
    body: Message
    expires: float
    """Epoch seconds."""
    large: bool = False
    """Whether the body is sent in slices; see :mod:`apiservice.wire.largeanswers`."""


def json_messages(code: int, body: bytes) -> tuple[Message, Message]:
    """Return the ASGI messages of a JSON answer."""
    headers = [
        (b"content-type", b"application/json"),
        (b"cache-control", b"no-cache, private"),
        (b"content-length", str(len(body)).encode()),
    ]
    return (
        {"type": "http.response.start", "status": code, "headers": headers},
        {"type": "http.response.body", "body": body},
    )


class PreparedAnswers:
    """Answers of one provider by request. All of them expire when the provider's version changes.

    Bounded in bytes, requests and bookkeeping included: a client may vary its request without
    end, and the data may stay the same for hours. The oldest answers are evicted, and an answer
    larger than the bound is not cached.
    """

    def __init__(self, limit: int = 32 * 1024 * 1024) -> None:
        self._limit = limit
        self._version: int | None = None
        self._answers: ByteCache[Key, Prepared] = ByteCache(limit, first_in=True)

    def get(self, key: Key, version: int, now: float) -> Prepared | None:
        """Return the answer if it was prepared from this version and has not expired."""
        if version != self._version:
            return None
        answer = self._answers.get(key)
        if answer is None or answer.expires <= now:
            return None
        return answer

    def put(self, key: Key, version: int, expires: float, body: bytes) -> Prepared:
        """Prepare an answer from this version. Cache it if it fits and the version is current."""
        prepared = Prepared(*json_messages(200, body), expires, len(body) > LARGE)
        if self._version is not None and version < self._version:
            return prepared  # data changed while it was prepared in slices
        if version != self._version:
            self._answers = ByteCache(self._limit, first_in=True)
            self._version = version
        self._answers.put(key, prepared, _size(key, body))
        return prepared


def _size(key: Key, body: bytes) -> int:
    # A path with one character of four bytes takes four for each of them.
    return len(body) + sys.getsizeof(key[0]) - _EMPTY + len(key[1]) + ENTRY - SLOT
