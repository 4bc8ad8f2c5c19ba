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
from datetime import UTC, datetime
from typing import Any

import msgspec
import structlog
from kubernetes.aio.client import ApiException
from kubernetes.aio.leaderelection.electionconfig import Config
from kubernetes.aio.leaderelection.leaderelection import LeaderElection
from kubernetes.aio.leaderelection.leaderelectionrecord import LeaderElectionRecord
from kubernetes.aio.leaderelection.resourcelock.baselock import BaseLock

from adapter.config.settings.nodepool import LeaseSettings
from adapter.nodepool.model.apicall import ApiCall, get
from apiservice.kube.client import ClusterAnswerError
from apiservice.kube.outages import Outages

log = structlog.get_logger(__name__)

_lock: Any = BaseLock


class LeaseLock(_lock):  # type: ignore[misc]  # the client's classes have no types
    """One candidate's view of a Lease, with the time of its last renewal."""

    def __init__(
        self,
        call: ApiCall,
        name: str,
        namespace: str,
        identity: str,
        clock: Callable[[], float],
        due: float = 0.0,
        outages: Outages | None = None,
    ) -> None:
        """``due`` is the age of a renewal, in seconds, at which the next one is due."""
        super().__init__(name, namespace, identity)
        self._outages = outages or Outages()
        self._due = due
        self._call = call
        self._clock = clock
        self._collection = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._lease: dict[str, Any] = {}
        self.renewed: float | None = None
        """When the last successful renewal was sent; None if this candidate is not the holder."""
        self.problem = ""
        """Why the Lease can be neither acquired nor read; empty if it can."""

    async def get(self, name: str, namespace: str) -> tuple[bool, Any]:
        """Return (True, record) or (False, error). The error has status 404 if no Lease exists."""
        try:
            self._lease = await get(self._call, f"{self._collection}/{name}", dict[str, Any])
        except ClusterAnswerError as error:
            if error.status == 404:
                self.renewed = None
            else:
                self._record_failure(error)
            failure = ApiException(status=error.status, reason=str(error))
            failure.body = msgspec.json.encode({"code": error.status}).decode()
            return False, failure
        spec = self._lease.get("spec") or {}
        # Taken early: by a candidate whose clock was changed, or manually.
        if spec.get("holderIdentity") != self.identity:
            self.renewed = None
        duration = spec.get("leaseDurationSeconds")
        return True, LeaderElectionRecord(
            spec.get("holderIdentity") or None,
            str(duration) if duration else None,
            spec.get("acquireTime"),
            spec.get("renewTime"),
        )

    async def create(
        self, name: str, namespace: str, election_record: LeaderElectionRecord
    ) -> bool:
        """Create the Lease. Return whether this candidate holds it now."""
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": name, "namespace": namespace},
            "spec": _spec(election_record),
        }
        return await self._write("POST", self._collection, lease)

    async def update(self, name: str, namespace: str, updated_record: LeaderElectionRecord) -> bool:
        """Renew the Lease if it is due. Return whether this candidate still holds it.

        The client's election calls it at every attempt. The API server rejects the write if the
        Lease was changed since :meth:`get`.
        """
        if self.renewed is not None and self._clock() - self.renewed < self._due:
            return True
        spec = {**(self._lease.get("spec") or {}), **_spec(updated_record)}
        return await self._write("PUT", f"{self._collection}/{name}", self._lease | {"spec": spec})

    async def release(self) -> None:
        """Release the Lease, so that another candidate can start immediately."""
        self.renewed = None
        body = {"spec": {"holderIdentity": "", "leaseDurationSeconds": 1}}
        path = f"{self._collection}/{self.name}"
        try:
            await self._call("PATCH", path, body, content_type="application/merge-patch+json")
        except ClusterAnswerError as error:
            log.info("lease not released; it expires", error=str(error))

    async def _write(self, method: str, path: str, lease: dict[str, Any]) -> bool:
        # The time before the request, because the server may have applied it immediately.
        sent = self._clock()
        try:
            await self._call(method, path, lease)
        except ClusterAnswerError as error:
            # A conflict means that another candidate was faster.
            if error.status != 409:
                self._record_failure(error)
            return False
        self.renewed, self.problem = sent, ""
        self._outages.ends(self)
        return True

    def _record_failure(self, error: ClusterAnswerError) -> None:
        if str(error) != self.problem:
            first = self._outages.begins(self, error.cause)
            (log.warning if first else log.info)("lease not renewed", problem=str(error))
        self.problem = str(error)


def _spec(record: Any) -> dict[str, Any]:
    """Return the spec of the Lease. Times of the record are local and naive, or as read."""
    return {
        "holderIdentity": record.holder_identity,
        "leaseDurationSeconds": int(record.lease_duration),
        "acquireTime": _micro_time(record.acquire_time),
        "renewTime": _micro_time(record.renew_time),
    }


def _micro_time(text: str) -> str:
    moment = datetime.fromisoformat(text).astimezone(UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


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

        async def start_leading() -> None:
            log.info("leading", identity=self.identity)
            leading.append(asyncio.ensure_future(self._lead()))
            leading[0].add_done_callback(lambda _: failed.set())
            # The caller raises its failure; an exception raised here would be lost.
            await asyncio.wait(leading)

        async def stop_leading() -> None:
            self._lock.renewed = None
            log.warning("lease lost, writes are stopped", identity=self.identity)

        config = Config(
            self._lock,
            # The Lease stores whole seconds.
            math.ceil(self._settings.duration),
            self._settings.renew,
            self._settings.retry,
            start_leading,
            stop_leading,
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
