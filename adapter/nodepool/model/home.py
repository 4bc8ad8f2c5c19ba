"""The namespaces that headroom objects are in.

Room on a node serves pods of every namespace, so all headroom is in the controller's own, where
alone its account may write. ResourceClaimTemplates (DRA) are read from the namespace of the pod
that names them: headroom with claims has to be there, in namespaces that the operator has named.
"""

from __future__ import annotations

from dataclasses import dataclass

from adapter.nodepool.model.shape import Shape


@dataclass(frozen=True, slots=True)
class Home:
    """Where headroom is written, and believed."""

    namespace: str
    """The controller's own."""
    claim_namespaces: frozenset[str] = frozenset()
    """Namespaces of workloads that may have headroom with claims."""

    def of(self, namespace: str, shape: Shape) -> str:
        """The namespace of the headroom for a workload's namespace."""
        return namespace if shape.claims else self.namespace

    def problem(self, found_in: str, namespace: str, shape: Shape) -> str:
        """Why headroom is not in its place; empty where it is."""
        if shape.claims and namespace not in self.claim_namespaces:
            return f"nodepool.claim_namespaces does not list namespace {namespace}"
        place = self.of(namespace, shape)
        if found_in == place:
            return ""
        return f"headroom for workloads of {namespace} is in {place} (nodepool.namespace)"
