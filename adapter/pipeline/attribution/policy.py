"""The sharing policies, and the rules that choose one for a pod; `split` applies it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase

from apiservice.labels.selector import EVERYTHING, Selector


class SharingPolicy(StrEnum):
    """How a shared device's value is divided. Values accounted per process stay exact."""

    COPY = "copy"
    """Every pod gets the device's value. It is never too low, so it is safe for scaling up."""
    EQUAL = "equal"
    """Every pod gets the same part."""
    MEMORY = "memory"
    """Every pod gets a part in proportion to the memory that it uses.

    If that is not known for all pods, the memory that they request is used.
    """
    EXACT = "exact"
    """A value that is not accounted per process is left out."""


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """A policy for the pods of some namespaces on some nodes."""

    policy: SharingPolicy
    namespaces: tuple[str, ...] = ()
    """Shell patterns; empty means all."""
    nodes: Selector = EVERYTHING
    """Matched against the labels of the pod's node."""

    def applies(self, namespace: str, node: Mapping[str, str]) -> bool:
        """Return whether the rule covers pods of ``namespace`` on a node with these labels."""
        if self.namespaces and not any(fnmatchcase(namespace, n) for n in self.namespaces):
            return False
        return self.nodes.matches(node)


@dataclass(frozen=True, slots=True)
class SharingOptions:
    """How the values of shared devices are attributed."""

    policy: SharingPolicy = SharingPolicy.COPY
    """The policy if no rule applies."""
    rules: tuple[PolicyRule, ...] = ()
    """The first rule that applies determines the policy."""
    normalized: bool = False
    """Divide the engine activity of MIG instances by the maximum of their profile."""

    def of(self, namespace: str, node: Mapping[str, str]) -> SharingPolicy:
        """Return the policy for a pod.

        Args:
            namespace: the pod's.
            node: the labels of its node; empty if they are not known.
        """
        for rule in self.rules:
            if rule.applies(namespace, node):
                return rule.policy
        return self.policy
