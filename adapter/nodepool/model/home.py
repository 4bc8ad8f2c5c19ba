"""The namespaces of headroom objects.

Free capacity of a node serves pods of every namespace, so all headroom is in the controller's own
namespace, the only one that its ServiceAccount may write to. DRA reads ResourceClaimTemplates from
the namespace of the pod, so headroom with claims must be in the namespace of the workload. The
operator lists the namespaces in which it is allowed.
"""

from __future__ import annotations

from dataclasses import dataclass

from adapter.nodepool.model.shape import Shape


@dataclass(frozen=True, slots=True)
class Home:
    """The namespaces in which headroom is written and trusted."""

    namespace: str
    """The controller's own namespace."""
    claim_namespaces: frozenset[str] = frozenset()
    """Namespaces of workloads that may have headroom with claims."""

    def of(self, namespace: str, shape: Shape) -> str:
        """Return the namespace of the headroom for a workload's namespace."""
        return namespace if shape.claims else self.namespace

    def problem(self, found_in: str, namespace: str, shape: Shape) -> str:
        """Return why headroom is in the wrong namespace; empty if it is in the right one."""
        if shape.claims and namespace not in self.claim_namespaces:
            return f"nodepool.claim_namespaces does not list namespace {namespace}"
        place = self.of(namespace, shape)
        if found_in == place:
            return ""
        return f"headroom for workloads of {namespace} must be in {place} (nodepool.namespace)"
