"""Labels and annotations by which a pod asks for its own page to be scraped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from adapter.cluster.pod import Pod

PREFIX: Final = "gpu-metrics-adapter.io/"
"""Of our own labels and annotations: ``scrape``, ``port``, ``path``, ``scheme``."""


def opted_in(pod: Pod) -> bool:
    """The pod asks, in this project's own words, for its page to be read."""
    return says_yes(words_under(pod, PREFIX))


def words_under(pod: Pod, prefix: str) -> dict[str, str]:
    """What the pod's labels, and above them its annotations, say under a prefix."""
    return {
        key.removeprefix(prefix): value
        for words in (pod.labels, pod.annotations)
        for key, value in words.items()
        if key.startswith(prefix)
    }


def says_yes(words: Mapping[str, str]) -> bool:
    """The words under a prefix ask for the pod's page to be scraped."""
    return words.get("scrape", "").lower() == "true"
