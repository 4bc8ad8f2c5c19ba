"""Leader election by a Lease, with the Kubernetes client's own algorithm.

What is added to it: :attr:`Election.leading` turns false by the clock alone, so that a holder
that cannot renew stops before another may start.
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

# It logs each failed attempt; the lock says it once.
logging.getLogger("kubernetes.aio.leaderelection.leaderelection").setLevel(logging.CRITICAL)


class Election:
    """Competes for one Lease; ``lead`` runs while it is held."""

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
        """``call`` ends within ``settings.retry`` seconds."""
        self._settings = settings
        self._lead = lead
        self._clock = clock
        # Three more looks fit between a renewal that is due and the end of leading.
        self.due = max(0.0, settings.renew - 3 * settings.retry)
        """Seconds after which a renewal is renewed."""
        self._lock = LeaseLock(call, settings.name, namespace, identity, clock, self.due, outages)
        self.identity = identity

    @property
    def leading(self) -> bool:
        """The lease was renewed so recently that no other replica may have taken it."""
        renewed = self._lock.renewed
        return renewed is not None and self._clock() - renewed < self._settings.renew

    @property
    def problem(self) -> str:
        """Why the Lease can be neither had nor seen; empty while all is well."""
        return self._lock.problem

    async def run(self) -> None:
        """Compete, lead, and compete again, until cancelled."""
        while True:
            await self._term()

    async def release(self) -> None:
        """Let another replica begin at once; for an orderly end."""
        if self.leading:
            await self._lock.release()

    async def _term(self) -> None:
        """One time as the leader, from the wait for it to its end."""
        leading: list[asyncio.Task[None]] = []
        failed = asyncio.Event()

        async def started() -> None:
            log.info("leading", identity=self.identity)
            leading.append(asyncio.ensure_future(self._lead()))
            leading[0].add_done_callback(lambda _: failed.set())
            # Its failure is raised by us; raised here too, it would be lost.
            await asyncio.wait(leading)

        async def stopped() -> None:
            self._lock.renewed = None
            log.warning("lease lost, nothing is written", identity=self.identity)

        config = Config(
            self._lock,
            # The Lease has whole seconds.
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
