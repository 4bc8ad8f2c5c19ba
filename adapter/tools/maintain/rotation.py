"""One run of the certificate rotation: read the state, take one step, read again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

import structlog

from adapter.tools.maintain.cluster import ConflictError, MaintainError, ObjectStore, RefusalError
from adapter.tools.maintain.objects import (
    ISSUED,
    PUBLISHED,
    RENEW,
    Object,
    owner,
    read_authority_secret,
    read_certificate_secret,
    read_registration,
    registration_patch,
    registration_path,
    secret_patch,
    secret_path,
    write_stamp,
)
from adapter.tools.maintain.plan import (
    Copy,
    Issue,
    MakeAuthority,
    Publish,
    StampIssued,
    StampPublished,
    Trust,
    Wait,
    Write,
    next_step,
)
from adapter.tools.maintain.state import (
    AuthoritySecret,
    CertificateSecret,
    ObservedState,
    RotationPolicy,
    Since,
)
from adapter.tools.maintain.trust import fingerprint, read_bundle, write_bundle
from apiservice.tls.authority import new_authority

log = structlog.get_logger(__name__)

_CONFLICTS = 50
"""Conflicting writes that are retried: an APIService's status is written often."""
_STEPS = 100
"""Writes of one run at most. The longest, from nothing with three APIServices, takes nine."""
_LOOK = 1.0
"""Seconds between checks for an APIService that does not exist yet."""


class Installation(NamedTuple):
    """The objects that hold and use the certificates."""

    namespace: str
    service: str
    """The Service that the API server sends requests to."""
    authority: str
    """The Secret with the CA."""
    certificate: str
    """The Secret that pods mount."""
    registrations: tuple[str, ...]
    """The APIServices."""


class Look(NamedTuple):
    """What exists, and which APIServices belong to somebody else."""

    state: ObservedState
    absent: tuple[str, ...]
    foreign: tuple[str, ...]
    """Each with its owner."""


class Rotation:
    """One run of the rotation.

    Args:
        wait: seconds to wait for APIServices that do not exist yet: Helm creates them last.
        pause: sleeps for a number of seconds.
    """

    def __init__(
        self,
        objects: ObjectStore,
        target: Installation,
        policy: RotationPolicy,
        wait: float,
        pause: Callable[[float], Awaitable[None]],
    ) -> None:
        self._objects = objects
        self._target = target
        self._policy = policy
        self._wait = wait
        self._pause = pause

    async def run(self) -> int:
        """Do what can be done now. Return the number of writes.

        Raises:
            RefusalError: an APIService, or the data of a Secret, belongs to somebody else.
            MaintainError: a step failed, or an APIService does not exist.
        """
        waited, written, conflicts = 0.0, 0, 0
        while True:
            state = await self.look()
            step = next_step(state.state, self._policy, self._objects.now())
            if step is None or isinstance(step, Wait):
                if state.absent and waited < self._wait:
                    await self._pause(_LOOK)
                    waited += _LOOK
                    continue
                return self._end(state, step, written)
            try:
                await self._take(step, state.state)
            except ConflictError as error:
                conflicts += 1
                if conflicts > _CONFLICTS:
                    raise MaintainError(f"{error}; another client keeps writing it") from None
                await self._pause(0.1)
                continue
            written += 1
            if written > _STEPS:
                raise MaintainError(f"not done after {written} writes; the last was {step}")

    async def look(self) -> Look:
        """Read all objects in the order that :class:`ObservedState` requires."""
        target, rows = self._target, []
        absent, foreign = [], []
        for name in target.registrations:
            obj = await self._objects.read(registration_path(name))
            if obj is None:
                absent.append(name)
            elif owner(obj) != f"{target.namespace}/{target.service}":
                foreign.append(f"{name} ({owner(obj) or 'the API server itself'})")
            else:
                rows.append(read_registration(obj))
        certificate = read_certificate_secret(await self._secret(target.certificate))
        authority = read_authority_secret(await self._secret(target.authority))
        return Look(
            ObservedState(authority, certificate, tuple(rows)), tuple(absent), tuple(foreign)
        )

    async def _secret(self, name: str) -> Object:
        obj = await self._objects.read(secret_path(self._target.namespace, name))
        if obj is None:
            raise MaintainError(
                f"Secret {self._target.namespace}/{name} does not exist: apply the chart again, "
                f"which creates an empty one"
            )
        return obj

    async def _take(self, step: Write, state: ObservedState) -> None:
        """Carry out a step; raises MaintainError, ConflictError."""
        now = self._objects.now()
        match step:
            case MakeAuthority(before, why):
                made = new_authority(now, self._policy.ca_days)
                keys = {
                    "ca.crt": write_bundle((made.certificate, *before)),
                    "ca.key": made.key_pem,
                }
                await self._write(state.authority, keys, {PUBLISHED: None, RENEW: None})
                self._say("CA created", why=why, trusted=len(before) + 1)
            case Trust(bundle, why):
                await self._write(state.authority, {"ca.crt": write_bundle(bundle)}, {})
                self._say("CAs trusted", trusted=len(bundle), why=why)
            case Publish(name, pem):
                (version,) = (row.version for row in state.registrations if row.name == name)
                body = registration_patch(version, pem)
                await self._objects.patch(registration_path(name), body)
                self._say("caBundle written", apiservice=name, trusted=len(read_bundle(pem)))
            case StampPublished(stamp):
                await self._write(state.authority, {}, {PUBLISHED: write_stamp(stamp)})
            case Copy(pem):
                await self._write(state.certificate, {"ca.crt": pem}, {})
            case StampIssued(stamp):
                await self._write(state.certificate, {}, {ISSUED: write_stamp(stamp)})
            case Issue(signer, pem, why):
                issued = signer.issue(self._policy.names, now, self._policy.days)
                (leaf,) = read_bundle(issued.certificate)
                keys = {"tls.crt": issued.certificate, "tls.key": issued.key, "ca.crt": pem}
                since = write_stamp(Since(fingerprint(leaf), float(int(now))))
                await self._write(state.certificate, keys, {ISSUED: since, RENEW: None})
                ends = leaf.not_valid_after_utc.isoformat()
                self._say("certificate issued", why=why, ends=ends)

    async def _write(
        self,
        secret: AuthoritySecret | CertificateSecret,
        data: Mapping[str, bytes],
        annotations: Mapping[str, str | None],
    ) -> None:
        target = self._target
        mine = isinstance(secret, AuthoritySecret)
        path = secret_path(target.namespace, target.authority if mine else target.certificate)
        await self._objects.patch(path, secret_patch(secret.version, data, annotations))

    def _say(self, event: str, **facts: object) -> None:
        target = self._target
        log.info(event, namespace=target.namespace, service=target.service, **facts)

    def _end(self, look: Look, step: Wait | None, written: int) -> int:
        if step is not None:
            left = round(step.until - self._objects.now())
            self._say("rotation continues in a later run", reason=step.why, seconds=max(left, 0))
        if look.foreign:
            raise RefusalError(
                f"APIService {', '.join(look.foreign)} belongs to somebody else and is not "
                f"changed: remove it and apply the chart again, or disable it with "
                f"apiServices.create=false or externalMetrics.enabled=false"
            )
        if look.absent:
            raise MaintainError(
                f"APIService {', '.join(look.absent)} does not exist: apply the chart again, "
                f"which creates it"
            )
        return written
