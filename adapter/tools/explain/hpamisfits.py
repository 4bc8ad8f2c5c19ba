"""Flaws of an HPA's manifest, each with the command that corrects it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from adapter.answers.causes import CauseCode
from adapter.answers.judgement.flaws import Flaw, flaws_of
from adapter.figures import decimal
from adapter.hpa import HpaSpec, MetricKind
from adapter.pipeline.catalog import built_in
from adapter.pipeline.catalog.targetfit import Misfit, selector_with
from adapter.pipeline.cluster.gpuresources import MIG_PREFIX
from adapter.pipeline.cluster.hpamanifest import HpaManifest, reduce
from adapter.pipeline.cluster.podgroups import selects_of, stated_size
from adapter.tools.client.access import Json
from adapter.tools.client.hpacommands import change_hpa, change_scaled_object
from adapter.tools.explain import hpafixes
from adapter.tools.explain.hpafacts import HpaFacts
from adapter.tools.explain.hpaparts import Block

_CATALOG: Final = built_in()


def flaws(facts: HpaFacts) -> Sequence[Flaw]:
    """Return the flaws of an HPA, as every list has them."""
    shown = reduce(msgspec.convert(facts.hpa, HpaManifest, strict=False))
    labels = next((pod["metadata"].get("labels") or {} for pod in facts.pods), None)
    on_mig = any(map(_holds_instances, facts.pods))
    # The pods are those of the scale's selector: all of them may be leaders of groups.
    group = selects_of(shown.kind, None, next(filter(None, map(_size, facts.pods)), None))
    return flaws_of(shown, _CATALOG.metrics, labels, facts.triggers, on_mig=on_mig, selects=group)


def _size(pod: Json) -> int | None:
    return stated_size(pod["metadata"].get("annotations") or {})


def _holds_instances(pod: Json) -> bool:
    limits = (row.get("resources", {}).get("limits") or {} for row in pod["spec"]["containers"])
    return any(name.startswith(MIG_PREFIX) for row in limits for name in row)


def target_blocks(facts: HpaFacts, spec: HpaSpec, *, runaway: bool) -> Iterator[Block]:
    """Yield the targets that do not fit, and the selectors that select nothing.

    Nobody but the adapter has the labels for which a selector is judged.

    Args:
        runaway: those that take the HPA to its maximum; else the others, which keep values away.
    """
    taken = any(cause.code is CauseCode.METRICS_API_TAKEN for cause in facts.causes)
    for flaw in flaws(facts):
        if flaw.runs_away is not runaway:
            continue
        if taken and flaw.misfit is None and spec.metrics[flaw.place].kind is MetricKind.EXTERNAL:
            continue
        yield Block(flaw.text, _fix(facts, spec, flaw))


def _fix(facts: HpaFacts, spec: HpaSpec, flaw: Flaw) -> str:
    metric, misfit = spec.metrics[flaw.place], flaw.misfit
    if misfit is None:
        return f"correct {hpafixes.field(facts, metric, 'metric.selector')}"
    if misfit.aggregate and not facts.scaled_object:
        path = hpafixes.field(facts, metric, "metric.selector")
        shown = reduce(msgspec.convert(facts.hpa, HpaManifest, strict=False)).metrics[flaw.place]
        return change_hpa(facts.hpa, path, selector_with(shown.selector, misfit.aggregate)).line
    if misfit.words:
        return misfit.words
    if facts.scaled_object:
        return _trigger_fix(facts, flaw, misfit)
    number = decimal(metric.target.milli / 1000, 3)
    if misfit.type:
        field = misfit.type[:1].lower() + misfit.type[1:]
        path = hpafixes.field(facts, metric, "target")
        return change_hpa(facts.hpa, path, {"type": misfit.type, field: number}).line
    kind = metric.target.kind
    path = hpafixes.field(facts, metric, f"target.{kind[:1].lower()}{kind[1:]}")
    return change_hpa(facts.hpa, path, misfit.number).line


def _trigger_fix(facts: HpaFacts, flaw: Flaw, misfit: Misfit) -> str:
    trigger = next((row for row in facts.triggers if row.place == flaw.trigger), None)
    if trigger is None:
        return ""
    path = f"{trigger.path}.{'metricType' if misfit.type else 'metadata.target'}"
    return change_scaled_object(facts.hpa, path, misfit.type or misfit.number).line
