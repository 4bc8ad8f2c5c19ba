"""The answers to a trigger: its metric and target, its current value, whether it is active.

Independent of gRPC. Everything is answered from memory, so no call waits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol

from adapter.answers.api.aggregate import PodValue, describe_missing, pool_latencies, reading_step
from adapter.answers.keda.demand import Standing, demand, number
from adapter.answers.keda.errors import BadTrigger, NoReadings
from adapter.answers.keda.scaledobjects import ScaledObjects
from adapter.answers.keda.trigger import Ref, Trigger
from adapter.answers.keda.triggerpods import TriggerPods
from adapter.answers.keda.triggers import AnswerVersion, Entry, TriggerAnswer, Triggers
from adapter.answers.promises.ratios import PodQuestion, PromisedRatios
from adapter.pipeline.attribution.reading import Absence, Reading
from adapter.pipeline.attribution.values import NOT_SELECTED, UNREAD
from adapter.pipeline.catalog.metric import Kind, Scope
from adapter.pipeline.catalog.names import Names
from adapter.pipeline.cluster.lookup import ObjectLookup
from adapter.pipeline.cluster.pod import Pod
from adapter.pipeline.devices.assignment import Mismatch
from adapter.pipeline.store.snapshot import Snapshot
from apiservice.runtime.steps import Steps

_STEP: Final = 4
"""Pods, or their devices and servers, that are examined in one step."""

_LONGEST_NAME: Final = 253
"""The longest name of a Kubernetes object, in characters."""


class Spec(NamedTuple):
    """What KEDA needs to configure the HPA's metric."""

    metric: str
    """In lower case, because the HPA requests external metrics so."""
    target: float


class PodValues(NamedTuple):
    """What is known about some pods."""

    values: Sequence[float]
    others: Sequence[PodValue]
    """Pods without a value; finished and deleted ones are left out."""
    foreign: int
    """Pods that the metric cannot be about."""
    until: float
    """Epoch seconds at which the oldest value may reach the age limit."""


class Survey(NamedTuple):
    """What is known about a trigger's pods."""

    standing: Standing | None
    """None if there are no pods. Pods without a value may be busy."""
    until: float
    """Epoch seconds at which it expires, unless something changes before."""


class ScalerValues(Protocol):
    """The current values."""

    @property
    def snapshot(self) -> Snapshot:
        """The values at this point in time."""

    @property
    def version(self) -> int:
        """A number that grows with every change of the values."""


class Options(NamedTuple):
    """Time limits, in seconds."""

    patience: Callable[[], float]
    """How long after it became ready a pod may be without samples before it counts as missing.
    This is the age limit, which is enough for a reading and a scrape."""
    stale_after: float
    """Silence of the API server after which "there are no pods" is not trusted."""
    hold: float = 0.0
    """How long an answer is reused although values change. A large fleet brings a page every few
    milliseconds, and each would invalidate all answers. Changed pods and values at the age limit
    invalidate it at once."""


class Scaler:
    """Answers triggers from memory.

    Args:
        catalog: the metrics.
        values: their values.
        objects: the pods.
        targets: what ScaledObjects scale; None if they are not watched.
        ratios: answers questions about pods.
    """

    def __init__(
        self,
        catalog: Names,
        values: ScalerValues,
        objects: ObjectLookup,
        targets: ScaledObjects | None,
        options: Options,
        ratios: PromisedRatios | None = None,
    ) -> None:
        self._catalog = catalog
        self._values = values
        self._objects = objects
        self._ratios = ratios or PromisedRatios(objects.pod_index)
        self._pods = TriggerPods(objects.pod_index, targets, options.stale_after)
        self._patience, self._hold = options.patience, options.hold
        self._triggers = Triggers()

    def spec(self, ref: Ref) -> Spec:
        """Return the metric and its target, from the metadata alone.

        Raises:
            BadTrigger: see there.
        """
        trigger = self._entry(ref).trigger
        return Spec(trigger.metric.lower(), trigger.target)

    def answer_trigger(self, ref: Ref, now: float, *, newest: bool = False) -> Steps[TriggerAnswer]:
        """Return the value, and whether the trigger is active. Without pods it is 0 and inactive.

        All values are those of one point in time.

        Args:
            ref: the trigger.
            now: epoch seconds.
            newest: ignore a cached answer.

        Raises:
            ScalerError: one of its subclasses. Failures are not cached.
        """
        entry = self._entry(ref)
        state = AnswerVersion(self._values.version, self._objects.version + self._pods.version)
        answer = entry.recall(state, now, 0.0 if newest else self._hold)
        if answer is None:
            survey = yield from self._survey(entry.trigger, ref, now)
            answer = _answer(entry.trigger, survey)
            entry.remember(answer, state, now)
        return answer

    def _survey(self, trigger: Trigger, ref: Ref, now: float) -> Steps[Survey]:
        snapshot = self._values.snapshot
        pods = yield from self._pods.find_pods(trigger, ref)
        look = yield from self._look(trigger, pods, snapshot, now)
        if look.others:
            return (yield from self._sort(trigger, look, now))
        if look.values:
            return Survey(Standing(look.values), look.until)
        if look.foreign:
            raise NoReadings(
                f"{trigger.metric}: none of {look.foreign} pods holds a GPU by its spec; "
                f"correct podSelector or the pods' resource limits"
            )
        self._pods.check_silence(now)
        return Survey(None, until=now)  # the API server may fall silent without a change

    def _look(
        self, trigger: Trigger, pods: Sequence[Pod], snapshot: Snapshot, now: float
    ) -> Steps[PodValues]:
        metric = self._catalog.metrics[trigger.metric]
        of_servers = metric.scope is Scope.SERVER
        question = PodQuestion(metric, trigger.devices, snapshot, now)
        about = yield from self._ratios.about(pods, question)
        values: list[float] = []
        others: list[PodValue] = []
        pod_values: list[PodValue] = []
        foreign, until = 0, float("inf")
        step = reading_step(metric, _STEP)
        for pod in pods:
            work = 1
            if not (pod.finished or pod.deleting):
                if of_servers or pod.may_hold_gpu:
                    pod_values.append(PodValue(pod, about(pod)))
                    work = pod_values[-1].value.extent
                else:
                    foreign += 1
            if step.spent(work):
                yield
        if metric.kind is Kind.HISTOGRAM:
            options = snapshot.options
            pod_values = list(
                (yield from pool_latencies(pod_values, metric, trigger.aggregate, options))
            )
        for position, (pod, value) in enumerate(pod_values, 1):
            if position % _STEP == 0:
                yield
            if isinstance(value, Reading):
                values.append(value.value)
                until = min(until, value.expires)
            else:
                others.append(PodValue(pod, value))
        return PodValues(values, others, foreign, until)

    def _sort(self, trigger: Trigger, look: PodValues, now: float) -> Steps[Survey]:
        values, others, _, until = look
        lacking: list[PodValue] = []
        starting = unready = pending = 0
        for position, other in enumerate(others, 1):
            if position % _STEP == 0:
                yield
            reason = other.value.reason if isinstance(other.value, Absence) else ""
            if other.pod.phase == "Pending":
                pending += 1
            elif reason in (Mismatch.NOT_READY, Mismatch.NOT_RUNNING):
                unready += 1
            elif reason in UNREAD and self._starts(other.pod, now):
                starting += 1
                until = min(until, _ready_since(other.pod) + self._patience())
            elif reason != NOT_SELECTED:
                lacking.append(other)
        if lacking:
            raise NoReadings(
                f"{trigger.metric}: {describe_missing(lacking, len(values) + len(lacking))}"
            )
        if not values:
            reason = _nobody(len(others), starting, unready + pending)
            raise NoReadings(f"{trigger.metric}: {reason}")
        return Survey(Standing(values, starting, unready, pending), until)

    def _starts(self, pod: Pod, now: float) -> bool:
        """Return whether a pod became ready so recently that it cannot have a value yet.

        A pod without the time at which it became ready, or with a time far in the future by its
        node's clock, does not count as starting: its missing value stays an error.
        """
        since = _ready_since(pod)
        return since > 0 and abs(now - since) < self._patience()

    def _entry(self, ref: Ref) -> Entry:
        if not ref.namespace:
            raise BadTrigger("the ScaledObject's namespace is missing from the call")
        if len(ref.namespace) > _LONGEST_NAME or len(ref.name) > _LONGEST_NAME:
            raise BadTrigger(
                f"the ScaledObject's name or namespace has more than {_LONGEST_NAME} characters, "
                f"which is the limit of Kubernetes"
            )
        return self._triggers.get(ref, self._catalog.metrics)


def _ready_since(pod: Pod) -> float:
    """Return the epoch seconds at which it became ready, else was created; 0 if not known."""
    return pod.ready_since or pod.born


def _answer(trigger: Trigger, survey: Survey) -> TriggerAnswer:
    standing, until = survey
    metric = trigger.metric.lower()
    if standing is None:
        return TriggerAnswer(metric, number(0.0), active=False, until=until)
    measured = trigger.aggregate.of(standing.values)
    value = measured if standing.whole else demand(trigger.aggregate, standing, trigger.target)
    # A starting pod may be busy.
    active = standing.silent > 0 or measured > trigger.activation
    return TriggerAnswer(metric, number(value), active, until)


def _nobody(pods: int, starting: int, not_ready: int) -> str:
    if starting:
        return f"none of {pods} pods has been measured yet"
    if not_ready:
        return f"none of {pods} pods is ready yet"
    return f"no device of {pods} pods is one that metricSelector selects"
