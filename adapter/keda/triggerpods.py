"""The pods that a trigger is about."""

from __future__ import annotations

from collections.abc import Sequence

from adapter.cluster.index import PodIndex
from adapter.cluster.pod import Pod
from adapter.keda.errors import BadTrigger, NotReady
from adapter.keda.scaledobjects import NAMED_BY_PODS, ScaledObjects
from adapter.keda.trigger import Ref, Trigger
from apiservice.runtime.steps import Steps


class TriggerPods:
    """Finds them.

    Args:
        index: every pod.
        targets: what ScaledObjects scale; None where they are not watched.
        stale_after: seconds of silence of the API server after which "there are no pods" is
            not believed.
    """

    def __init__(self, index: PodIndex, targets: ScaledObjects | None, stale_after: float) -> None:
        self._index = index
        self._targets = targets
        self._stale_after = stale_after

    @property
    def version(self) -> int:
        """Grows with every change of a ScaledObject."""
        return self._targets.version if self._targets is not None else 0

    def meant(self, trigger: Trigger, ref: Ref) -> Steps[Sequence[Pod]]:
        """Those that the trigger selects, finished ones included; none is knowledge too.

        Raises:
            BadTrigger: there is no telling which pods are meant.
            NotReady: the pods, or the ScaledObject, have not been heard of.
        """
        if not self._index.synced:
            raise NotReady("the pods have not been listed yet; /readyz/pods says why")
        if trigger.pods is not None:
            return (yield from self._index.selecting(ref.namespace, trigger.pods))
        if self._targets is None:
            raise BadTrigger(
                "podSelector: is missing, and ScaledObjects are not watched; "
                "add it, or set keda.scaled_objects"
            )
        if self._targets.problem:
            raise NotReady(f"ScaledObjects could not be read: {self._targets.problem}")
        found = self._targets.get(ref.namespace, ref.name)
        if found is None:
            raise NotReady(f"ScaledObject {ref.namespace}/{ref.name} has not been seen yet")
        pods = self._index.owned_by(ref.namespace, *found.target)
        if not pods and found.target.resource not in NAMED_BY_PODS:
            raise BadTrigger(
                f"podSelector: is missing, and the pods of {found.target.resource} "
                f"{found.target.name} cannot be told; add it"
            )
        return pods

    def believe_there_are_none(self, now: float) -> None:
        """No pod was found.

        Raises:
            NotReady: nothing was heard of the pods for long.
        """
        if self._index.age(now) > self._stale_after:
            raise NotReady(f"nothing was heard of the pods for long: {self._index.last_error}")
