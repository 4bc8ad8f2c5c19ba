"""One delegate: what it lists, and requests to it within its bounds."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from fnmatch import fnmatchcase
from time import perf_counter
from typing import Final, NamedTuple

import structlog

from apiservice.delegate.conversion import metric_list, status_message
from apiservice.delegate.failure import DelegateFailure
from apiservice.delegate.listing import Listing, read_listing, versions_of
from apiservice.delegate.options import LIST_BYTES, DelegateOptions
from apiservice.delegate.transport import Reply, Transport
from apiservice.errors import Unavailable
from apiservice.runtime.shares import NoPlaceError, Shares
from apiservice.selfmetrics.durations import SLOW, Durations

log = structlog.get_logger(__name__)

KEPT: Final = 3600.0
"""Seconds that the last good list is used while no new one can be read."""


class Delegated(NamedTuple):
    """An answer to pass on."""

    code: int
    body: bytes


class Delegate:
    """Asks one server; its failures and its slowness concern its own metrics only."""

    def __init__(
        self,
        options: DelegateOptions,
        transport: Transport,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.options = options
        self.name = options.name
        self._transport = transport
        self._clock = clock
        self.places = Shares(
            options.at_once,
            waiting=max(1, options.waiting // 4),
            all_waiting=options.waiting,
            seconds=options.timeout,
        )
        """Those of requests to it."""
        self._listings: dict[str, Listing] = {}
        self.problem = "its discovery has not been read yet"
        """Why the newest discovery is not known; empty if it is."""
        self.problem_outcome = ""
        """Its outcome, for metrics; empty before the first read and without a problem."""
        self.outcomes: Counter[str] = Counter()
        """Requests for metrics by outcome."""
        self.durations = Durations(SLOW)
        self.in_flight = 0
        """Requests under way, waiting ones included."""
        self.discovery_failures = 0

    def listing(self, group: str) -> Listing | None:
        """Return the group's list; None if it was not read or is too old."""
        group_list = self._listings.get(group)
        return None if group_list is None or self._clock() - group_list.time > KEPT else group_list

    @property
    def age(self) -> float | None:
        """Seconds since its oldest list was read; None if one is not known."""
        if any(group not in self._listings for group in self.options.groups):
            return None
        return self._clock() - min(self._listings[group].time for group in self.options.groups)

    def claims(self, group: str, resource: str, metric: str) -> bool | None:
        """Return whether it is asked for a metric; None if that is not known."""
        if group not in self.options.groups:
            return False
        if self.options.names:
            return any(fnmatchcase(metric, pattern) for pattern in self.options.names)
        group_list = self.listing(group)
        return None if group_list is None else group_list.claims(resource, metric)

    async def refresh(self) -> None:
        """Read its discovery; a failure keeps the last good lists."""
        try:
            async with asyncio.timeout(self.options.timeout):
                for group in sorted(self.options.groups):
                    self._listings[group] = await self._read(group)
        except TimeoutError:
            self._note_failure("timeout", f"no discovery within {self.options.timeout:g} s")
        except DelegateFailure as failure:
            self._note_failure(failure.outcome, str(failure))
        else:
            if self.problem:
                rows = {group: len(group_list.rows) for group, group_list in self._listings.items()}
                log.info("discovery of a delegate read", delegate=self.name, rows=rows)
            self.problem = self.problem_outcome = ""

    def _note_failure(self, outcome: str, problem: str) -> None:
        self.discovery_failures += 1
        self.problem_outcome = outcome
        if problem != self.problem:
            log.warning(
                "discovery of a delegate failed",
                delegate=self.name,
                url=self.options.url,
                error=problem,
                hint="see docs/delegation.md; the last list is used for an hour",
            )
        self.problem = problem

    async def _read(self, group: str) -> Listing:
        bodies: dict[str, bytes] = {}
        for version in versions_of(group):
            reply = await self._transport.get(f"/apis/{group}/{version}", LIST_BYTES)
            if reply.status == 200:
                bodies[version] = reply.body
            elif reply.status != 404:
                message = status_message(reply.status, reply.body)
                outcome = "refused" if reply.status in (401, 403) else "error"
                raise DelegateFailure(outcome, f"status {reply.status} to discovery: {message}")
        before = self._listings.get(group)
        return await asyncio.to_thread(read_listing, group, bodies, self._clock(), before)

    async def ask(self, group: str, version: str, suffix: str) -> Delegated:
        """Return the answer to a GET below ``/apis/GROUP/VERSION/``.

        Raises:
            Unavailable: there is no usable answer.
        """
        started = perf_counter()
        self.in_flight += 1
        outcome = "gone"
        try:
            async with self.places.place(), asyncio.timeout(self.options.timeout):
                answer, outcome = await self._ask(group, version, suffix)
                return answer
        except NoPlaceError as error:
            outcome = "overloaded" if error.reason == "full" else "timeout"
            raise self._unavailable(f"too many requests to it: {error}") from None
        except TimeoutError:
            outcome = "timeout"
            raise self._unavailable(f"no answer within {self.options.timeout:g} s") from None
        except DelegateFailure as failure:
            outcome = failure.outcome
            raise self._unavailable(str(failure)) from failure
        finally:
            self.in_flight -= 1
            if outcome != "gone":  # the client did not wait
                self.outcomes[outcome] += 1
                self.durations.observe(perf_counter() - started)

    async def _ask(self, group: str, version: str, suffix: str) -> tuple[Delegated, str]:
        group_list = self.listing(group)
        served = () if group_list is None else group_list.versions
        chosen = version if version in served or not served else served[0]
        reply = await self._transport.get(
            f"/apis/{group}/{chosen}/{suffix}", self.options.max_bytes
        )
        if reply.status == 200:
            return Delegated(200, metric_list(reply.body, group, chosen, version)), "ok"
        return _error(reply)

    def _unavailable(self, why: str) -> Unavailable:
        return Unavailable(f"delegate {self.name} did not answer: {why}")


def _error(reply: Reply) -> tuple[Delegated, str]:
    """Return an error that the delegate states itself.

    A refusal of this server's token says nothing about the client, so it is not passed on.
    """
    message = status_message(reply.status, reply.body)
    if reply.status in (401, 403):
        raise DelegateFailure("refused", f"it refused this server ({reply.status}): {message}")
    if not 400 <= reply.status <= 599:
        raise DelegateFailure("invalid", f"status {reply.status}")
    return Delegated(reply.status, reply.body), "not_found" if reply.status == 404 else "error"
