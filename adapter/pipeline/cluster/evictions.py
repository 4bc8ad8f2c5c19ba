"""What an eviction of a pod depends on: PodDisruptionBudgets and annotations of pods and nodes.

Karpenter empties no node with a pod that a budget protects or that is annotated
``karpenter.sh/do-not-disrupt`` (kubernetes-sigs/karpenter ``pkg/controllers/disruption``); the
cluster autoscaler none with a pod that is annotated ``safe-to-evict: "false"`` or has no controller
(kubernetes/autoscaler FAQ, "What types of pods can prevent CA from removing a node?").
"""

from __future__ import annotations

from typing import Final

import msgspec

from adapter.pipeline.cluster.objects import KubeObject, Meta
from adapter.pipeline.cluster.podobjects import DO_NOT_DISRUPT
from adapter.pipeline.cluster.workloadobjects import LabelSelector
from apiservice.labels.manifest import selector_text
from apiservice.labels.selector import Selector, parse

BUDGETS: Final = "/apis/policy/v1/poddisruptionbudgets"
UNSPACED_EVENTS: Final = "/api/v1/namespaces/default/events"
"""Events about objects without a namespace, such as nodes."""
KEEPING_NODE: Final = {
    DO_NOT_DISRUPT: "true",
    "cluster-autoscaler.kubernetes.io/scale-down-disabled": "true",
}
"""Annotation of a node -> the value with which an autoscaler leaves the node alone."""
KARPENTERS: Final = ("karpenter.sh/nodepool", "karpenter.sh/provisioner-name")
"""Labels of the nodes that Karpenter has ordered."""


class _BudgetSpec(KubeObject, msgspec.Struct, frozen=True):
    selector: LabelSelector | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    unhealthy_pod_eviction_policy: str = "IfHealthyBudget"


class _BudgetStatus(KubeObject, msgspec.Struct, frozen=True):
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0


class SeenBudget(KubeObject, msgspec.Struct, frozen=True):
    """A PodDisruptionBudget of ``policy/v1``."""

    metadata: Meta = Meta()
    spec: _BudgetSpec = _BudgetSpec()
    status: _BudgetStatus = _BudgetStatus()

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def selector(self) -> Selector | None:
        """The pods that it is about; None for none. An empty selector matches every pod."""
        if self.spec.selector is None:
            return None
        try:
            return parse(selector_text(msgspec.to_builtins(self.spec.selector)))
        except ValueError:
            return None

    @property
    def closed(self) -> bool:
        """Whether it allows no eviction of a healthy pod now."""
        return self.status.expected_pods > 0 and self.status.disruptions_allowed < 1

    @property
    def never_opens(self) -> bool:
        """Whether it allows none even while all of its pods are healthy."""
        return self.closed and self.status.desired_healthy >= self.status.expected_pods

    @property
    def rule(self) -> str:
        """What it asks for, in words: ``minAvailable 1``."""
        if self.spec.max_unavailable is not None:
            return f"maxUnavailable {self.spec.max_unavailable}"
        return f"minAvailable {1 if self.spec.min_available is None else self.spec.min_available}"

    def protects(self, *, ready: bool) -> bool:
        """Return whether it refuses the eviction of one of its pods.

        Args:
            ready: whether the pod is. One that is not may go if the others are enough
                (``IfHealthyBudget``), or in any case (``AlwaysAllow``).
        """
        if not self.closed:
            return False
        status = self.status
        enough = 0 < status.desired_healthy <= status.current_healthy
        always = self.spec.unhealthy_pod_eviction_policy == "AlwaysAllow"
        return ready or not (always or enough)
