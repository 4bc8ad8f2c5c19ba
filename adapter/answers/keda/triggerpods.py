"""The pods of a trigger: those of its podSelector, or of its ScaledObject's target."""

from __future__ import annotations

from collections.abc import Sequence

from adapter.answers.keda.errors import BadTrigger, NotReady
from adapter.answers.keda.scaledobjects import NAMED_BY_PODS, ScaledObjects
from adapter.answers.keda.trigger import Ref, Trigger
from adapter.pipeline.cluster.index import PodIndex
from adapter.pipeline.cluster.placeholder import working_pods
from adapter.pipeline.cluster.pod import Pod
from apiservice.runtime.steps import Steps


class TriggerPods:
    """Finds the pods of triggers.

    Args:
        index: every pod.
        targets: what ScaledObjects scale; None if they are not watched.
        stale_after: seconds of silence of the API server after which "there are no pods" is
            not trusted.
    """

    def __init__(self, index: PodIndex, targets: ScaledObjects | None, stale_after: float) -> None:
        self._index = index
        self._targets = targets
        self._stale_after = stale_after

    @property
    def version(self) -> int:
        """A number that grows with every change of a ScaledObject."""
        return self._targets.version if self._targets is not None else 0

    def find_pods(self, trigger: Trigger, ref: Ref) -> Steps[Sequence[Pod]]:
        """Return the pods that the trigger selects, finished ones included. May be empty.

        Raises:
            BadTrigger: the trigger's pods cannot be determined.
            NotReady: the pods, or the ScaledObject, have not been read.
        """
        if not self._index.synced:
            raise NotReady("the pods have not been listed yet; /readyz/pods says why")
        if trigger.pods is not None:
            return working_pods(
                (yield from self._index.select_in_steps(ref.namespace, trigger.pods))
            )
        if self._targets is None:
            raise BadTrigger(
                "podSelector: is missing, and ScaledObjects are not watched; "
                "add it, or set keda.scaled_objects"
            )
        if self._targets.problem:
            raise NotReady(f"ScaledObjects could not be read: {self._targets.problem}")
        scaled = self._targets.get(ref.namespace, ref.name)
        if scaled is None:
            raise NotReady(f"ScaledObject {ref.namespace}/{ref.name} has not been seen yet")
        pods = yield from self._index.owned_by_in_steps(ref.namespace, *scaled.target)
        if not pods and scaled.target.resource not in NAMED_BY_PODS:
            raise BadTrigger(
                f"podSelector: is missing, and the pods of {scaled.target.resource} "
                f"{scaled.target.name} do not name their owner; add it"
            )
        return pods

    def check_silence(self, now: float) -> None:
        """Check that an empty list of pods can be trusted.

        Raises:
            NotReady: the API server has been silent about pods for too long.
        """
        if self._index.age(now) > self._stale_after:
            raise NotReady(
                f"the API server has been silent about pods for too long: {self._index.last_error}"
            )
