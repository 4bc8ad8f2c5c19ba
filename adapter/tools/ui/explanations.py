"""Explanations of single objects, as ``gpu-metrics-adapter explain`` writes them."""

from __future__ import annotations

import asyncio
import re
import shlex
from typing import Any, Final, NamedTuple

from adapter.config.process.output import Screen
from adapter.tools.client.command import ToolReport
from adapter.tools.client.errors import ClientError, odd_answers
from adapter.tools.explain.objects import EXPLAINERS
from adapter.tools.ui.connection import ClusterConnection

Json = dict[str, Any]

AT_ONCE: Final = 4
"""Explanations that are made at once; others wait."""
WAITING: Final = 16
_LONGEST: Final = 20.0
"""Seconds for one explanation, with its wait."""
_SCREEN: Final = Screen(width=100)
_NAME: Final = re.compile(r"(?!\.{1,2}$)[^/%?#\x00-\x20\x7f]{1,253}")
"""A name that is one segment of a path."""


class Explained(NamedTuple):
    """An explanation, or why there is none."""

    status: int
    """HTTP status."""
    body: Json


class Explanations:
    """Makes explanations, a few at once, each in limited time.

    Args:
        connection: the cluster.
        flags: with which ``explain`` reads the same cluster.
        longest: seconds for one explanation.
    """

    def __init__(
        self, connection: ClusterConnection, flags: str = "", longest: float = _LONGEST
    ) -> None:
        self._connection = connection
        self._flags = f" {flags}" if flags else ""
        self._longest = longest
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._tasks: set[asyncio.Task[ToolReport]] = set()

    async def of(self, kind: str, name: str, namespace: str = "") -> Explained:
        """Explain a ``pod``, ``hpa``, ``node`` or ``gpu``."""
        wrong = next((text for text in (name, namespace or name) if not _NAME.fullmatch(text)), "")
        if wrong:
            return _failure(400, f"{wrong[:80]!r} is not the name of an object")
        if len(self._tasks) >= AT_ONCE + WAITING:
            return _failure(503, "too many explanations are requested at once: try again")
        task = asyncio.create_task(self._make(kind, name, namespace))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            report = await task
        except TimeoutError:
            return _failure(504, f"the cluster gave no answer within {self._longest:g} s")
        except ClientError as error:
            return _failure(_status(error), str(error))
        except asyncio.CancelledError:
            if not task.cancelled():
                task.cancel()
                raise
            return _failure(503, "the page stops")
        return Explained(200, self._body(kind, name, namespace, report))

    def close(self) -> None:
        """End explanations in progress."""
        for task in tuple(self._tasks):
            task.cancel()

    async def _make(self, kind: str, name: str, namespace: str) -> ToolReport:
        async with asyncio.timeout(self._longest), self._slots:
            with odd_answers():
                return await EXPLAINERS[kind](self._connection.api.within(namespace), name)

    def _body(self, kind: str, name: str, namespace: str, report: ToolReport) -> Json:
        within = f" -n {shlex.quote(namespace)}" if namespace else ""
        command = f"gpu-metrics-adapter explain {kind} {shlex.quote(name)}{within}{self._flags}"
        with odd_answers():
            return {
                "kind": kind,
                "namespace": namespace,
                "name": name,
                "status": report.status,
                "lines": [_SCREEN.line(line) for line in report.lines(_SCREEN)],
                "json": report.json(),
                "command": command,
            }


def _status(error: ClientError) -> int:
    if error.status in (403, 404):
        return error.status
    return 504 if "no answer in time" in str(error) else 502


def _failure(status: int, text: str) -> Explained:
    return Explained(status, {"error": _SCREEN.line(text)})
