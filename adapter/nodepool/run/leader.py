"""Leader election with a Lease and the algorithm of the Kubernetes client.

In addition, :attr:`Election.leading` becomes false by the clock, so that a leader that cannot renew
stops before another replica can start.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable

import structlog
from kubernetes.aio.leaderelection.electionconfig import Config
from kubernetes.aio.leaderelection.leaderelection import LeaderElection

from adapter.nodepool.model.apicall import ApiCall
from adapter.nodepool.run.leaselock import LeaseLock
from adapter.settings.nodepool import LeaseSettings
from apiservice.kube.outages import Outages

log = structlog.get_logger(__name__)

# The client logs each failed attempt; the lock logs a failure once.
logging.getLogger("kubernetes.aio.leaderelection.leaderelection").setLevel(logging.CRITICAL)


class Election:
    """Competes for one Lease. ``lead`` runs while this replica holds it."""

    def __init__(
        self,
        call: ApiCall,
        settings: LeaseSettings,
        namespace: str,
        identity: str,
        lead: Callable[[], Awaitable[None]],
        clock: Callable[[], float] = time.monotonic,
        outages: Outages | None = None,
    ) -> None:
        """``call`` must end within ``settings.retry`` seconds."""
        self._settings = settings
        self._lead = lead
        self._clock = clock
        # Leaves time for three more attempts between a due renewal and the end of leading.
        self.due = max(0.0, settings.renew - 3 * settings.retry)
        """Seconds from one renewal to the next."""
        self._lock = LeaseLock(call, settings.name, namespace, identity, clock, self.due, outages)
        self.identity = identity

    @property
    def leading(self) -> bool:
        """Whether the last renewal is so recent that no other replica can hold the lease."""
        renewed = self._lock.renewed
        return renewed is not None and self._clock() - renewed < self._settings.renew

    @property
    def problem(self) -> str:
        """Why the Lease can be neither acquired nor read; empty if it can."""
        return self._lock.problem

    async def run(self) -> None:
        """Compete, lead, and compete again, until cancelled."""
        while True:
            await self._term()

    async def release(self) -> None:
        """Release the lease at shutdown, so that another replica can start immediately."""
        if self.leading:
            await self._lock.release()

    async def _term(self) -> None:
        """Run one term: wait for the lease, lead, and return when it is lost."""
        leading: list[asyncio.Task[None]] = []
        failed = asyncio.Event()

        async def started() -> None:
            log.info("leading", identity=self.identity)
            leading.append(asyncio.ensure_future(self._lead()))
            leading[0].add_done_callback(lambda _: failed.set())
            # The caller raises its failure; an exception raised here would be lost.
            await asyncio.wait(leading)

        async def stopped() -> None:
            self._lock.renewed = None
            log.warning("lease lost, writes are stopped", identity=self.identity)

        config = Config(
            self._lock,
            # The Lease stores whole seconds.
            math.ceil(self._settings.duration),
            self._settings.renew,
            self._settings.retry,
            started,
            stopped,
        )
        election = asyncio.ensure_future(LeaderElection(config).run())
        end = asyncio.ensure_future(failed.wait())
        try:
            await asyncio.wait({election, end}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            tasks = [election, end, *leading]
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
        for result in results:
            # The term is over: another replica may take over, and this one competes again.
            if isinstance(result, Exception):
                raise result
