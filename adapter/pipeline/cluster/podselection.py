"""The pods that a selector matches, of those that the tools have read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from adapter.pipeline.cluster.podobjects import SeenPod
from adapter.pipeline.cluster.workloadobjects import SeenWorkload
from apiservice.labels.manifest import selector_text
from apiservice.labels.selector import Selector, parse


def selector_of(workload: SeenWorkload) -> Selector | None:
    """Return the selector of a workload; None if the API server rejects it."""
    try:
        return parse(selector_text(msgspec.to_builtins(workload.spec.selector)))
    except ValueError:
        return None


class PodSelection:
    """Finds pods by namespace and labels without looking at each pod of the cluster."""

    def __init__(self, pods: Iterable[SeenPod]) -> None:
        self._of: dict[str, list[SeenPod]] = {}
        """By namespace."""
        for pod in pods:
            self._of.setdefault(pod.pod.ref.namespace, []).append(pod)
        self._having: dict[tuple[str, str], dict[str, list[SeenPod]]] = {}
        """Namespace and key of a label -> its value -> pods; made on first use."""

    def within(self, namespace: str) -> Sequence[SeenPod]:
        """Return the pods of a namespace."""
        return self._of.get(namespace, ())

    def select(self, namespace: str, selector: Selector | None) -> list[SeenPod]:
        """Return the unfinished pods of a namespace that a selector matches; none if it is empty,
        as the HPA controller has it."""
        if selector is None or selector.empty:
            return []
        candidates = self.within(namespace)
        for key, op, values in selector.requirements:
            if op in ("=", "==", "in") and len(values) == 1:
                having = self._by_value(namespace, key).get(values[0], ())
                candidates = min(candidates, having, key=len)
        return [
            pod for pod in candidates if not pod.pod.finished and selector.matches(pod.pod.labels)
        ]

    def of_workload(self, workload: SeenWorkload) -> list[SeenPod]:
        """Return the unfinished pods that a workload selects."""
        return self.select(workload.metadata.namespace, selector_of(workload))

    def _by_value(self, namespace: str, key: str) -> dict[str, list[SeenPod]]:
        by_value = self._having.get((namespace, key))
        if by_value is None:
            by_value = self._having[namespace, key] = {}
            for pod in self.within(namespace):
                value = pod.pod.labels.get(key)
                if value is not None:
                    by_value.setdefault(value, []).append(pod)
        return by_value
