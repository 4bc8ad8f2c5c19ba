"""How much headroom one shape in one namespace needs, before `plan` limits it. Pure.

Headroom grows immediately. After a hold, it shrinks by halves. The total of pods and headroom is
held: pods created since the last order have consumed headroom, which is not requested again. Pods
that an HPA is about to create trigger the node autoscaler themselves, so headroom is requested
beyond them. A forecast only raises headroom.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from adapter.nodepool.learn.forecast import ForecastRequest, forecast
from adapter.nodepool.model.capacity import Headroom
from adapter.nodepool.model.demand import JOB_QUEUE, Demand
from adapter.nodepool.model.reason import Reason, count_pods
from adapter.nodepool.plan.limits import Limits


class HeadroomRequest(NamedTuple):
    """The headroom that a shape needs."""

    replicas: int
    needed: int
    """The part that demand needs now; the rest is only kept."""
    kept_since: float
    """Epoch seconds at which the hold of the rest starts."""
    reasons: tuple[Reason, ...]
    consumed: bool
    """Pods have been created since the last order, while headroom existed."""
    expected: int = 0
    """Pods that will soon exist without headroom."""
    awaited: int = 0
    """The part of ``replicas`` that expected pods will take as soon as they are created."""
    kept: int = 0
    """The headroom as far as free nodes exist for it; at least ``replicas``."""
    prompt: int = 0
    """Fewest pending pods without a node with which one pod of headroom pays; 0 if never."""


NOTHING: Final = HeadroomRequest(0, 0, 0.0, (), consumed=False)
"""The request without demand."""


def ask(
    members: Sequence[Demand],
    headroom: Headroom | None,
    request: ForecastRequest,
    limits: Limits,
    now: float,
) -> HeadroomRequest:
    """Return the headroom for all workloads of one shape in one namespace.

    Args:
        members: the workloads, in a fixed order.
        headroom: existing headroom of the shape.
        request: what is asked of the forecasts.
        now: epoch seconds.
    """
    need = _need(members, request, limits, now)
    why = list(need.reasons)
    present = sum(member.present for member in members)
    expected = sum(member.expected for member in members)
    grown = 0 if headroom is None else max(0, present - headroom.pods)
    consumed = headroom is not None and grown > 0 and headroom.replicas > 0
    if consumed:
        why.append(Reason("consumed", f"{count_pods(grown)} created since the last order"))
    kept_part = _kept_headroom(members, headroom, grown, limits, now)
    keep = min(limits.hold_seconds, request.lead)
    if headroom is not None and _has_ended_queue(members) and now - headroom.needed_at >= keep:
        text = f"no Job is left, and headroom was last needed more than {keep:.0f} s ago"
        kept_part = _KeptHeadroom(0, now, Reason("ended", text) if kept_part.replicas else None)
    # Expected pods beyond those that the last order assumed take the kept headroom.
    reckoned = expected if headroom is None else min(max(headroom.pods, present), expected)
    awaited = min(kept_part.replicas, expected - reckoned)
    most = awaited + max(need.beyond, kept_part.replicas - awaited)
    if need.least > most:
        awaited = min(expected - present, awaited + need.least - most)
        most = need.least
    needed = max(awaited + need.beyond, min(need.least, most))
    if needed < kept_part.replicas and kept_part.reason is not None:
        why.append(kept_part.reason)
    elif not needed:
        why.append(kept_part.reason or _why_no_headroom(members, need.expects))
    room = _room(members)
    if room is not None and most > room + awaited:
        most = room + awaited
        why.append(Reason("max_replicas", f"maxReplicas leaves room for {count_pods(most)} more"))
    kept_free = need.kept if room is None else min(need.kept, room)
    return HeadroomRequest(
        most,
        needed,
        kept_part.needed_at,
        tuple(why),
        consumed,
        expected,
        awaited,
        max(most, awaited + kept_free),
        need.prompt if room is None or room > 0 else 0,
    )


class _Need(NamedTuple):
    """The headroom for the known demand."""

    beyond: int
    """Pods beyond those expected."""
    least: int
    """Minimum headroom in pods, including the floors."""
    kept: int
    """Pods beyond those expected whose capacity is kept where it exists."""
    reasons: tuple[Reason, ...]
    expects: str
    """The forecast of the only workload, if nothing more is needed."""
    prompt: int
    """Of the workload with the fewest; 0 without one."""


def _need(members: Sequence[Demand], request: ForecastRequest, limits: Limits, now: float) -> _Need:
    beyond = least = kept_pods = prompt = 0
    reasons: list[Reason] = []
    expects = ""
    for member in members:
        if member.wanted is None:
            continue
        more, free, why, expects, soonest = _growth(member, member.wanted, request, now)
        prompt = min(filter(None, (prompt, soonest)), default=0)
        floor = member.floor if member.spare is None else min(member.floor, member.spare)
        if more < floor:
            why = [
                Reason("floor", f"the minimum headroom for {member.name} is {count_pods(floor)}")
            ]
        beyond += more
        kept_pods += free
        least += max(more, floor)
        reasons.extend(why)
    scaled = any(
        member.max_replicas is not None and member.wanted is not None and not member.parked
        for member in members
    )
    if scaled and least < limits.min_pods:
        least = limits.min_pods
        reasons.append(Reason("min_pods", f"the minimum headroom is {count_pods(least)}"))
    only = expects if len(members) == 1 else ""
    return _Need(beyond, least, kept_pods, tuple(reasons), only, prompt)


class _Growth(NamedTuple):
    """What a workload will want beyond the pods expected. Forecasts only raise it."""

    beyond: int
    """Pods."""
    kept: int
    """Pods whose capacity is kept where it exists."""
    reasons: list[Reason]
    expects: str
    """What is forecast."""
    prompt: int
    """Of its forecast."""


def _growth(member: Demand, wanted: int, request: ForecastRequest, now: float) -> _Growth:
    if member.parked:
        return _Growth(0, 0, [], "", 0)
    question = request._replace(
        queue=member.workload.kind == JOB_QUEUE,
        present=member.expected,
        tolerance=member.tolerance,
        pending=member.pending,
    )
    foreseen = forecast(member.history, wanted, question, now)
    # A group of pods serves once all of them exist.
    most, reasons = -(-max(foreseen.pods, wanted) // member.unit) * member.unit, []
    free = max(0, max(foreseen.kept, most) - member.expected)
    if member.spare is not None:
        free = min(free, member.spare)
    if member.max_replicas is not None and most > member.max_replicas:
        most = member.max_replicas
        reasons.append(Reason("max_replicas", f"{member.name} may have at most {count_pods(most)}"))
    expects = foreseen.expects or (foreseen.text if foreseen.code != "need" else "")
    if most <= member.expected:
        return _Growth(0, free, reasons, expects, 0 if member.spare == 0 else foreseen.prompt)
    soon = f", soon {member.expected}," if member.expected > member.real else ""
    text = f"{member.name} has {count_pods(member.real)}{soon} of {most}: {foreseen.text}"
    return _Growth(
        most - member.expected, free, [Reason(foreseen.code, text), *reasons], expects, 0
    )


def _why_no_headroom(members: Sequence[Demand], expects: str) -> Reason:
    unknown = ", ".join(member.name for member in members if member.wanted is None)
    if unknown:
        return Reason("unknown", f"no metric of {unknown} could be read")
    coming = sum(member.expected - member.real for member in members)
    if coming:
        return Reason("coming", f"{count_pods(coming)} will be created soon and need no headroom")
    because = f": {expects}" if expects else ""
    return Reason("enough", f"no more pods are expected than exist{because}")


class _KeptHeadroom(NamedTuple):
    replicas: int
    needed_at: float
    reason: Reason | None


def _kept_headroom(
    members: Sequence[Demand], headroom: Headroom | None, grown: int, limits: Limits, now: float
) -> _KeptHeadroom:
    """Return the part of an earlier order that is kept without current demand."""
    if headroom is None:
        return _KeptHeadroom(0, now, None)
    left = max(0, headroom.replicas - grown)
    frozen_until = _freeze_end(members, limits, now)
    if now < frozen_until:
        reason = Reason("frozen", "demand is unknown: headroom is kept")
        # The first halving is due when the freeze ends.
        return _KeptHeadroom(left, frozen_until - limits.hold_seconds, reason)
    since = min(headroom.needed_at, _latest_needed_at(limits, now))
    due = since + limits.hold_seconds
    if now < due:
        reason = Reason("held", f"headroom is held for {due - now:.0f} s more")
        return _KeptHeadroom(left, since, reason if left else None)
    halvings = int((now - due) // limits.decay_seconds) + 1
    needed_at = since + halvings * limits.decay_seconds
    if needed_at + limits.hold_seconds <= now:
        # After rounding, the next halving would be due immediately.
        halvings += 1
        needed_at += limits.decay_seconds
    kept_pods = left >> min(halvings, left.bit_length())
    code = "stale" if any(member.wanted is None for member in members) else "decayed"
    reason = Reason(
        code, f"the hold of {count_pods(left)} is over: halved every {limits.decay_seconds:.0f} s"
    )
    return _KeptHeadroom(kept_pods, needed_at, reason if left else None)


def _has_ended_queue(members: Sequence[Demand]) -> bool:
    """Whether a queue of Jobs has no pod and wants none, while all other demand is known.

    Nobody knows which of them earlier headroom was for.
    """
    return all(member.wanted is not None for member in members) and any(
        member.workload.kind == JOB_QUEUE and not member.wanted and not member.expected
        for member in members
    )


def _latest_needed_at(limits: Limits, now: float) -> float:
    """Return the latest possible ``needed_at``, with a second for rounding.

    A later time was written by a clock that was ahead, and would keep the headroom until then.
    """
    hold = limits.hold_seconds
    return now + max(hold, limits.stale_seconds, limits.decay_seconds) - hold + 1.0


def _freeze_end(members: Sequence[Demand], limits: Limits, now: float) -> float:
    """Return until when demand counts as unknown for only a short time, in epoch seconds."""
    known_times = [
        member.known_at
        for member in members
        # A later time was written by a clock that was ahead.
        if member.wanted is None and member.known_at is not None and member.known_at <= now
    ]
    return max(known_times, default=float("-inf")) + limits.stale_seconds


def _room(members: Sequence[Demand]) -> int | None:
    """Return the maximum pods of the workloads beyond those expected; None if one has no limit."""
    spare = [member.spare for member in members]
    limited = [pods for pods in spare if pods is not None]
    return sum(limited) if len(limited) == len(spare) else None
