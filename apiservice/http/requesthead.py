"""The head of a request: its size limits, its Host line, and its ASGI scope."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from typing import Any
from urllib.parse import unquote

import httptools

from apiservice.errors import ApiError, HeadersTooLarge, UriTooLong
from apiservice.http.options import ServingOptions

_LINE = len(": \r\n")


def oversize(
    target: bytes, headers: Sequence[tuple[bytes, bytes]], options: ServingOptions
) -> ApiError | None:
    """Return the limit that a head exceeds as far as it has arrived, as an error."""
    if len(target) > options.max_target:
        return UriTooLong(options.max_target)
    size = len(target) + sum(len(name) + len(value) + _LINE for name, value in headers)
    return HeadersTooLarge(options.max_headers) if size > options.max_headers else None


def too_many_lines(
    headers: Sequence[tuple[bytes, bytes]], most: int, options: ServingOptions
) -> ApiError:
    """Return the limit that one more header line exceeds: their number, or the size of one."""
    if len(headers) >= most:
        return HeadersTooLarge(f"more than {most} header lines")
    return HeadersTooLarge(f"a header line is larger than {options.max_header_line} bytes")


def host_fault(headers: Sequence[tuple[bytes, bytes]], version: str) -> str | None:
    """Return what is wrong with the Host lines (RFC 9112, section 3.2), in Go's words."""
    hosts = [name for name, _ in headers].count(b"host")
    if hosts > 1:
        return "too many Host headers"
    return "missing required Host header" if hosts == 0 and version != "1.0" else None


def complete(scope: MutableMapping[str, Any], target: bytes, method: bytes, version: str) -> None:
    """Complete the scope when the head of a request is complete.

    Raises:
        httptools.HttpParserInvalidURLError, AttributeError, UnicodeDecodeError: the target
            is not a path in ASCII.
    """
    url = httptools.parse_url(target)
    raw_path: bytes = url.path
    path = raw_path.decode("ascii")
    scope["method"] = method.decode("ascii")
    scope["http_version"] = version
    scope["path"] = unquote(path) if "%" in path else path
    scope["raw_path"] = raw_path
    scope["query_string"] = url.query or b""
