"""An HPA's decision in a sentence."""

from __future__ import annotations

from adapter.hpa import Condition, Decision, HpaSpec


def explain(spec: HpaSpec, decision: Decision, missing: int) -> str:
    """Say why the number of replicas changes, or does not.

    Args:
        spec: the HPA.
        decision: of this sync.
        missing: running pods without a value.
    """
    rows = {row.type: row for row in decision.conditions}
    active = rows.get("ScalingActive")
    if active and not active.status:
        return f"no value: holds {decision.current} (ScalingActive=False, {active.reason})"
    proposal = next(iter(decision.proposals), None)
    if proposal is None or proposal.usage is None or proposal.replicas is None:
        return decision.reason or "nothing to decide"
    value, target = _number(proposal.usage), _number(spec.metrics[0].target.milli)
    asked = proposal.replicas
    words = _compare(proposal.usage, spec.metrics[0].target.milli, value, target)
    if missing:
        words += f" ({missing} without a value)"
    if asked == decision.current == decision.desired:
        return f"{words}: stays at {asked}"
    words += f": asks for {asked}"
    if asked != decision.desired:
        words += _held(decision, asked, rows)
    return words


def _compare(usage: int, goal: int, value: str, target: str) -> str:
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
