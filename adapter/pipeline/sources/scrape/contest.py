"""Compare the exporters of a node by whether their pages name pods."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Final

from adapter.pipeline.cluster.index import PodIndex
from adapter.pipeline.exposition.podlabels import workload
from adapter.pipeline.exposition.samples import Sample
from adapter.pipeline.sources.scrape.discovery import ScrapeTargets
from adapter.pipeline.sources.scrape.target import ScrapeTarget

_NAMED_AFTER: Final = 60.0
"""Seconds from a pod's creation after which an exporter names it: until then, it may start."""
_COMPARED: Final = 1024
"""Label sets of a page in which a pod is looked for."""


class ExporterContest:
    """Notes for the selection what pages of exporters show, where another could take over.

    Args:
        pods: the known pods; None if there are only fixed targets.
        clock: epoch seconds.
    """

    def __init__(
        self, targets: ScrapeTargets, pods: PodIndex | None, clock: Callable[[], float]
    ) -> None:
        self._targets, self._pods, self._clock = targets, pods, clock

    def note(self, target: ScrapeTarget, samples: Sequence[Sample]) -> None:
        """Note the samples of a page. This may end the scraping of its target."""
        if target.serves or target.pod is None or not self._targets.is_contested(target.pod):
            return
        names_pods = _name_pods(samples)
        if names_pods or self._hold_gpus(target.node):
            self._targets.note_page(target.pod, names_pods=names_pods)

    def _hold_gpus(self, node: str | None) -> bool:
        """Return whether a pod has held a GPU of the node for so long that a page names it."""
        started = self._clock() - _NAMED_AFTER
        pods = self._pods.on_node(node) if self._pods is not None and node else ()
        return any(pod.holds_gpu and pod.phase == "Running" and pod.born < started for pod in pods)


def _name_pods(samples: Sequence[Sample]) -> bool:
    """Return whether a sample of an exporter's page names a pod."""
    sets = {id(sample.labels): sample.labels for sample in samples}
    return any(
        workload(labels, direct=True)[0] is not None for labels in islice(sets.values(), _COMPARED)
    )
