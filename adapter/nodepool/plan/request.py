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
    held: Headroom | None,
    asked: ForecastRequest,
    limits: Limits,
    now: float,
) -> HeadroomRequest:
    """Return the headroom for all workloads of one shape in one namespace.

    Args:
        members: the workloads, in a fixed order.
        held: existing headroom of the shape.
        asked: what is asked of the forecasts.
        now: epoch seconds.
    """
    need = _need(members, asked, limits, now)
    why = list(need.reasons)
    present = sum(each.present for each in members)
    expected = sum(each.expected for each in members)
    grown = 0 if held is None else max(0, present - held.pods)
    consumed = held is not None and grown > 0 and held.replicas > 0
    if consumed:
        why.append(Reason("consumed", f"{count_pods(grown)} created since the last order"))
    kept = _kept(members, held, grown, limits, now)
    keep = min(limits.hold_seconds, asked.lead)
    if held is not None and _ended(members) and now - held.needed_at >= keep:
        text = f"no Job is left, and headroom was last needed more than {keep:.0f} s ago"
        kept = _KeptHeadroom(0, now, Reason("ended", text) if kept.replicas else None)
    # Expected pods beyond those that the last order assumed take the kept headroom.
    reckoned = expected if held is None else min(max(held.pods, present), expected)
    awaited = min(kept.replicas, expected - reckoned)
    most = awaited + max(need.beyond, kept.replicas - awaited)
    if need.least > most:
        awaited = min(expected - present, awaited + need.least - most)
        most = need.least
    needed = max(awaited + need.beyond, min(need.least, most))
    if needed < kept.replicas and kept.reason is not None:
        why.append(kept.reason)
    elif not needed:
        why.append(kept.reason or _nothing(members, need.expects))
    room = _room(members)
    if room is not None and most > room + awaited:
        most = room + awaited
        why.append(Reason("max_replicas", f"maxReplicas leaves room for {count_pods(most)} more"))
    kept_free = need.kept if room is None else min(need.kept, room)
    return HeadroomRequest(
        most,
        needed,
        kept.needed_at,
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


def _need(members: Sequence[Demand], asked: ForecastRequest, limits: Limits, now: float) -> _Need:
    beyond = least = kept = prompt = 0
    reasons: list[Reason] = []
    expects = ""
    for each in members:
        if each.wanted is None:
            continue
        more, free, why, expects, soonest = _growth(each, each.wanted, asked, now)
        prompt = min(filter(None, (prompt, soonest)), default=0)
        floor = each.floor if each.spare is None else min(each.floor, each.spare)
        if more < floor:
            why = [Reason("floor", f"the minimum headroom for {each.name} is {count_pods(floor)}")]
        beyond += more
        kept += free
        least += max(more, floor)
        reasons.extend(why)
    scaled = any(
        each.max_replicas is not None and each.wanted is not None and not each.parked
        for each in members
    )
    if scaled and least < limits.min_pods:
        least = limits.min_pods
        reasons.append(Reason("min_pods", f"the minimum headroom is {count_pods(least)}"))
    only = expects if len(members) == 1 else ""
    return _Need(beyond, least, kept, tuple(reasons), only, prompt)


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


def _growth(each: Demand, wanted: int, asked: ForecastRequest, now: float) -> _Growth:
    if each.parked:
        return _Growth(0, 0, [], "", 0)
    question = asked._replace(
        queue=each.workload.kind == JOB_QUEUE,
        present=each.expected,
        tolerance=each.tolerance,
        pending=each.pending,
    )
    found = forecast(each.history, wanted, question, now)
    # A group of pods serves once all of them exist.
    most, reasons = -(-max(found.pods, wanted) // each.unit) * each.unit, []
    kept = max(0, max(found.kept, most) - each.expected)
    if each.spare is not None:
        kept = min(kept, each.spare)
    if each.max_replicas is not None and most > each.max_replicas:
        most = each.max_replicas
        reasons.append(Reason("max_replicas", f"{each.name} may have at most {count_pods(most)}"))
    expects = found.expects or (found.text if found.code != "need" else "")
    if most <= each.expected:
        return _Growth(0, kept, reasons, expects, 0 if each.spare == 0 else found.prompt)
    soon = f", soon {each.expected}," if each.expected > each.real else ""
    text = f"{each.name} has {count_pods(each.real)}{soon} of {most}: {found.text}"
    return _Growth(most - each.expected, kept, [Reason(found.code, text), *reasons], expects, 0)


def _nothing(members: Sequence[Demand], expects: str) -> Reason:
    unknown = ", ".join(each.name for each in members if each.wanted is None)
    if unknown:
        return Reason("unknown", f"no metric of {unknown} could be read")
    coming = sum(each.expected - each.real for each in members)
    if coming:
        return Reason("coming", f"{count_pods(coming)} will be created soon and need no headroom")
    because = f": {expects}" if expects else ""
    return Reason("enough", f"no more pods are expected than exist{because}")


class _KeptHeadroom(NamedTuple):
    replicas: int
    needed_at: float
    reason: Reason | None


def _kept(
    members: Sequence[Demand], held: Headroom | None, grown: int, limits: Limits, now: float
) -> _KeptHeadroom:
    """Return the part of an earlier order that is kept without current demand."""
    if held is None:
        return _KeptHeadroom(0, now, None)
    left = max(0, held.replicas - grown)
    frozen_until = _frozen_until(members, limits, now)
    if now < frozen_until:
        reason = Reason("frozen", "demand is unknown: headroom is kept")
        # The first halving is due when the freeze ends.
        return _KeptHeadroom(left, frozen_until - limits.hold_seconds, reason)
    since = min(held.needed_at, _latest(limits, now))
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
    kept = left >> min(halvings, left.bit_length())
    code = "stale" if any(each.wanted is None for each in members) else "decayed"
    reason = Reason(
        code, f"the hold of {count_pods(left)} is over: halved every {limits.decay_seconds:.0f} s"
    )
    return _KeptHeadroom(kept, needed_at, reason if left else None)


def _ended(members: Sequence[Demand]) -> bool:
    """Whether a queue of Jobs has no pod and wants none, while all other demand is known.

    Nobody knows which of them earlier headroom was for.
    """
    return all(each.wanted is not None for each in members) and any(
        each.workload.kind == JOB_QUEUE and not each.wanted and not each.expected
        for each in members
    )


def _latest(limits: Limits, now: float) -> float:
    """Return the latest possible ``needed_at``, with a second for rounding.

    A later time was written by a clock that was ahead, and would keep the headroom until then.
    """
    hold = limits.hold_seconds
    return now + max(hold, limits.stale_seconds, limits.decay_seconds) - hold + 1.0


def _frozen_until(members: Sequence[Demand], limits: Limits, now: float) -> float:
    """Return until when demand counts as unknown for only a short time, in epoch seconds."""
    seen = [
        each.known_at
        for each in members
        # A later time was written by a clock that was ahead.
        if each.wanted is None and each.known_at is not None and each.known_at <= now
    ]
    return max(seen, default=float("-inf")) + limits.stale_seconds


def _room(members: Sequence[Demand]) -> int | None:
    """Return the maximum pods of the workloads beyond those expected; None if one has no limit."""
    spare = [each.spare for each in members]
    known = [each for each in spare if each is not None]
    return sum(known) if len(known) == len(spare) else None
