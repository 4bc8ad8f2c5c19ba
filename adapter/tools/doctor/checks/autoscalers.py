"""The check that one autoscaler scales each workload."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from adapter.answers.keda.manifest import SeenScaledObject
from adapter.tools.client.hpacommands import one_hpa
from adapter.tools.doctor.copies import copies_by_name, nearest_copies, with_others
from adapter.tools.doctor.facts import Facts, Hpa
from adapter.tools.doctor.model import CheckSection, Finding, check
from adapter.tools.doctor.scaletargets import copies_of_target

_TargetCopy = tuple[str, str, str, str]
"""Namespace, kind and name of a target, and the file with it, or an empty text."""


@check("GMA423", CheckSection.HPAS, "one autoscaler scales each workload")
def two_autoscalers(facts: Facts) -> Iterator[Finding]:
    """Two HPAs, or an HPA and a ScaledObject, scale one workload: its size moves back and forth, or
    the HPA controller scales none (`AmbiguousSelector`).

    Put all metrics into one HPA or ScaledObject: the largest count of all applies.
    """
    hpas_by_target: dict[_TargetCopy, list[Hpa]] = defaultdict(list)
    for hpa in facts.hpas.read():
        if not hpa.owner and hpa.kind and hpa.target:
            for target in _target_copies(facts, hpa):
                hpas_by_target[target].append(hpa)
    scaled_by_target: dict[_TargetCopy, list[SeenScaledObject]] = defaultdict(list)
    for scaled in facts.scaledobjects.value or () if facts.scaledobjects.known else ():
        for target in _target_copies(facts, scaled):
            scaled_by_target[target].append(scaled)
    # Copies of one object have several targets: a finding about it is the same for each.
    findings = _compare(hpas_by_target, scaled_by_target)
    yield from {(row.subject, row.message): row for row in findings}.values()


def _target_copies(facts: Facts, scaler: Hpa | SeenScaledObject) -> Iterator[_TargetCopy]:
    """Yield the copies of a scaler's target in its environment; one without a file if none is
    known."""
    known = copies_of_target(facts, scaler) if facts.workloads.known else ()
    copies = nearest_copies(scaler.origin, known)
    for origin in {copy.origin for copy in copies} or {""}:
        yield scaler.namespace, scaler.kind, scaler.target, origin


def _compare(
    hpas_by_target: Mapping[_TargetCopy, Sequence[Hpa]],
    scaled_by_target: Mapping[_TargetCopy, Sequence[SeenScaledObject]],
) -> Iterator[Finding]:
    for key, scaledobjects in scaled_by_target.items():
        objects = copies_by_name(scaledobjects)
        for hpas in copies_by_name(hpas_by_target.get(key, ())):
            yield from _hpas_beside(objects[0], hpas)
        for scaled, others in with_others(objects):
            yield _two_scaledobjects(scaled, others)
    for rivals in hpas_by_target.values():
        for hpa, other_hpas in with_others(copies_by_name(rivals)):
            yield _two_hpas(hpa, other_hpas)


def _hpas_beside(scaledobjects: Sequence[SeenScaledObject], hpas: list[Hpa]) -> Iterator[Finding]:
    """Yield an HPA of a ScaledObject's target if KEDA neither made it nor takes it over.

    Args:
        scaledobjects: the copies of one ScaledObject.
        hpas: the copies of one HPA of its target.
    """
    for scaled in scaledobjects:
        for hpa in nearest_copies(scaled.origin, hpas):
            if hpa.name == scaled.takes_over:
                continue
            names = ", ".join(metric.name for metric in hpa.metrics)
            named = _name_with_file("ScaledObject", scaled, hpa)
            yield Finding(
                hpa.subject,
                f"{named} scales {hpa.kind} {hpa.target} too",
                f"add a trigger for {names} to the ScaledObject, then delete hpa {hpa.name}",
                scaled.edit,
            )


def _name_with_file(
    kind: str, scaler: Hpa | SeenScaledObject, beside: Hpa | SeenScaledObject
) -> str:
    """Return how a finding about one scaler names another one: with its file if that differs."""
    where = f" in {scaler.origin}" if scaler.origin != beside.origin else ""
    return f"{kind} {scaler.name}{where}"


def _two_scaledobjects(first: SeenScaledObject, others: Sequence[SeenScaledObject]) -> Finding:
    names = " and ".join(f"scaledobject {other.name}" for other in others)
    named = " and ".join(_name_with_file("scaledobject", other, first) for other in others)
    scale = "scales" if len(others) == 1 else "scale"
    return Finding(
        first.subject,
        f"{named} {scale} {first.kind} {first.target} too; KEDA's webhook rejects the second one",
        f"move the triggers of {names} into scaledobject {first.name}, and delete {names}",
        first.edit,
    )


def _two_hpas(first: Hpa, others: Sequence[Hpa]) -> Finding:
    names = " and ".join(f"hpa {other.name}" for other in others)
    named = " and ".join(_name_with_file("hpa", other, first) for other in others)
    scale = "scales" if len(others) == 1 else "scale"
    manifests = [hpa.manifest for hpa in (first, *others)]
    return Finding(
        first.subject,
        f"{named} {scale} {first.kind} {first.target} too",
        f"move the metrics of {names} into hpa {first.name}, and delete {names}",
        "" if first.origin else one_hpa(manifests) or "",
    )
