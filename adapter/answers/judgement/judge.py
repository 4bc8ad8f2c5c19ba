"""Decide the state of an HPA. Every surface of this project asks here.

Green stands for an HPA whose every metric has a value, whose targets are met or being answered, and
whose replicas exist. What real statuses look like:

- ``ScalingLimited`` True with ``TooFewReplicas`` or ``ScaleDownLimit`` is the usual state of a
  quiet workload (argoproj/gitops-engine pull requests 234 and 343), so it does not warn.
- ``ScalingActive`` False with ``ScalingDisabled`` is a target at 0 replicas (pull request 323).
- ``ScalingActive`` True may stand beside metrics without a value (kubernetes-sigs/metrics-server
  issue 270), and ``status.currentMetrics`` may have entries with an empty type or be null.
- While ``ScalingActive`` is False, ``currentMetrics`` keeps old values (kubernetes/kubernetes issue
  119788), so they are not shown.
- The condition ``ScaledToZero`` marks a target that the controller itself scaled to 0
  (kubernetes/kubernetes pull request 135118; on by default from Kubernetes 1.37). A target that
  somebody else scaled to 0 is not woken.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from adapter.answers.causes.cause import CauseCode
from adapter.answers.judgement.evidence import HpaEvidence
from adapter.answers.judgement.readings import MetricReading, leading_reading, readings_of
from adapter.answers.judgement.states import HpaJudgement, ScalingState
from adapter.figures import age, count
from adapter.pipeline.cluster.hpas import ShownCondition

START: Final = 600.0
"""Seconds that pods may take to start: ``progressDeadlineSeconds`` of a Deployment by default."""
CREATION: Final = 60.0
"""Seconds after which the pods of a Deployment exist, and the HPA controller has counted them."""
SYNC: Final = 300.0
"""Seconds after which an HPA controller that syncs every 15 s has surely seen an HPA."""
_MESSAGE: Final = 200
"""Characters of the controller's message."""
_COMPUTING: Final = "the HPA was unable to compute the replica count: "
"""Before each of the controller's reasons why metrics give no size."""
_PARALLEL: Final = ("Deployment", "ReplicaSet")
_ROUNDING: Final = 1e-9
"""By which a ratio of two numbers may differ from the controller's, which divides thousandths."""
_UNSEEN: Final = "KEDA scaled it there; whether a trigger can wake it was not looked at"
"""Said where the triggers were not looked at."""
_WAKING: Final = ("Object", "External")
"""Types of metrics that have a value without any pod of the target."""


def judge(evidence: HpaEvidence) -> HpaJudgement:
    """Return the state of an HPA."""
    steps = _Judge(evidence)
    return (
        steps.unsynced()
        or steps.stopped()
        or steps.at_zero()
        or steps.behind()
        or steps.overloaded()
        or steps.flawed()
        or steps.incomplete()
        or steps.moving()
        or steps.held()
        or steps.healthy()
    )


class _Judge:
    """The steps of :func:`judge`, in the order in which they are asked."""

    def __init__(self, evidence: HpaEvidence) -> None:
        hpa = evidence.hpa
        self._seen, self._hpa, self._now = evidence, hpa, evidence.now
        self._conditions = {row.type: row for row in hpa.conditions}
        self._readings = readings_of(hpa) if evidence.metrics is None else evidence.metrics
        self._size, self._wanted = hpa.current, hpa.desired
        high = 1.0 + hpa.tolerances[1] + _ROUNDING
        over = [row for row in self._readings if row.ratio is not None and row.ratio > high]
        self._exceeded = leading_reading(over) if over else None
        self._lost = [row for row in self._readings if row.value is None]
        if self._out_of_bounds:
            self._lost = []  # the controller corrects the size before it reads metrics

    # What the controller itself says

    def unsynced(self) -> HpaJudgement | None:
        """The controller has not looked yet, or not for long."""
        hpa = self._hpa
        since = hpa.created
        if hpa.conditions:
            since = self._seen.frozen_since or hpa.unseen_since
        if stopped := [
            row for row in self._seen.causes if row.code is CauseCode.CONTROLLER_STOPPED
        ]:
            text = f"stale: {stopped[0].text}"
            return HpaJudgement(ScalingState.STALE, text, since=stopped[0].since)
        if since is not None and self._now - since > SYNC:
            text = f"stale: the HPA controller has not looked at it for {age(self._now - since)}"
            return HpaJudgement(ScalingState.STALE, text, since=since)
        if not hpa.conditions:
            text = "waiting for the first sync of the HPA controller"
            return HpaJudgement(ScalingState.WAITING, text, since=hpa.created)
        return None

    def stopped(self) -> HpaJudgement | None:
        """The controller cannot decide."""
        active = self._conditions.get("ScalingActive")
        if active is not None and active.reason == "ScalingDisabled":
            return self._asleep(active)
        for row in (self._conditions.get("AbleToScale"), active):
            if row is not None and row.status != "True":
                at_size = "" if self._size is None else f" at {self._size}"
                # The controller says the same of many HPAs. Why no pod has a value differs.
                lacking = self._lacking if row is active else ""
                text = f"stuck{at_size}: {'; '.join(filter(None, (lacking, _why(row))))}"
                return HpaJudgement(ScalingState.STUCK, text, row.reason, row.since)
        return None

    @property
    def _lacking(self) -> str:
        """Why no pod has a value: the controller has one text for all."""
        pods = self._seen.pods
        if not any(row.type == "Pods" for row in self._readings):
            return ""
        if pods is None:
            return "no pod of its target has a GPU" if self._seen.without_pods else ""
        if pods.ready:
            words = pods.reasons.replace("_", " ").replace(",", ", ")
            why = f" ({words})" if words else ""
            lost = count(pods.without_value, "pod")
            return f"{lost} without a value{why}" if pods.without_value else ""
        unready = f"{count(pods.unready, 'pod')} not ready" if pods.unready else ""
        return self._cause or self._unscheduled or self._uncreated or unready

    def _asleep(self, active: ShownCondition) -> HpaJudgement:
        if self._hpa.scaled_object:
            wrong = [row for row in self._seen.causes if row.code.of_keda]
            if wrong:
                text = f"at zero: its ScaledObject {wrong[0].text}"
                return HpaJudgement(ScalingState.IMPAIRED, text, since=active.since)
            waker = "KEDA wakes it when a trigger is active"
            text = f"at zero: {waker}" if self._seen.triggers_read else f"at zero: {_UNSEEN}"
            return HpaJudgement(ScalingState.AT_ZERO, text, since=active.since)
        text = "paused at 0 replicas: the HPA wakes no target that somebody else scaled to 0"
        return HpaJudgement(ScalingState.PAUSED, text, since=active.since)

    def at_zero(self) -> HpaJudgement | None:
        """The controller scaled the target to 0, and looks at metrics that can wake it."""
        if self._size != 0 or self._wanted not in (0, None) or self._out_of_bounds:
            return None
        target = (self._hpa.kind, self._hpa.scales.name)
        described = {row.name for row in self._hpa.metrics if row.described == target}
        waking = (row.name for row in self._readings if row.type in _WAKING)
        names = [name for name in dict.fromkeys(waking) if name not in described]
        if not names:
            text = "at zero: metrics of its own pods never wake it"
            return HpaJudgement(ScalingState.IMPAIRED, text, since=self._hpa.last_scale)
        text = f"at zero: {_join_names(names)} wakes it"
        if self._lost:
            return HpaJudgement(ScalingState.INCOMPLETE, f"{text}; {self._without}")
        return HpaJudgement(ScalingState.AT_ZERO, text, since=self._hpa.last_scale)

    # Wanted against existing

    def behind(self) -> HpaJudgement | None:
        """Replicas that the HPA wants do not exist or are not ready, longer than a start takes."""
        size, wanted, pods = self._size, self._wanted, self._seen.pods
        unready = 0 if pods is None else pods.unready
        if size is None or wanted is None:
            return None
        missing = pods is not None and pods.exist is not None and pods.exist < wanted
        if size == wanted and not unready and not missing:
            return None
        since = self._hpa.last_scale if size != wanted else None
        if size == wanted and pods is not None:
            since = pods.waiting_since
        waited = "" if since is None else f" for {age(self._now - since)}"
        have = f"{size} exist" if pods is None else f"{pods.ready} ready"
        short = f"{wanted} wanted, {have}{waited}"
        because = self._because("; ")
        cause = self._cause if size <= wanted else ""
        late = since is not None and self._now - since > self._patience
        if cause or late or self._uncreated:
            why = cause or self._unscheduled or self._uncreated
            text = f"behind: {short}{f'; {why}' if why else ''}{because}"
            return HpaJudgement(ScalingState.BEHIND, text, why, since)
        if size <= wanted and self._unscheduled:
            text = f"waiting for a node: {short}; {self._unscheduled}{because}"
            return HpaJudgement(ScalingState.WAITING, text, self._unscheduled, since)
        return None

    @property
    def _uncreated(self) -> str:
        """Wanted pods that a Deployment would have created long ago; empty without any.

        The controller writes ``spec.replicas`` of the target as the current size, so a status does
        not show pods that are forbidden.
        """
        hpa, pods, wanted = self._hpa, self._seen.pods, self._wanted
        last = max((at for at in (hpa.last_scale, hpa.created) if at is not None), default=None)
        if pods is None or pods.exist is None or wanted is None or hpa.kind not in _PARALLEL:
            return ""
        if pods.exist >= wanted or last is None or self._now - last <= CREATION:
            return ""
        missing = wanted - pods.exist
        return f"{count(missing, 'pod')} {'is' if missing == 1 else 'are'} not created"

    @property
    def _cause(self) -> str:
        """Why a wanted pod will not serve without a change; empty if none is known."""
        if self._seen.causes:
            return self._seen.causes[0].text
        return "" if self._seen.pods is None else self._seen.pods.trouble

    @property
    def _patience(self) -> float:
        """Seconds for which the size may differ, or a pod may not be ready.

        A Deployment creates and deletes its pods at once; others may do so one after the other.
        """
        parallel = self._hpa.kind in _PARALLEL and self._size != self._wanted
        return CREATION if parallel else START

    @property
    def _unscheduled(self) -> str:
        pods = self._seen.pods
        if pods is None or not pods.unscheduled:
            return ""
        return f"{count(pods.unscheduled, 'pod')} without a node"

    # Value against target

    def overloaded(self) -> HpaJudgement | None:
        """A target is exceeded, and the size stays."""
        if self._exceeded is None or self._size != self._wanted or self._out_of_bounds:
            return None
        if self._seen.flaws or self._above:
            return None  # a target that does not fit is exceeded without any load
        by, since = self._holder_out()
        if not by:
            return None
        at_size = "" if self._size is None else f" at {self._size}"
        text = f"overloaded{at_size}, held by {by}{self._because(': ')}"
        return HpaJudgement(ScalingState.OVERLOADED, text, by, since)

    def _holder_out(self) -> tuple[str, float | None]:
        """Return what keeps the HPA from scaling out, and since when; empty if pods start."""
        hpa, limited = self._hpa, self._limited
        reason = "" if limited is None else limited.reason
        since = limited.since if limited is not None else hpa.last_scale
        able = self._conditions.get("AbleToScale")
        # Where the controller says that nothing limits it, a limit would change nothing.
        bounded = limited is not None or "ScalingLimited" not in self._conditions
        if reason == "TooManyReplicas" or (bounded and (hpa.desired or 0) >= hpa.high):
            most = f"maxReplicas {hpa.high}"
            return (f"{self._without_value} and {most}" if self._outweighed else most), since
        if hpa.never_out and bounded:
            return "behavior.scaleUp, which is Disabled", since
        if able is not None and able.reason in ("ScaleUpStabilized", "BackoffBoth"):
            return "the stabilization window of behavior.scaleUp", able.since
        if reason == "ScaleUpLimit":
            return "the scale rate", since
        return self._pods_hold()

    @property
    def _outweighed(self) -> bool:
        """Whether pods without a value, as 0, bring the value down to its target.

        A limit may hold the HPA beside them: what it wanted before stays for the window.
        """
        pods, over = self._seen.pods, self._exceeded
        if pods is None or over is None or over.type != "Pods" or not pods.without_value:
            return False
        counted, with_value = pods.ready + pods.unready, pods.ready - pods.without_value
        ratio = (over.ratio or 0.0) * with_value / counted
        return ratio <= 1.0 + self._hpa.tolerances[1] + _ROUNDING

    @property
    def _without_value(self) -> str:
        pods = self._seen.pods
        return "" if pods is None else f"{count(pods.without_value, 'pod')} without a value"

    def _pods_hold(self) -> tuple[str, float | None]:
        """Return which pods count as 0 on the way up; empty while the pods of a scaling start."""
        pods = self._seen.pods
        if self._scaled_lately and self._pods_start:
            return "", None
        if pods is not None and pods.unready:
            verb = "is" if pods.unready == 1 else "are"
            return f"{count(pods.unready, 'pod')} that {verb} not ready", pods.waiting_since
        if pods is not None and pods.without_value:
            return self._without_value, None
        return "pods that do not count: not ready, ending or without a value", None

    @property
    def _pods_start(self) -> bool:
        """Whether wanted pods may be on their way."""
        pods = self._seen.pods
        return pods is None or bool(pods.unready) or (pods.exist or 0) < (self._wanted or 0)

    @property
    def _scaled_lately(self) -> bool:
        last = self._hpa.last_scale
        return last is not None and self._now - last <= START

    def flawed(self) -> HpaJudgement | None:
        """A flaw of the manifest, or a cause around it, spoils what the HPA does."""
        hpa = self._hpa
        flaws = [*self._seen.flaws, *(cause.text for cause in self._seen.causes)]
        if self._above:
            flaws.insert(0, f"{self._above} owns its target, and sets the size back")
        if (pods := self._seen.pods) is not None and pods.foreign:
            flaws.append(f"its pods have the labels of those of {pods.foreign}, which count too")
        if hpa.low == hpa.high:
            flaws.append(f"minReplicas equals maxReplicas ({hpa.high}), so it never scales")
        if not flaws:
            return None
        return HpaJudgement(ScalingState.IMPAIRED, f"impaired: {flaws[0]}{self._because('; ')}")

    def incomplete(self) -> HpaJudgement | None:
        """A metric, or a pod, has no value."""
        pods = self._seen.pods
        if not self._readings:
            return HpaJudgement(ScalingState.INCOMPLETE, f"{self._move}: it reads no metric")
        if self._lost:
            return HpaJudgement(ScalingState.INCOMPLETE, f"{self._move}{self._because(': ')}")
        if pods is not None and pods.without_value:
            text = f"{self._move}{self._because(': ')}; {self._without_value}"
            return HpaJudgement(ScalingState.INCOMPLETE, text)
        return None

    # What is well

    def moving(self) -> HpaJudgement | None:
        """The size changes, or pods of the last change start."""
        size, wanted, last = self._size, self._wanted, self._hpa.last_scale
        if size is None or wanted is None:
            return None
        if size != wanted:
            state = ScalingState.SCALING_OUT if wanted > size else ScalingState.SCALING_IN
            return HpaJudgement(state, f"{self._move}{self._because(': ')}", since=last)
        if self._exceeded is None:
            return None
        text = f"scales out to {wanted}, its pods start{self._because(': ')}"
        return HpaJudgement(ScalingState.SCALING_OUT, text, since=last)

    def held(self) -> HpaJudgement | None:
        """The metrics ask for less than the size."""
        by, since = self._holder_in()
        if not by:
            return None
        at_size = "" if self._size is None else f" at {self._size}"
        return HpaJudgement(
            ScalingState.HELD, f"held{at_size} by {by}{self._because(': ')}", by, since
        )

    def _holder_in(self) -> tuple[str, float | None]:
        hpa, limited, able = self._hpa, self._limited, self._conditions.get("AbleToScale")
        if able is not None and able.reason in ("ScaleDownStabilized", "BackoffDownscale"):
            return "the stabilization window of scaling in", able.since
        reason, since = ("", None) if limited is None else (limited.reason, limited.since)
        if reason == "ScaleDownLimit":
            disabled = "behavior.scaleDown, which is Disabled"
            return (disabled if hpa.never_in else "the scale rate"), since
        if reason == "TooFewReplicas":
            return f"minReplicas {hpa.low}", since
        if reason == "TooManyReplicas":
            return f"maxReplicas {hpa.high}", since
        return "", None

    def healthy(self) -> HpaJudgement:
        """Nothing is wrong."""
        best = _best_reading(self._readings)
        above = best is not None and best.ratio is not None and best.ratio > 1
        close = ", within the tolerance" if above else ""
        text = f"{self._move}{self._because(': ')}{close}"
        return HpaJudgement(ScalingState.HEALTHY, text, since=self._hpa.last_scale)

    # Words

    @property
    def _move(self) -> str:
        size, wanted = self._size, self._wanted
        if size is not None and wanted is not None and size != wanted:
            return f"scales {'out' if wanted > size else 'in'} {size} → {wanted}"
        pods = self._seen.pods
        ready = "" if pods is None or not pods.unready else f", {pods.ready} ready"
        return "keeps its size" if size is None else f"keeps {size}{ready}"

    @property
    def _without(self) -> str:
        more = f" and {len(self._lost) - 1} more" if len(self._lost) > 1 else ""
        return f"no value of {self._lost[0].name}{more}"

    def _because(self, before: str) -> str:
        """Return the metric that is highest against its target, and those without a value."""
        best = _best_reading(self._readings)
        parts = [] if best is None else [best.words]
        if self._lost:
            parts.append(self._without)
        return f"{before}{'; '.join(parts)}" if parts else ""

    @property
    def _above(self) -> str:
        """What owns the scale target, and sets its size back."""
        return "" if self._seen.pods is None else self._seen.pods.above

    @property
    def _limited(self) -> ShownCondition | None:
        row = self._conditions.get("ScalingLimited")
        return row if row is not None and row.status == "True" else None

    @property
    def _out_of_bounds(self) -> bool:
        """The size is not one that the spec allows; 0 may be."""
        size = self._size
        return size not in (None, 0) and not self._hpa.low <= (size or 0) <= self._hpa.high


def _best_reading(readings: Sequence[MetricReading]) -> MetricReading | None:
    reading = leading_reading(readings)
    return None if reading is None or reading.ratio is None else reading


def _join_names(names: Sequence[str]) -> str:
    return " or ".join([", ".join(names[:-1]), names[-1]] if names[1:] else [*names])


def _why(row: ShownCondition) -> str:
    message = " ".join(row.message.removeprefix(_COMPUTING).split())
    line = ": ".join(part for part in (row.reason, message) if part)
    return line if len(line) <= _MESSAGE else f"{line[:_MESSAGE]}…"
