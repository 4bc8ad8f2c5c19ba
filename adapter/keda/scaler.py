"""What a trigger is told: its target, its value now, whether there is work.

Knows nothing of gRPC. Everything is answered from memory, so no call waits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol

from cachetools import LRUCache

from adapter.aggregate import Aggregate, PodValue, told
from adapter.attribution import NO_ROWS, NO_VALUE, NOT_SELECTED
from adapter.catalog.names import Names
from adapter.claim import Refusal
from adapter.cluster.pod import Pod
from adapter.keda.demand import Standing, demand
from adapter.keda.errors import BadTrigger, NoReadings
from adapter.keda.scaledobjects import ScaledObjects
from adapter.keda.trigger import Trigger, TriggerError, Triggers
from adapter.keda.triggerpods import Ref, TriggerPods
from adapter.metric import Scope
from adapter.objects import Objects
from adapter.reading import Absence, Reading
from apiservice.selector import Selector

_REMEMBERED: Final = 16384
_BOUND: Final = Aggregate.MEAN
"""Readings of half of the pods speak for all, as for a mean: see :mod:`.demand`."""


class Spec(NamedTuple):
    """What KEDA makes the HPA's metric of."""

    metric: str
    """In lower case: the HPA asks for external metrics so, whatever the name."""
    target: float


class PodValues(Protocol):
    """Values as of one moment."""

    def pod(self, pod: Pod, metric: str, selector: Selector, now: float) -> Reading | Absence:
        """A metric's value for a pod over the devices selected, or why there is none."""


class Known(Protocol):
    """The values known now."""

    @property
    def snapshot(self) -> PodValues:
        """They, as of one moment."""

    @property
    def version(self) -> int:
        """Grows with every change of them."""


class Survey(NamedTuple):
    """What is known of a trigger's pods."""

    standing: Standing | None
    """None where there are no pods."""
    doubtful: int
    """Ready pods that may be busy, for all that is known."""
    until: float
    """Epoch seconds at which it ends, unless something changes before."""


class _Remembered(NamedTuple):
    survey: Survey
    version: int
    since: float

    def stands(self, version: int, now: float) -> bool:
        return self.version == version and self.since <= now < self.survey.until


class Options(NamedTuple):
    """Seconds."""

    patience: Callable[[], float]
    """How long a ready pod may be without rows before it counts as missing: the age limit,
    which is time enough for a reading and a scrape."""
    stale_after: float
    """Silence of the API server after which "there are no pods" is not believed."""


class Scaler:
    """Answers triggers.

    Args:
        catalog: the metrics.
        known: their values.
        objects: the pods.
        targets: what ScaledObjects scale; None where they are not watched.
    """

    def __init__(
        self,
        catalog: Names,
        known: Known,
        objects: Objects,
        targets: ScaledObjects | None,
        options: Options,
    ) -> None:
        self._catalog = catalog
        self._known = known
        self._objects = objects
        self._pods = TriggerPods(objects.pod_index, targets, options.stale_after)
        self._patience = options.patience
        self._triggers = Triggers()
        self._first_seen: LRUCache[str, float] = LRUCache(_REMEMBERED)
        """UID of a ready pod without rows -> when that was noticed."""
        self._surveys: dict[tuple[Trigger, str, str], _Remembered] = {}
        """By trigger, namespace and ScaledObject: KEDA asks for the value and then whether
        there is work, and twice as often as anything changes."""

    def spec(self, ref: Ref) -> Spec:
        """The metric and its target, from the metadata alone.

        Raises:
            BadTrigger: see there.
        """
        trigger = self._trigger(ref)
        return Spec(trigger.metric.lower(), trigger.target)

    def value(self, ref: Ref, now: float) -> float:
        """What the HPA is to divide by the target. No pods are 0.

        Raises:
            ScalerError: one of its kinds.
        """
        trigger = self._trigger(ref)
        standing = self.survey(trigger, ref, now).standing
        return 0.0 if standing is None else demand(trigger.aggregate, standing, trigger.target)

    def active(self, ref: Ref, now: float) -> bool:
        """Whether there is work, by what was measured. A pod that may be busy keeps it true.

        Raises:
            ScalerError: one of its kinds.
        """
        trigger = self._trigger(ref)
        survey = self.survey(trigger, ref, now)
        if survey.standing is None:
            return False
        measured = trigger.aggregate.of(survey.standing.values)
        return survey.doubtful > 0 or measured > trigger.activation

    def survey(self, trigger: Trigger, ref: Ref, now: float) -> Survey:
        """What is known of the trigger's pods.

        Raises:
            ScalerError: one of its kinds. Failures are not remembered.
        """
        key = (trigger, ref.namespace, ref.name)
        version = self._version
        found = self._surveys.get(key)
        if found is not None and found.stands(version, now):
            return found.survey
        survey = self._look(trigger, ref, now)
        if len(self._surveys) >= _REMEMBERED:
            self._surveys.clear()
        self._surveys[key] = _Remembered(survey, version, now)
        return survey

    @property
    def _version(self) -> int:
        return self._known.version + self._objects.version + self._pods.version

    def _look(self, trigger: Trigger, ref: Ref, now: float) -> Survey:
        alive = self._pods.alive(trigger, ref, now)
        if not alive:
            return Survey(None, 0, until=now)  # silence of the API server ends it unannounced
        metric = self._catalog.metrics[trigger.metric]
        meant = [pod for pod in alive if metric.scope is Scope.SERVER or pod.holds_gpu]
        if not meant:
            raise NoReadings(
                f"{trigger.metric}: none of {len(alive)} pods holds a GPU by its spec; "
                f"mend podSelector or the pods' resource limits"
            )
        return self._stand(trigger, meant, self._known.snapshot, now)

    def _stand(
        self, trigger: Trigger, pods: Sequence[Pod], snapshot: PodValues, now: float
    ) -> Survey:
        values: list[float] = []
        lacking: list[PodValue] = []
        until = float("inf")
        starting = unready = pending = 0
        for pod in pods:
            value = snapshot.pod(pod, trigger.metric, trigger.devices, now)
            if isinstance(value, Reading):
                values.append(value.value)
                until = min(until, value.expires)
            elif pod.phase == "Pending":
                pending += 1
            elif value.reason in (Refusal.NOT_READY, Refusal.NOT_RUNNING):
                unready += 1
            elif value.reason in (NO_ROWS, NO_VALUE) and (end := self._start_ends(pod, now)) > now:
                starting += 1
                until = min(until, end)
            elif value.reason != NOT_SELECTED:
                lacking.append(PodValue(pod, value))
        if lacking and not _BOUND.speaks(len(values), len(values) + len(lacking)):
            raise NoReadings(f"{trigger.metric}: {told(lacking, len(values) + len(lacking))}")
        if not values:
            raise NoReadings(f"{trigger.metric}: {_nobody(len(pods), starting, unready + pending)}")
        silent = len(lacking) + starting
        return Survey(Standing(values, silent, unready, pending), silent, until)

    def _start_ends(self, pod: Pod, now: float) -> float:
        """Until when a ready pod may be without rows: it may have become ready just now."""
        return self._first_seen.setdefault(pod.uid, now) + self._patience()

    def _trigger(self, ref: Ref) -> Trigger:
        if not ref.namespace:
            raise BadTrigger("the ScaledObject's namespace is missing from the call")
        try:
            return self._triggers.get(ref.metadata, self._catalog.metrics)
        except TriggerError as error:
            raise BadTrigger(str(error)) from None


def _nobody(pods: int, starting: int, not_ready: int) -> str:
    if starting:
        return f"none of {pods} pods has been measured yet"
    if not_ready:
        return f"none of {pods} pods is ready yet"
    return f"no device of {pods} pods is one that metricSelector selects"
