"""Health with named checks: ``/healthz``, ``/livez`` and ``/readyz``.

The texts are those of ``k8s.io/apiserver/pkg/server/healthz/healthz.go``. The three paths are
public, so they name a failing check without its reason. ``/readyz/NAME`` needs authorization and
shows the reason; the log shows it too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

import structlog

log = structlog.get_logger(__name__)

_STARTING: Final = 60.0
"""Seconds that a check may take to pass for the first time before its failure is a warning."""

ENDPOINTS = ("healthz", "livez", "readyz")


class Check(NamedTuple):
    """One condition that must hold."""

    name: str
    probe: Callable[[], str | None]
    """Returns None if the condition holds, else the reason. Answers from memory, at once."""
    expected: bool = False
    """The check also fails in normal operation, as during shutdown: no warning is logged."""


class Report(NamedTuple):
    """A response: 200 or 500, and its text."""

    code: int
    text: str


class HealthRegistry:
    """The checks of a process. ``live`` checks say that it works, ``ready`` checks that it has
    what it needs to answer. Readiness includes both."""

    def __init__(
        self,
        *,
        live: Iterable[Check] = (),
        ready: Iterable[Check] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._began = clock()
        self._passed: set[str] = set()
        self._warned: set[str] = set()
        self._live = [Check("ping", lambda: None), *live]
        self._ready = list(ready)
        self._failing: dict[str, str] = {}

    def add_live(self, check: Check) -> None:
        """Add a check whose failure means that a restart would help."""
        self._live.append(check)

    def add_ready(self, check: Check) -> None:
        """Add a check whose failure means that clients should use another replica."""
        self._ready.append(check)

    def names(self, endpoint: str) -> list[str]:
        """Return the checks of ``healthz``, ``livez`` or ``readyz``."""
        return [check.name for check in self._checks(endpoint)]

    def report(self, endpoint: str, *, verbose: bool, exclude: Iterable[str] = ()) -> Report:
        """Run all checks of an endpoint except the excluded ones; always verbose on failure."""
        excluded = set(exclude)
        lines: list[str] = []
        failed = False
        for check in self._checks(endpoint):
            if check.name in excluded:
                lines.append(f"[+]{check.name} excluded: ok\n")
            elif self._run(check) is None:
                lines.append(f"[+]{check.name} ok\n")
            else:
                failed = True
                lines.append(f"[-]{check.name} failed: reason withheld\n")
        if unknown := sorted(excluded.difference(self.names(endpoint))):
            quoted = ",".join(f'"{name}"' for name in unknown)
            lines.append(f"warn: some health checks cannot be excluded: no matches for {quoted}\n")
        if failed:
            return Report(500, f"{''.join(lines)}{endpoint} check failed\n")
        if verbose:
            return Report(200, f"{''.join(lines)}{endpoint} check passed\n")
        return Report(200, "ok")

    def single(self, endpoint: str, name: str) -> Report | None:
        """Run one check and show its reason. None if the endpoint has no such check."""
        for check in self._checks(endpoint):
            if check.name == name:
                reason = self._run(check)
                if reason is None:
                    return Report(200, "ok")
                return Report(500, f"internal server error: {reason}\n")
        return None

    def _checks(self, endpoint: str) -> list[Check]:
        return [*self._live, *self._ready] if endpoint == "readyz" else self._live

    def _run(self, check: Check) -> str | None:
        try:
            reason = check.probe()
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
        self._note(check, reason)
        return reason

    def _note(self, check: Check, reason: str | None) -> None:
        """Log when the result of a check changes, not at every request."""
        name = check.name
        if reason is None:
            if self._failing.pop(name, None) is not None:
                again = (
                    "health check passes again" if name in self._passed else "health check passes"
                )
                log.info(again, check=name)
            self._passed.add(name)
            self._warned.discard(name)
            return
        new = name not in self._failing
        self._failing[name] = reason
        starting = name not in self._passed and self._clock() - self._began < _STARTING
        if check.expected or starting:
            if new:
                log.info(
                    "health check does not pass yet" if starting else "health check fails",
                    check=name,
                    reason=reason,
                )
        elif name not in self._warned:
            self._warned.add(name)
            log.warning("health check fails", check=name, reason=reason)
