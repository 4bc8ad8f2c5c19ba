"""Ways in which an exporter's page can fail while its port is open."""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import Enum
from http.server import BaseHTTPRequestHandler

_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class BadPage(Enum):
    """The treatment of a request for the page."""

    HANGS = "it is taken and never answered"
    DRIPS = "the page comes byte by byte, ten a second"
    IS_CUT = "the connection ends in the middle of the page"
    NEVER_ENDS = "lines go on coming as fast as they are read"


def misbehave(
    how: BadPage, request: BaseHTTPRequestHandler, page: bytes, still: Callable[[], bool]
) -> None:
    """Treat one request this way while ``still``, and then close its connection."""
    request.close_connection = True
    if how is BadPage.HANGS:
        _wait(still)
        return
    request.send_response(200)
    request.send_header("Content-Type", _TYPE)
    if how is BadPage.NEVER_ENDS:
        request.send_header("Connection", "close")
    else:
        request.send_header("Content-Length", str(len(page)))
    request.end_headers()
    try:
        if how is BadPage.IS_CUT:
            request.wfile.write(page[: len(page) // 2])
        elif how is BadPage.DRIPS:
            for index in range(len(page)):
                if not still():
                    return
                request.wfile.write(page[index : index + 1])
                time.sleep(0.1)
        else:
            line = b"# " + b"x" * 65_533 + b"\n"
            while still():
                request.wfile.write(line)
    except OSError:
        return  # the client has disconnected


def _wait(still: Callable[[], bool]) -> None:
    while still():
        time.sleep(0.05)
