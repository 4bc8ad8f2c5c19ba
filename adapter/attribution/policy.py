"""What a pod is given of a device that several pods share (gpu-telemetry, section 3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase

from apiservice.labels.selector import EVERYTHING, Selector


class SharingPolicy(StrEnum):
    """What becomes of a shared device's value. What was accounted per process stays exact."""

    COPY = "copy"
    """Every sharer gets the device's value: never too low, so safe for scaling up."""
    EQUAL = "equal"
    """Every sharer gets the same part."""
    MEMORY = "memory"
    """Every sharer gets a part by the memory that it uses or, where that is not known of
    all of them, has asked for."""
    EXACT = "exact"
    """What is not accounted per process is left out."""


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """A policy for the pods of some namespaces on some nodes."""

    policy: SharingPolicy
    namespaces: tuple[str, ...] = ()
    """Shell patterns; empty means all."""
    nodes: Selector = EVERYTHING
    """Over the labels of the pod's node."""

    def applies(self, namespace: str, node: Mapping[str, str]) -> bool:
        """Whether the rule is about pods of ``namespace`` on a node with these labels."""
        if self.namespaces and not any(fnmatchcase(namespace, n) for n in self.namespaces):
            return False
        return self.nodes.matches(node)


@dataclass(frozen=True, slots=True)
class SharingOptions:
    """How shared devices are attributed."""

    policy: SharingPolicy = SharingPolicy.COPY
    """Where no rule applies."""
    rules: tuple[PolicyRule, ...] = ()
    """The first that applies is taken."""
    normalized: bool = False
    """Engine activity of MIG instances is put in relation to what their profile allows."""

    def of(self, namespace: str, node: Mapping[str, str]) -> SharingPolicy:
        """The policy for a pod.

        Args:
            namespace: the pod's.
            node: the labels of its node; empty where they are not known.
        """
        for rule in self.rules:
            if rule.applies(namespace, node):
                return rule.policy
        return self.policy
