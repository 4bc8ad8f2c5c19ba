"""Laws of rotation, for every interleaving of runs that may be killed after any request.

Time passes, clocks go back, people ask for renewals, two runs write at once: at every point a
request of an API server to a pod succeeds, whichever of the contents of the last minutes the two
go by.
"""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Coroutine
from functools import cache
from typing import Any

from cryptography import x509
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from adapter.tools.maintain.cluster import MaintainError
from adapter.tools.maintain.objects import RENEW, registration_path
from adapter.tools.maintain.trust import fingerprint, is_valid, issuer_of, read_bundle
from tests.adapter.tools.maintain.fakecluster import (
    AUTHORITY,
    CERTIFICATE,
    CUSTOM,
    DAY,
    POLICY,
    FakeCluster,
)
from tests.examples import bounded

LAG = 300.0
"""Seconds for which a pod may serve what its Secret held before, and an API server trust what its
APIService said."""


@cache
def signer(leaf: x509.Certificate, bundle: bytes) -> x509.Certificate | None:
    return issuer_of(leaf, read_bundle(bundle))


class SetBack(FakeCluster):
    """Its clock is ``behind`` the time that certificates are judged by."""

    behind = 0.0

    def now(self) -> float:
        return self.time - self.behind

    async def pause(self, seconds: float) -> None:
        """Time passes by the rules only."""
        await super().pause(0.0)


class Rotations(RuleBasedStateMachine):
    @initialize()
    def install(self) -> None:
        self.cluster = SetBack()
        self.cluster.install()
        self.cluster.run()
        self.seen: dict[str, list[tuple[bytes, float]]] = {}
        """Path -> contents, each with when it was replaced."""
        self.content: dict[str, bytes] = {}
        self.runs: list[Coroutine[Any, Any, int]] = []
        self.completed = self.cluster.time
        for path in (CERTIFICATE, *map(registration_path, CUSTOM)):
            self.note(path)
        self.cluster.changed = self.note

    def note(self, path: str) -> None:
        obj = self.cluster.objects[path]
        if "spec" in obj:
            now = base64.b64decode(obj["spec"].get("caBundle", ""))
        else:
            now = self.cluster.data(path, "tls.crt")
        before = self.content.get(path)
        if before is not None and before != now:
            self.seen.setdefault(path, []).append((before, self.cluster.time))
        self.content[path] = now

    def possible(self, path: str) -> set[bytes]:
        """What somebody may go by: what is there, and what was within the last minutes."""
        recent = (one for one, until in self.seen.get(path, ()) if until > self.cluster.time - LAG)
        return {self.content[path], *recent}

    def complete(self) -> int:
        written = self.cluster.run()
        self.completed = self.cluster.time
        return written

    @precondition(lambda self: len(self.runs) < 2)
    @rule()
    def begin(self) -> None:
        self.runs.append(self.cluster.rotation().run())

    @precondition(lambda self: self.runs)
    @rule(which=st.integers(0, 1), requests=st.integers(1, 30))
    def go_on(self, which: int, requests: int) -> None:
        run = self.runs[which % len(self.runs)]
        for _ in range(requests):
            try:
                run.send(None)
            except StopIteration:
                self.runs.remove(run)
                return
            self.every_request_succeeds()

    @precondition(lambda self: self.runs)
    @rule(which=st.integers(0, 1))
    def kill(self, which: int) -> None:
        self.runs.pop(which % len(self.runs)).close()

    @rule()
    def a_run_twice_changes_nothing_more(self) -> None:
        self.complete()
        assert self.complete() == 0

    @rule(seconds=st.sampled_from([1.0, LAG, LAG + 1, POLICY.settle, POLICY.settle + 1, 7200.0]))
    def wait(self, seconds: float) -> None:
        # A run that stands still for longer than a Job may last has been killed by its deadline.
        if seconds > LAG:
            self.end_all()
        self.pass_time(seconds)

    @rule(days=st.integers(1, 12))
    def wait_for_days(self, days: int) -> None:
        self.end_all()
        self.complete()
        self.pass_time(days * DAY)

    @rule(seconds=st.floats(1, 3000))
    def the_clock_goes_back(self, seconds: float) -> None:
        # By more than an hour, and no API server would accept what was issued a moment ago.
        if self.cluster.behind + seconds <= 3000:
            self.cluster.behind += seconds

    @rule(path=st.sampled_from([AUTHORITY, CERTIFICATE]))
    def ask_for_a_new_one(self, path: str) -> None:
        self.cluster.annotate(path, RENEW, "now")

    @rule(name=st.sampled_from(CUSTOM), version=st.text("ab", min_size=1, max_size=3))
    def somebody_else_writes_an_apiservice(self, name: str, version: str) -> None:
        self.cluster.annotate(registration_path(name), "status", version)

    @invariant()
    def every_request_succeeds(self) -> None:
        now = self.cluster.time
        for pem in self.possible(CERTIFICATE):
            (leaf,) = read_bundle(pem)
            assert is_valid(leaf, now), "a pod serves a certificate outside its dates"
            for name in CUSTOM:
                for bundle in self.possible(registration_path(name)):
                    issuer = signer(leaf, bundle)
                    assert issuer is not None, f"{name} does not trust what a pod serves"
                    assert is_valid(issuer, now)

    @invariant()
    def a_certificate_lives_within_its_authority(self) -> None:
        (leaf,) = read_bundle(self.content[CERTIFICATE])
        issuer = issuer_of(leaf, read_bundle(self.cluster.bundle(CUSTOM[0])))
        assert issuer is not None
        assert leaf.not_valid_after_utc <= issuer.not_valid_after_utc

    def teardown(self) -> None:
        """Left alone, it ends: one CA, which signed the certificate, everywhere."""
        if not hasattr(self, "cluster"):
            return
        self.end_all()
        for _ in range(6):
            self.complete()
            self.pass_time(POLICY.settle + self.cluster.behind + 1)
            self.every_request_succeeds()
        assert self.complete() == 0
        (authority,) = read_bundle(self.cluster.data(AUTHORITY, "ca.crt"))
        (leaf,) = read_bundle(self.content[CERTIFICATE])
        assert issuer_of(leaf, [authority]) is not None
        for name in CUSTOM:
            assert [*map(fingerprint, read_bundle(self.cluster.bundle(name)))] == [
                fingerprint(authority)
            ]
        assert self.cluster.data(CERTIFICATE, "ca.crt") == self.cluster.bundle(CUSTOM[0])

    def pass_time(self, seconds: float) -> None:
        if self.cluster.time + seconds - self.completed > 13 * DAY:
            with contextlib.suppress(MaintainError):
                self.complete()
        self.cluster.time += seconds

    def end_all(self) -> None:
        while self.runs:
            self.runs.pop().close()


TestRotations = Rotations.TestCase
TestRotations.settings = bounded(10, steps=30)
