"""The HorizontalPodAutoscaler's algorithm, autoscaling/v2, as a pure function.

It decides what kube-controller-manager 1.37 decides (``pkg/controller/podautoscaler/horizontal.go``
and ``replica_calculator.go`` of k8s.io/kubernetes v1.37.2). It has no clock and no I/O: the caller
observes, :func:`decide` returns the number of replicas, and the caller scales.

    spec = from_manifest(yaml.safe_load(text))
    state = HpaState()
    decision, state = decide(spec, state, Observation(replicas, pods, (values,)), now)

Metrics of every type are covered: Pods, Object, External, Resource and ContainerResource.
"""

from adapter.hpa.behavior import Recommendation, ScaleEvent
from adapter.hpa.conditions import Condition
from adapter.hpa.decision import Decision, HpaState, decide
from adapter.hpa.manifest import from_manifest
from adapter.hpa.manifestfields import ManifestError
from adapter.hpa.observation import (
    Missing,
    Observation,
    PodState,
    Proposal,
    ResourceSample,
    ResourceUsage,
    Rule,
    Values,
    Working,
)
from adapter.hpa.spec import (
    Behavior,
    ControllerOptions,
    DescribedObject,
    HpaSpec,
    MetricKind,
    MetricSpec,
    MetricTarget,
    PolicyKind,
    Rules,
    ScalingPolicy,
    Select,
    TargetKind,
)

__all__ = [
    "Behavior",
    "Condition",
    "ControllerOptions",
    "Decision",
    "DescribedObject",
    "HpaSpec",
    "HpaState",
    "ManifestError",
    "MetricKind",
    "MetricSpec",
    "MetricTarget",
    "Missing",
    "Observation",
    "PodState",
    "PolicyKind",
    "Proposal",
    "Recommendation",
    "ResourceSample",
    "ResourceUsage",
    "Rule",
    "Rules",
    "ScaleEvent",
    "ScalingPolicy",
    "Select",
    "TargetKind",
    "Values",
    "Working",
    "decide",
    "from_manifest",
]
