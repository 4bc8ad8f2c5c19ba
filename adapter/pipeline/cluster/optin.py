"""Labels and annotations with which a pod opts in to having its own page scraped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from adapter.pipeline.cluster.pod import Pod

PREFIX: Final = "gpu-metrics-adapter.io/"
"""Prefix of this project's labels and annotations: ``scrape``, ``port``, ``path``, ``scheme``."""


def has_opted_in(pod: Pod) -> bool:
    """Return whether the pod opts in with this project's labels or annotations."""
    return says_yes(words_under(pod, PREFIX))


def words_under(pod: Pod, prefix: str) -> dict[str, str]:
    """Return the pod's labels and annotations under a prefix; annotations take precedence."""
    return {
        key.removeprefix(prefix): value
        for words in (pod.labels, pod.annotations)
        for key, value in words.items()
        if key.startswith(prefix)
    }


def says_yes(words: Mapping[str, str]) -> bool:
    """Return whether the words under a prefix ask for the pod's page to be scraped."""
    return words.get("scrape", "").lower() == "true"
