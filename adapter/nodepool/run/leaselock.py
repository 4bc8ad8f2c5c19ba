"""A Lease as the lock of the Kubernetes client's leader election.

The client's ``LeaseLock`` (kubernetes 37.0) cannot create a Lease: it passes ``pretty=True`` where
its own validation requires a string. Also, this lock bounds the time of every request, and treats
a failed connection as a failed renewal. With the client's lock, it would end the process.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
import structlog
from kubernetes.aio.client import ApiException
from kubernetes.aio.leaderelection.leaderelectionrecord import LeaderElectionRecord
from kubernetes.aio.leaderelection.resourcelock.baselock import BaseLock

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
                self._failed(error)
            found = ApiException(status=error.status, reason=str(error))
            found.body = msgspec.json.encode({"code": error.status}).decode()
            return False, found
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
                self._failed(error)
            return False
        self.renewed, self.problem = sent, ""
        self._outages.ends(self)
        return True

    def _failed(self, error: ClusterAnswerError) -> None:
        if str(error) != self.problem:
            first = self._outages.begins(self, error.cause)
            (log.warning if first else log.info)("lease not renewed", problem=str(error))
        self.problem = str(error)


def _spec(record: Any) -> dict[str, Any]:
    """Return the spec of the Lease. Times of the record are local and naive, or as read."""
    return {
        "holderIdentity": record.holder_identity,
        "leaseDurationSeconds": int(record.lease_duration),
        "acquireTime": _micro(record.acquire_time),
        "renewTime": _micro(record.renew_time),
    }


def _micro(text: str) -> str:
    moment = datetime.fromisoformat(text).astimezone(UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
