"""Why a query API gave no answer: statuses and the words that come with them, in ours.

Engines speak Prometheus' error (``errorType``, ``error``). What stands before them does not:
AWS says ``message``, Azure and Google ``error.message``, Mimir and most proxies plain text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final
from urllib.parse import quote

import msgspec

from adapter.sources.errors import SourceError
from adapter.sources.login.tokens import redacted
from adapter.sources.prometheus.answer import error_text, shortened

_PLAIN: Final = re.compile(r"[^<{\x00-\x08]{3,}")
"""A body that is words: neither a page nor JSON."""
_READ: Final = 1 << 16
_DENIED: Final = "check the token, password, role and tenant, and this machine's clock"
_SECRET: Final = 6
"""Characters from which on a header's or parameter's value is taken for a secret."""
_WITHHELD: Final = b"(withheld)"
_GO: Final = {b"&": rb"\u0026", b"<": rb"\u003c", b">": rb"\u003e"}
"""What Go's JSON writes in place of these, which most engines are written in."""
_PREFIX: Final = "check the URL's path prefix"
_MENDS: Final = {
    405: f"{_PREFIX}, or use method GET",
    414: "the query is too long for a URL: use method POST",
}


def refusal(status: int, body: bytes) -> SourceError:
    """The error of an answer whose status is not 200."""
    engine = error_text(body)
    said = engine or _others(body)
    text = f"HTTP status {status}" + (f": {said}" if said else "")
    if 300 <= status < 400:
        return SourceError("redirect", f"{text}: redirects are not followed; correct the URL")
    if status == 429 or status >= 500:
        return SourceError("unavailable", text)
    if status in (401, 403):
        return SourceError("denied", f"{text}; {_DENIED}")
    if engine:
        return SourceError("query", text)
    return SourceError("status", f"{text}; {_MENDS.get(status, _PREFIX)}")


def without(body: bytes, secrets: Iterable[str]) -> bytes:
    """A body in which nothing that was shown stands: proxies repeat headers in their errors.

    Args:
        body: of an error.
        secrets: texts as they were sent; short ones are words that errors need.
    """
    for secret in sorted(set(secrets), key=len, reverse=True):
        if len(secret) < _SECRET:
            continue
        for text in _spelled(secret):
            body = body.replace(text, _WITHHELD)
    return body


def _spelled(secret: str) -> Iterator[bytes]:
    """As it is, in JSON, in Go's JSON and in a URL."""
    json = in_go = msgspec.json.encode(secret)[1:-1]
    for plain, escaped in _GO.items():
        in_go = in_go.replace(plain, escaped)
    yield from (secret.encode(), json, in_go, quote(secret, "").encode())


def _others(body: bytes) -> str:
    """What somebody other than an engine says, in one line; empty if it is not for reading."""
    try:
        content = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        text = shortened(body[:_READ].decode("utf-8", "replace"))
        return redacted(ValueError(text), 400) if _PLAIN.fullmatch(text) else ""
    found = _message(content)
    return redacted(ValueError(found)) if found else ""


def _message(content: Any) -> str:
    if isinstance(content, list) and content:  # Google's, of a server that would stream
        content = content[0]
    if not isinstance(content, dict):
        return ""
    inner = content.get("error")
    if isinstance(inner, dict):
        content = inner
    found = content.get("message", content.get("Message"))
    return found if isinstance(found, str) else ""
