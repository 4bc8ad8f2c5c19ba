"""The head of a request: how large it may be, and the ASGI scope it makes."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from typing import Any
from urllib.parse import unquote

import httptools

from apiservice.errors import ApiError, HeadersTooLarge, UriTooLong
from apiservice.serving import ServingOptions

_LINE = len(": \r\n")


def oversize(
    target: bytes, headers: Sequence[tuple[bytes, bytes]], options: ServingOptions
) -> ApiError | None:
    """Which limit a whole head breaks."""
    if len(target) > options.max_target:
        return UriTooLong(options.max_target)
    size = len(target) + sum(len(name) + len(value) + _LINE for name, value in headers)
    return HeadersTooLarge(options.max_headers) if size > options.max_headers else None


def endless(target: bytes, options: ServingOptions) -> ApiError:
    """What to call a head that passed the limit before it ended."""
    if len(target) > options.max_target:
        return UriTooLong(options.max_target)
    return HeadersTooLarge(options.max_headers)


def complete(scope: MutableMapping[str, Any], target: bytes, method: bytes, version: str) -> None:
    """Fill in what is known of a request once its head is whole.

    Raises:
        httptools.HttpParserInvalidURLError, AttributeError, UnicodeDecodeError: the target
            is no path in ASCII.
    """
    url = httptools.parse_url(target)
    raw_path: bytes = url.path
    path = raw_path.decode("ascii")
    scope["method"] = method.decode("ascii")
    scope["http_version"] = version
    scope["path"] = unquote(path) if "%" in path else path
    scope["raw_path"] = raw_path
    scope["query_string"] = url.query or b""
