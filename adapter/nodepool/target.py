"""How much headroom one shape in one namespace asks for, before any cap. Pure.

Up at once; down after a hold, and then by halves. What is held is the total of pods and
headroom: pods that came since the last order have consumed headroom, and consumed headroom
is not asked for again. A forecast only ever raises.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from adapter.nodepool.capacity import Headroom
from adapter.nodepool.demand import Demand
from adapter.nodepool.forecast import forecast
from adapter.nodepool.limits import Limits
from adapter.nodepool.reason import Reason


class Ask(NamedTuple):
    """What a shape asks for."""

    replicas: int
    needed: int
    """What demand asks for now; the rest is only kept."""
    kept_since: float
    """Epoch seconds that the hold of the rest counts from."""
    reasons: tuple[Reason, ...]
    consumed: bool
    """Pods have come since the last order, while there was headroom."""


def ask(
    members: Sequence[Demand], held: Headroom | None, lead: float, limits: Limits, now: float
) -> Ask:
    """Ask for the headroom of all workloads of one shape in one namespace.

    Args:
        members: the workloads, in a fixed order.
        held: what was ordered for the shape.
        lead: seconds from order to usable.
        now: epoch seconds.
    """
    target, why = _target(members, lead, limits, now)
    grown = 0 if held is None else max(0, sum(each.real for each in members) - held.pods)
    consumed = held is not None and grown > 0 and held.replicas > 0
    if consumed:
        why.append(Reason("consumed", f"{grown} pods have come since the last order"))
    kept = _kept(members, held, grown, limits, now)
    most = max(target, kept.replicas)
    if target < kept.replicas and kept.reason is not None:
        why.append(kept.reason)
    elif not target:
        why.append(kept.reason or _nothing(members))
    room = _room(members)
    if room is not None and most > room:
        why.append(Reason("max_replicas", f"{room} pods more are all that max replicas allow"))
        most = room
    return Ask(most, target, kept.needed_at, tuple(why), consumed)


def _target(
    members: Sequence[Demand], lead: float, limits: Limits, now: float
) -> tuple[int, list[Reason]]:
    """What the demand that is known asks for now."""
    total = 0
    reasons: list[Reason] = []
    for each in members:
        if each.wanted is None:
            continue
        more, why = _growth(each, each.wanted, lead, limits, now)
        least = each.floor if each.spare is None else min(each.floor, each.spare)
        if more < least:
            more = least
            why = [Reason("floor", f"{least} pods of headroom are the least of {_name(each)}")]
        total += more
        reasons.extend(why)
    scaled = any(
        each.max_replicas is not None and each.wanted is not None and not each.parked
        for each in members
    )
    if scaled and total < limits.min_pods:
        total = limits.min_pods
        reasons.append(Reason("min_pods", f"{total} pods of headroom are the least"))
    return total, reasons


def _growth(
    each: Demand, wanted: int, lead: float, limits: Limits, now: float
) -> tuple[int, list[Reason]]:
    """How many pods more than there are one workload will want; a forecast never lowers it."""
    if each.parked:
        return 0, []
    expected = forecast(each.history, wanted, lead, limits.quantile, now)
    pods, reasons = max(expected.pods, wanted), []
    if each.max_replicas is not None and pods > each.max_replicas:
        pods = each.max_replicas
        reasons.append(Reason("max_replicas", f"{_name(each)} may have {pods} pods at most"))
    if pods <= each.real:
        return 0, reasons
    text = f"{_name(each)} has {each.real} pods of {pods}: {expected.text}"
    return pods - each.real, [Reason(expected.code, text), *reasons]


def _nothing(members: Sequence[Demand]) -> Reason:
    unknown = ", ".join(_name(each) for each in members if each.wanted is None)
    if unknown:
        return Reason("unknown", f"no metric of {unknown} could be read")
    return Reason("enough", "no more pods are expected than there are")


def _name(each: Demand) -> str:
    return f"{each.workload.kind} {each.workload.name}"


class _Kept(NamedTuple):
    replicas: int
    needed_at: float
    reason: Reason | None


def _kept(
    members: Sequence[Demand], held: Headroom | None, grown: int, limits: Limits, now: float
) -> _Kept:
    """What stays of an earlier order although nothing asks for it now."""
    if held is None:
        return _Kept(0, now, None)
    left = max(0, held.replicas - grown)
    frozen_until = _frozen_until(members, limits, now)
    if now < frozen_until:
        reason = Reason("frozen", "demand is unknown: headroom stays as it was")
        # The first halving is due when the freeze ends.
        return _Kept(left, frozen_until - limits.hold_seconds, reason)
    since = min(held.needed_at, _latest(limits, now))
    due = since + limits.hold_seconds
    if now < due:
        reason = Reason("held", f"headroom is held for {due - now:.0f} s more")
        return _Kept(left, since, reason)
    halvings = int((now - due) // limits.decay_seconds) + 1
    needed_at = since + halvings * limits.decay_seconds
    if needed_at + limits.hold_seconds <= now:
        # Rounded to the very moment: the next halving would be due at once.
        halvings += 1
        needed_at += limits.decay_seconds
    kept = left >> min(halvings, left.bit_length())
    code = "stale" if any(each.wanted is None for each in members) else "decayed"
    reason = Reason(code, f"{left} halve every {limits.decay_seconds:.0f} s")
    return _Kept(kept, needed_at, reason if left else None)


def _latest(limits: Limits, now: float) -> float:
    """The latest that headroom may be needed at, by any rule here; a second for rounding.

    Later is of a clock that was ahead, and would be held until the time is so again.
    """
    hold = limits.hold_seconds
    return now + max(hold, limits.stale_seconds, limits.decay_seconds) - hold + 1.0


def _frozen_until(members: Sequence[Demand], limits: Limits, now: float) -> float:
    """Epoch seconds until which demand counts as unknown for a moment only."""
    seen = [
        each.known_at
        for each in members
        # A later one is of a clock that was ahead.
        if each.wanted is None and each.known_at is not None and each.known_at <= now
    ]
    return max(seen, default=float("-inf")) + limits.stale_seconds


def _room(members: Sequence[Demand]) -> int | None:
    """Pods that the workloads may still get; None where nothing limits one of them."""
    spare = [each.spare for each in members]
    known = [each for each in spare if each is not None]
    return sum(known) if len(known) == len(spare) else None
