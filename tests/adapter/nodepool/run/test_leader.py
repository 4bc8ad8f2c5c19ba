"""Leader election: one holder, which stops by the clock."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any

import pytest
from kubernetes.aio.leaderelection.electionconfig import Config
from kubernetes.aio.leaderelection.leaderelection import LeaderElection
from kubernetes.aio.leaderelection.leaderelectionrecord import LeaderElectionRecord

from adapter.config.settings.nodepool import LeaseSettings
from adapter.nodepool.run.leader import Election, LeaseLock
from apiservice.kube.client import ClusterAnswerError

SETTINGS = LeaseSettings(duration=4, renew=3, retry=1)


class Leases:
    """One Lease with its resourceVersion, as the API server keeps it."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.version = 0
        self.down = False
        self.refused = asyncio.Event()

    async def __call__(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json"
    ) -> bytes:
        if self.down:
            self.refused.set()
            raise ClusterAnswerError(f"{method} {path}: connection refused")
        if method == "GET":
            if self.lease is None:
                raise ClusterAnswerError("not found", 404)
            return json.dumps(self.lease).encode()
        if method == "POST" and self.lease is not None:
            raise ClusterAnswerError("already exists", 409)
        if method == "PUT" and body["metadata"].get("resourceVersion") != str(self.version):
            raise ClusterAnswerError("modified", 409)
        if method == "PATCH":
            assert self.lease is not None
            body = self.lease | {"spec": self.lease["spec"] | body["spec"]}
        self.version += 1
        self.lease = json.loads(json.dumps(body))
        self.lease["metadata"]["resourceVersion"] = str(self.version)
        return b"{}"

    @property
    def holder(self) -> str:
        return "" if self.lease is None else str(self.lease["spec"]["holderIdentity"])


class Candidate:
    """An election with its own clock."""

    def __init__(self, leases: Leases, name: str) -> None:
        self.now = 0.0
        self.begun = asyncio.Event()
        self.ended = asyncio.Event()
        self.election = Election(leases, SETTINGS, "ns", name, self._lead, clock=lambda: self.now)
        self.task = asyncio.create_task(self.election.run())

    async def _lead(self) -> None:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.ended.set()

    async def stop(self) -> None:
        self.task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self.task


async def test_one_of_two_candidates_leads() -> None:
    leases = Leases()
    a, b = Candidate(leases, "a"), Candidate(leases, "b")
    await asyncio.wait_for(a.begun.wait(), 5)
    assert leases.holder == "a"
    assert a.election.leading
    assert not b.election.leading
    assert not b.begun.is_set()
    await a.stop()
    await b.stop()
    assert a.ended.is_set()


async def test_a_holder_that_cannot_renew_stops_by_the_clock() -> None:
    leases = Leases()
    a = Candidate(leases, "a")
    await asyncio.wait_for(a.begun.wait(), 5)
    leases.down = True
    held = []
    for seconds in (2.9, 3.0):
        a.now = seconds
        held.append(a.election.leading)
    assert held == [True, False]
    await a.stop()


@pytest.mark.parametrize("taken", [True, False], ids=["taken", "deleted"])
async def test_a_holder_that_reads_another_holder_stops_immediately(taken: bool) -> None:
    """By its own clock, time is left; the clock of another replica may have been set."""
    leases = Leases()
    lock = LeaseLock(leases, "lease", "ns", "a", lambda: 0.0)
    record = LeaderElectionRecord("a", "4", "2026-01-01 00:00:00", "2026-01-01 00:00:00")
    assert await lock.create("lease", "ns", record)
    assert lock.renewed == 0.0
    assert leases.lease is not None
    leases.lease["spec"]["holderIdentity"] = "b"
    leases.lease = leases.lease if taken else None
    await lock.get("lease", "ns")
    assert lock.renewed is None


async def test_only_the_holder_writes_the_lease_when_a_renewal_is_due() -> None:
    """15/10/2, half a minute of attempts every 2 s: the follower only reads."""
    leases = Leases()
    now = 0.0
    locks = [LeaseLock(leases, "lease", "ns", name, lambda: now, due=4) for name in "ab"]
    looks = [LeaderElection(Config(lock, 15, 10, 2, _nothing, _nothing)) for lock in locks]
    held = []
    for _ in range(15):
        held.append([await look.try_acquire_or_renew() for look in looks])
        now += 2
    assert held == [[True, False]] * 15
    assert leases.version == 8


async def test_a_failed_renewal_is_retried_at_the_next_attempt() -> None:
    leases = Leases()
    now = 0.0
    lock = LeaseLock(leases, "lease", "ns", "a", lambda: now, due=4)
    look = LeaderElection(Config(lock, 15, 10, 2, _nothing, _nothing))
    assert await look.try_acquire_or_renew()
    now, leases.down = 4.0, True
    assert not await look.try_acquire_or_renew()
    now, leases.down = 6.0, False
    assert await look.try_acquire_or_renew()
    assert (lock.renewed, leases.version) == (6.0, 2)


def test_three_attempts_fit_between_a_due_renewal_and_the_end_of_leading() -> None:
    settings = LeaseSettings()
    assert (settings.duration, settings.renew, settings.retry) == (15, 10, 2)
    election = Election(Leases(), settings, "ns", "a", _nothing)
    assert election.due == 4


async def _nothing() -> None:
    return


async def test_the_reason_for_a_missing_lease_is_reported() -> None:
    leases = Leases()
    leases.down = True
    a = Candidate(leases, "a")
    await asyncio.wait_for(leases.refused.wait(), 5)
    await asyncio.sleep(0.01)
    assert "connection refused" in a.election.problem
    await a.stop()


async def test_a_released_lease_can_be_acquired_immediately() -> None:
    leases = Leases()
    a = Candidate(leases, "a")
    await asyncio.wait_for(a.begun.wait(), 5)
    await a.stop()
    await a.election.release()
    assert leases.holder == ""
    b = Candidate(leases, "b")
    await asyncio.wait_for(b.begun.wait(), 5)
    assert leases.holder == "b"
    await b.stop()


async def test_a_failing_loop_ends_the_process() -> None:
    async def fails() -> None:
        raise RuntimeError("bug")

    election = Election(Leases(), SETTINGS, "ns", "a", fails)
    with pytest.raises(RuntimeError, match="bug"):
        await asyncio.wait_for(election.run(), 5)


@pytest.mark.parametrize("times", [(15, 15, 2), (15, 10, 9)])
def test_durations_that_would_allow_two_leaders_are_refused(
    times: tuple[float, float, float],
) -> None:
    with pytest.raises(ValueError, match="retry"):
        LeaseSettings(duration=times[0], renew=times[1], retry=times[2])
