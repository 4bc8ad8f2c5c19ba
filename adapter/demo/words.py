"""The reason of an HPA's decision, as a sentence."""

from __future__ import annotations

from adapter.hpa import Condition, ControllerOptions, Decision, HpaSpec


def explain(spec: HpaSpec, decision: Decision, missing: int) -> str:
    """Return why the number of replicas changes, or does not.

    Args:
        spec: the HPA.
        decision: the decision of this sync.
        missing: running pods without a value.
    """
    rows = {row.type: row for row in decision.conditions}
    active = rows.get("ScalingActive")
    if active and not active.status:
        return f"no value: keeps {decision.current} (ScalingActive=False, {active.reason})"
    proposal = next(iter(decision.proposals), None)
    if proposal is None or proposal.usage is None or proposal.replicas is None:
        return decision.reason or "nothing to decide"
    goal, asked = spec.metrics[0].target.milli, proposal.replicas
    words = _compare(proposal.usage, goal)
    if missing:
        words += f" ({missing} without a value)"
    elif proposal.usage != goal and _tolerated(spec, proposal.usage / goal):
        words += " within the tolerance"
    if asked == decision.current == decision.desired:
        return f"{words}: stays at {asked}"
    words += f": wants {asked}"
    if asked != decision.desired:
        words += _held(decision, asked, rows)
    return words


def _tolerated(spec: HpaSpec, ratio: float) -> bool:
    rules = spec.behavior and (spec.behavior.scale_up if ratio > 1 else spec.behavior.scale_down)
    own = rules.tolerance if rules else None
    return abs(ratio - 1) <= (ControllerOptions().tolerance if own is None else own)


def _compare(usage: int, goal: int) -> str:
    value, target = _number(usage), _number(goal)
    if usage > goal:
        return f"{value} is over the target of {target}"
    if usage < goal:
        return f"{value} is under the target of {target}"
    return f"{value} is the target"


def _held(decision: Decision, asked: int, rows: dict[str, Condition]) -> str:
    limited = rows.get("ScalingLimited")
    if limited and limited.status:
        return f", gets {decision.desired} ({limited.reason})"
    if asked < decision.desired:
        return f", the scale-down window allows {decision.desired}"
    return f", gets {decision.desired}"


def _number(milli: int) -> str:
    return f"{milli / 1000:.1f}".removesuffix(".0")
