"""What the behavior of an HPA holds back: the field, its value, and how it is changed.

``behavior`` has a stabilization window, policies for the rate, ``selectPolicy`` and, from
Kubernetes 1.35 on, a tolerance, each for both directions (kubernetes/kubernetes issues 96671 and
98174 show how windows surprise).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from adapter.figures import decimal
from adapter.hpa import Decision, HpaSpec, Select
from adapter.hpa.observation import Rule
from adapter.hpa.spec import Behavior, PolicyKind, Rules
from adapter.tools.client.hpacommands import change_hpa
from adapter.tools.explain import hpafixes
from adapter.tools.explain.hpafacts import HpaFacts
from adapter.tools.explain.hpaparts import Block

_WINDOWS: Final = {"scaleUp": 0.0, "scaleDown": 300.0}
"""Seconds of the stabilization windows by default."""
_POLICIES: Final[dict[str, list[dict[str, Any]]]] = {
    "scaleUp": [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ],
    "scaleDown": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
}
"""The policies that the API server sets where the manifest has none."""
_UNITS: Final = {PolicyKind.PODS: "", PolicyKind.PERCENT: " %"}
_SLOW: Final = 60.0
"""Seconds of a policy's period from which on it is slower than the default."""
_TOLERANCE: Final = 0.1
"""Share of a target by default."""


def holds_of(facts: HpaFacts, spec: HpaSpec, decision: Decision) -> Iterator[Block]:
    """Yield what a behavior holds back at this sync."""
    asked, behavior = decision.asked, spec.behavior or Behavior()
    if asked is None or decision.current == 0:
        return
    if asked == decision.current:
        yield from _tolerance(facts, behavior, decision)
        return
    side, way = ("scaleUp", "out") if asked > decision.current else ("scaleDown", "in")
    rules = behavior.scale_up if side == "scaleUp" else behavior.scale_down
    if side == "scaleDown" and rules.select is Select.DISABLED:
        yield Block(
            f"scaling in to {asked} is switched off: behavior.scaleDown.selectPolicy is Disabled",
            hpafixes.open_policy(facts, side),
        )
        return
    if decision.stable != asked:
        yield _window(facts, side, way, rules, asked)
    limited = {row.type: row.reason for row in decision.conditions}.get("ScalingLimited", "")
    rated = limited in ("ScaleUpLimit", "ScaleDownLimit")
    if rated and rules.select is not Select.DISABLED:
        yield _rate(facts, side, rules, decision)


def _window(facts: HpaFacts, side: str, way: str, rules: Rules, size: int) -> Block:
    usual = _WINDOWS[side]
    longer = rules.window is not None and rules.window > usual
    note = f" (behavior.{side}.stabilizationWindowSeconds is {rules.window:.0f})" if longer else ""
    return Block(
        f"scaling {way} to {size} waits until the stabilization window has no other "
        f"recommendation{note}",
        change_hpa(facts.hpa, f"spec.behavior.{side}.stabilizationWindowSeconds", int(usual)).line
        if longer
        else "",
    )


def _rate(facts: HpaFacts, side: str, rules: Rules, decision: Decision) -> Block:
    text = f"the scale rate allows {decision.desired} now; the rest follows at later syncs"
    slow = [policy for policy in rules.policies if policy.period >= _SLOW]
    if len(slow) < len(rules.policies) and rules.select is not Select.MIN:
        return Block(text)
    shown = " and ".join(
        f"{policy.value}{_UNITS[policy.kind]} per {policy.period:.0f} s"
        for policy in rules.policies
    )
    select = ", selectPolicy Min" if rules.select is Select.MIN else ""
    fix = change_hpa(facts.hpa, f"spec.behavior.{side}.policies", _POLICIES[side])
    return Block(f"{text} (behavior.{side}.policies: {shown}{select})", fix.line)


def _tolerance(facts: HpaFacts, behavior: Behavior, decision: Decision) -> Iterator[Block]:
    """Yield that a tolerance of its own keeps the size where the usual one would not."""
    if not any(
        row.working is not None and row.working.rule is Rule.TOLERANCE for row in decision.proposals
    ):
        return
    for side, rules in (("scaleUp", behavior.scale_up), ("scaleDown", behavior.scale_down)):
        if rules.tolerance is not None and rules.tolerance > _TOLERANCE:
            share = decimal(rules.tolerance, 3)
            yield Block(
                f"behavior.{side}.tolerance is {share}: a value may differ from its target by "
                f"{decimal(rules.tolerance * 100, 1)} % before the HPA changes the size",
                change_hpa(facts.hpa, f"spec.behavior.{side}.tolerance", "0.1").line,
            )
