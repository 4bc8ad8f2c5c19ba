"""Convert the error statuses and bodies of query APIs into source errors with a fix.

Engines answer with Prometheus' error (``errorType``, ``error``). Proxies in front of them do not:
AWS uses ``message``, Azure and Google ``error.message``, Mimir and most proxies plain text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final
from urllib.parse import quote

import msgspec

from adapter.pipeline.sources.errors import SourceError
from adapter.pipeline.sources.login.tokens import redact_error
from adapter.pipeline.sources.prometheus.answer import error_text, shorten_text
from apiservice.runtime.jsontext import UNREADABLE

_PLAIN: Final = re.compile(r"[^<{\x00-\x08]{3,}")
"""A body of plain text: neither an HTML page nor JSON."""
_READ: Final = 1 << 16
_DENIED: Final = "check the token, password, role and tenant, and this machine's clock"
_SECRET: Final = 6
"""Minimum length, in characters, of a header's or parameter's value that counts as a secret."""
_WITHHELD: Final = b"(withheld)"
_GO: Final = {b"&": rb"\u0026", b"<": rb"\u003c", b">": rb"\u003e"}
"""How Go's JSON encoder, which most engines use, escapes these."""
_PREFIX: Final = "check the URL's path prefix"
_HINTS: Final = {
    405: f"{_PREFIX}, or use method GET",
    501: "no query API of Prometheus is at this address: correct the URL",
    414: "the query is too long for a URL: use method POST",
}


def refusal(status: int, body: bytes) -> SourceError:
    """Return the error of an answer whose status is not 200."""
    engine = error_text(body)
    message = engine or _proxy_error_text(body)
    text = f"HTTP status {status}" + (f": {message}" if message else "")
    if 300 <= status < 400:
        return SourceError("redirect", f"{text}: redirects are not followed; correct the URL")
    if status == 429 or (status >= 500 and status not in _HINTS):
        return SourceError("unavailable", text)
    if status in (401, 403):
        return SourceError("denied", f"{text}; {_DENIED}")
    if engine:
        return SourceError("query", text)
    return SourceError("status", f"{text}; {_HINTS.get(status, _PREFIX)}")


def withhold_secrets(body: bytes, secrets: Iterable[str]) -> bytes:
    """Return a body without secrets: proxies repeat request headers in their errors.

    Args:
        secrets: texts as they were sent. Short ones are kept, because errors contain such words.
    """
    for secret in sorted(set(secrets), key=len, reverse=True):
        if len(secret) < _SECRET:
            continue
        for text in _secret_spellings(secret):
            body = body.replace(text, _WITHHELD)
    return body


def _secret_spellings(secret: str) -> Iterator[bytes]:
    """Yield the secret as it is, in JSON, in Go's JSON and in a URL."""
    json = in_go = msgspec.json.encode(secret)[1:-1]
    for plain, escaped in _GO.items():
        in_go = in_go.replace(plain, escaped)
    yield from (secret.encode(), json, in_go, quote(secret, "").encode())


def _proxy_error_text(body: bytes) -> str:
    """Return the text of an error that is not an engine's, in one line; empty if unreadable."""
    try:
        content = msgspec.json.decode(body)
    except UNREADABLE:
        text = shorten_text(body[:_READ].decode("utf-8", "replace"))
        return redact_error(ValueError(text), 400) if _PLAIN.fullmatch(text) else ""
    message = _message(content)
    return redact_error(ValueError(message)) if message else ""


def _message(content: Any) -> str:
    if isinstance(content, list) and content:  # Google's streaming servers answer with a list
        content = content[0]
    if not isinstance(content, dict):
        return ""
    inner = content.get("error")
    if isinstance(inner, dict):
        content = inner
    message = content.get("message", content.get("Message"))
    return message if isinstance(message, str) else ""
