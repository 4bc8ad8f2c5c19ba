"""Cached answers of a snapshot: how long each one holds, and how many are kept.

An answer takes about 2 kB, and 10,000 pods with 40 metrics would take 800 MB.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from adapter.pipeline.attribution.nodecontext import ClusterContext, Stamp
from adapter.pipeline.attribution.reading import Absence, Reading
from adapter.pipeline.cluster.pod import Pod
from apiservice.labels.selector import Selector

_MAX_ANSWERS: Final = 4096
"""Minimum number of cached answers per snapshot; they are dropped with it."""
_ANSWERS_PER_EXPORTER: Final = 8
"""Minimum number of cached answers per exporter."""
_ANSWERS_PER_POD: Final = 4
"""Cached answers for each pod that is named; above the minimum, they are the limit."""

_LARGEST_SELECTOR: Final = 4096
"""Longest selector, in bytes, whose answer is cached.

Clients choose selectors, and one of the maximum length takes 100 kB.
"""


class CachedAnswer(NamedTuple):
    """An answer, and what ends it."""

    value: Reading | Absence
    pod: Pod | None
    since: float
    """Epoch seconds, as ``until``."""
    until: float
    stamp: Stamp | None
    """The stamp that also ends it, if the pod shares devices."""

    def holds(self, pod: Pod | None, now: float, cluster: ClusterContext) -> bool:
        """Return whether it still is the answer about a pod; the pod is None for a node."""
        if self.pod is not pod or not self.since <= now < self.until:
            return False
        return self.stamp is None or pod is None or self.stamp == cluster.stamp(pod.node)


def cached_answer(
    value: Reading | Absence, pod: Pod | None, now: float, stamp: Stamp | None
) -> CachedAnswer:
    """Return an answer that holds from now until it expires."""
    return CachedAnswer(value, pod, now, value.expires, stamp)


def is_cacheable(selector: Selector) -> bool:
    """Return whether answers with a selector may be cached."""
    return selector.bytes <= _LARGEST_SELECTOR


def snapshot_limit(pods: int = 0) -> int:
    """Return how many answers a snapshot caches whose samples name a number of pods."""
    return max(_MAX_ANSWERS, _ANSWERS_PER_POD * pods)


def exporter_limit(pods: int) -> int:
    """Return how many answers are cached for an exporter that names a number of pods."""
    return max(_ANSWERS_PER_EXPORTER, _ANSWERS_PER_POD * pods)
