"""What an HPA scales: the workload and its pods."""

from __future__ import annotations

from adapter.doctor.facts import Facts, Hpa
from adapter.doctor.objects import LabelSelector, SeenPod, SeenWorkload
from apiservice.labels.selector import Selector, SelectorError, parse


def target_of(facts: Facts, hpa: Hpa) -> SeenWorkload | None:
    """Return what an HPA scales, if it was read."""
    return next(
        (
            each
            for each in facts.workloads.read()
            if each.kind == hpa.kind
            and each.metadata.namespace == hpa.namespace
            and each.metadata.name == hpa.target
        ),
        None,
    )


def selector_of(selector: LabelSelector) -> Selector | None:
    """Return a manifest's label selector; None if it cannot be read."""
    terms = [f"{key}={value}" for key, value in selector.match_labels.items()]
    for row in selector.match_expressions:
        key, operator = str(row.get("key", "")), row.get("operator")
        values = ",".join(map(str, row.get("values") or ()))
        forms = {
            "In": f"{key} in ({values})",
            "NotIn": f"{key} notin ({values})",
            "Exists": key,
            "DoesNotExist": f"!{key}",
        }
        if operator not in forms:
            return None
        terms.append(forms[str(operator)])
    try:
        return parse(",".join(terms))
    except SelectorError:
        return None


def pods_of(facts: Facts, workload: SeenWorkload) -> list[SeenPod]:
    """Return the unfinished pods that a workload selects."""
    selector = selector_of(workload.spec.selector)
    if selector is None:
        return []
    namespace = workload.metadata.namespace
    return [
        each
        for each in facts.pods.read()
        if each.pod.ref.namespace == namespace
        and not each.pod.finished
        and selector.matches(each.pod.labels)
    ]
