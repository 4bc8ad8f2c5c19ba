"""One sync of one HPA: ``reconcileAutoscaler`` of ``horizontal.go`` without the I/O."""

from __future__ import annotations

from dataclasses import dataclass

from adapter.hpa import behavior as rules
from adapter.hpa.behavior import Bounds, Recommendation, ScaleEvent, ScalingHistory
from adapter.hpa.conditions import Condition, Conditions, failure_of, name_of
from adapter.hpa.observation import Observation, Proposal
from adapter.hpa.podreplicas import InvalidMetricError, MetricRules, Tolerances
from adapter.hpa.replicas import propose_by
from adapter.hpa.spec import ControllerOptions, HpaSpec, MetricKind


@dataclass(frozen=True, slots=True)
class HpaState:
    """What the controller keeps of an HPA between syncs. ``HpaState()`` is a new HPA."""

    recommendations: tuple[Recommendation, ...] = ()
    ups: tuple[ScaleEvent, ...] = ()
    downs: tuple[ScaleEvent, ...] = ()
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class Decision:
    """The new size of the scale target. The new state assumes that it is carried out."""

    current: int
    """``spec.replicas`` of the scale target before the sync."""
    desired: int
    """``spec.replicas`` of the scale target after the sync."""
    reason: str
    """Why it changes, as in the event SuccessfulRescale. May be set without a change, if a limit
    or a window prevented the change."""
    conditions: tuple[Condition, ...]
    proposals: tuple[Proposal, ...]
    """One for each metric; empty if the metrics were not evaluated."""
    error: str = ""
    """Which metrics are invalid. Either nothing could be decided (ScalingActive is False, and this
    is the event FailedComputeMetricsReplicas), or the others decided (no such event)."""
    asked: int | None = None
    """The highest proposal; None if the metrics did not decide."""
    stable: int | None = None
    """The proposal after the stabilization window, before the other limits; None likewise."""

    @property
    def rescale(self) -> bool:
        """Whether the scale target must be written."""
        return self.desired != self.current


class _InvalidError(Exception):
    """The metrics do not allow a decision."""


_DISABLED = "scaling is disabled since the replica count of the target is zero"
_FAILED = {
    MetricKind.PODS: "FailedGetPodsMetric",
    MetricKind.OBJECT: "FailedGetObjectMetric",
    MetricKind.EXTERNAL: "FailedGetExternalMetric",
    MetricKind.RESOURCE: "FailedGetResourceMetric",
    MetricKind.CONTAINER: "FailedGetContainerResourceMetric",
}


def decide(
    spec: HpaSpec,
    state: HpaState,
    observation: Observation,
    now: float,
    controller: ControllerOptions | None = None,
) -> tuple[Decision, HpaState]:
    """Decide once. kube-controller-manager does so every 15 seconds.

    Args:
        state: the state that the last call returned, or ``HpaState()``.
        observation: the scale target, its pods and the metrics' values; as many values as
            ``spec.metrics``.
        now: epoch seconds; never less than at the last call.
        controller: kube-controller-manager's flags; None for its defaults.

    Returns:
        The decision, and the state to pass next time.

    Raises:
        ValueError: the number of values differs from that of ``spec.metrics``.
    """
    if len(observation.values) != len(spec.metrics):
        raise ValueError(
            f"{len(observation.values)} values for {len(spec.metrics)} metrics: "
            "give one entry for each of spec.metrics, Missing if there is no value"
        )
    return _Sync(spec, state, observation, now, controller or ControllerOptions()).run()


class _Sync:
    """One run of the controller's reconcile function."""

    def __init__(
        self,
        spec: HpaSpec,
        state: HpaState,
        observation: Observation,
        now: float,
        controller: ControllerOptions,
    ) -> None:
        self.spec = spec
        self.observation = observation
        self.now = now
        self.controller = controller
        self.conditions = Conditions(state.conditions, now)
        past = state.recommendations or (Recommendation(observation.replicas, now),)
        self.history = ScalingHistory(past, state.ups, state.downs)
        self.proposals: tuple[Proposal, ...] = ()
        self.from_zero = controller.scale_to_zero and self.conditions.holds("ScaledToZero")
        beyond = (MetricKind.OBJECT, MetricKind.EXTERNAL)
        self.beyond_pods = any(metric.kind in beyond for metric in spec.metrics)
        self.asked: int | None = None
        self.stable: int | None = None

    def run(self) -> tuple[Decision, HpaState]:
        self.conditions.set(
            "AbleToScale",
            True,
            "SucceededGetScale",
            "the HPA controller was able to get the target's current scale",
        )
        current, low, high = (
            self.observation.replicas,
            self.spec.min_replicas,
            self.spec.max_replicas,
        )
        if current == 0 and not (self.from_zero and (low != 0 or self.beyond_pods)):
            self.conditions.set("ScalingActive", False, "ScalingDisabled", _DISABLED)
            if not self.controller.scale_to_zero:
                self.conditions.remove("ScaledToZero")
            return self._outcome(0, "")
        if current > high:
            return self._outcome(high, "Current number of replicas above Spec.MaxReplicas")
        if 0 < current < low:
            return self._outcome(low, "Current number of replicas below Spec.MinReplicas")
        try:
            return self._decide_by_metrics()
        except _InvalidError as error:
            return self._outcome(current, "", str(error))

    def _decide_by_metrics(self) -> tuple[Decision, HpaState]:
        current = self.observation.replicas
        highest, metric, error = self._ask_metrics()
        wanted = self.asked = max(highest, 0)
        reason = ""
        if wanted > current:
            reason = f"{metric} above target"
        elif wanted < current:
            reason = "All metrics below target"
        desired = self._normalize(wanted)
        if current == 0 and self.from_zero and desired < self.spec.min_replicas:
            desired = self.spec.min_replicas
            reason = reason or "Current number of replicas below Spec.MinReplicas"
        return self._outcome(desired, reason, error)

    def _ask_metrics(self) -> tuple[int, str, str]:
        """computeReplicasForMetrics: the highest proposal, its metric, and what went wrong."""
        current = self.observation.replicas
        tolerances = Tolerances.of(self.spec.behavior, self.controller.tolerance)
        rules_of_metric = MetricRules(tolerances, self.controller, self.now)
        highest, chosen, failure = 0, "", ("", "", "")
        proposals: list[Proposal] = []
        for metric, values in zip(self.spec.metrics, self.observation.values, strict=True):
            name = name_of(metric)
            try:
                replicas, usage, working, _ = propose_by(
                    metric, values, self.observation, self.spec.namespace, rules_of_metric
                )
            except InvalidMetricError as error:
                proposals.append(Proposal(name, None, None, str(error)))
                if not failure[0]:
                    failure = (_FAILED[metric.kind], failure_of(metric, str(error)), str(error))
                continue
            proposals.append(Proposal(name, replicas, usage, working=working))
            if highest == 0 or replicas > highest:
                highest, chosen = replicas, name
        self.proposals = tuple(proposals)
        invalid = sum(proposal.replicas is None for proposal in proposals)
        code, full, text = failure
        message = (
            f"invalid metrics ({invalid} invalid out of {len(proposals)}), first error is: {full}"
            if invalid
            else ""
        )
        if invalid >= len(proposals) or (invalid and highest < current):
            unable = f"the HPA was unable to compute the replica count: {text}"
            self.conditions.set("ScalingActive", False, code, unable)
            raise _InvalidError(message)
        self.conditions.set(
            "ScalingActive",
            True,
            "ValidMetricFound",
            f"the HPA was able to successfully calculate a replica count from {chosen}",
        )
        return highest, chosen, message

    def _normalize(self, wanted: int) -> int:
        current, now = self.observation.replicas, self.now
        bounds = Bounds(self.spec.min_replicas, self.spec.max_replicas)
        behavior = self.spec.behavior
        past = self.history.recommendations
        default_window = self.controller.downscale_stabilization
        if behavior is None:
            stable, recent = rules.stabilize_plain(past, wanted, default_window, now)
            limited = rules.limit_plain(current, stable.replicas, bounds)
        else:
            down = behavior.scale_down.window
            windows = (behavior.scale_up.window or 0.0, default_window if down is None else down)
            stable, recent = rules.stabilize(past, current, wanted, windows, now)
            rate = rules.rate_bounds(self.history, behavior, current, now)
            limited = rules.limit(current, stable.replicas, rate, bounds)
        self.history = self.history._replace(recommendations=recent)
        self.stable = stable.replicas
        self.conditions.set("AbleToScale", True, stable.reason, stable.message)
        is_limited = limited.replicas != stable.replicas
        self.conditions.set("ScalingLimited", is_limited, limited.reason, limited.message)
        return limited.replicas

    def _outcome(self, desired: int, reason: str, error: str = "") -> tuple[Decision, HpaState]:
        current = self.observation.replicas
        if desired != current:
            self._record_rescale(desired)
        history = rules.record(self.history, self.spec.behavior, current, desired, self.now)
        conditions = self.conditions.rows()
        state = HpaState(history.recommendations, history.ups, history.downs, conditions)
        decision = Decision(
            current,
            desired,
            reason,
            conditions,
            self.proposals,
            error,
            asked=self.asked,
            stable=self.stable,
        )
        return decision, state

    def _record_rescale(self, desired: int) -> None:
        self.conditions.set(
            "AbleToScale",
            True,
            "SucceededRescale",
            f"the HPA controller was able to update the target scale to {desired}",
        )
        if not self.controller.scale_to_zero:
            self.conditions.remove("ScaledToZero")
            return
        to_zero = desired == 0 and self.spec.min_replicas == 0 and self.beyond_pods
        self.conditions.set(
            "ScaledToZero",
            to_zero,
            "ScaledToZero" if to_zero else "NotScaledToZero",
            "the HPA controller scaled the workload to zero"
            if to_zero
            else "the HPA controller did not scale the workload to zero",
        )
