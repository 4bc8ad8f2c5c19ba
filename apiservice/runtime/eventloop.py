"""Run a process on one event loop of uvloop."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Final

import structlog
import uvloop

log = structlog.get_logger(__name__)

_CLOSED: Final = "the handler is closed"
"""The end of uvloop's message about an operation on a closed transport (``handles/handle.pyx``)."""


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run ``main`` to its end."""
    uvloop.run(_run(main))


async def _run(main: Coroutine[Any, Any, None]) -> None:
    asyncio.get_running_loop().set_exception_handler(_report)
    await main


def _report(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Report what no caller handles, as the loop does by default.

    If a connection ends while its TLS layer still has something to send, uvloop reports a
    RuntimeError (``sslproto.pyx``, ``_do_read``). The connection is closed as it should be, so that
    is not an error.
    """
    error = context.get("exception")
    if isinstance(error, RuntimeError) and str(error).endswith(_CLOSED):
        log.debug("connection ended before its last bytes were sent", error=str(error))
        return
    loop.default_exception_handler(context)
