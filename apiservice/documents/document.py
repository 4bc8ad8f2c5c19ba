"""A document that clients cache by its hash."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

_json = msgspec.json.Encoder(order="deterministic").encode


class Document:
    """A document's bytes and their hash, which is the ETag and, in v3, the ``hash`` parameter."""

    __slots__ = ("body", "hash")

    def __init__(self, content: dict[str, Any]) -> None:
        self.body = _json(content)
        self.hash = hashlib.sha256(self.body).hexdigest()[:32].upper()

    @property
    def etag(self) -> str:
        """The ETag in double quotes, as HTTP requires."""
        return f'"{self.hash}"'
