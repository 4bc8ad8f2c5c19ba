"""The value of a group of pods, which each pod of the group has if a query asks for ``aggregate``.

A Pods metric of an HPA on a LeaderWorkerSet is the mean over the leaders, because the selector of
the scale subresource matches no worker. With ``selector: {matchLabels: {aggregate: mean}}`` the
value of a leader is that of its whole group. The HPA asks for it, and no setting does: without the
label, the value of a pod stays that of the pod for every other reader.

A group has a value only if each of its pods that should have one has it, and if all of its pods
exist: a part of the group would say that the rest is idle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from adapter.answers.api.aggregate import (
    Aggregate,
    combine,
    describe_missing,
    pool_latencies,
    read_pods,
)
from adapter.answers.api.expectedpods import expected_pods
from adapter.answers.promises.ratios import Ask, PodQuestion, PromisedRatios
from adapter.pipeline.attribution.reading import Absence, Reading
from adapter.pipeline.attribution.values import NOT_SELECTED
from adapter.pipeline.cluster.index import PodIndex
from adapter.pipeline.cluster.pod import Pod
from adapter.pipeline.cluster.podgroups import ReplicaGroup, group_of, stated_size
from apiservice.runtime.steps import Steps, parts

INCOMPLETE: Final = "group_incomplete"
_STEP: Final = 16
"""Pods that one step processes."""


class GroupValues:
    """The values of groups, for one query.

    Args:
        index: the pods.
        ratios: answers questions about the pods of a group.
        about: answers the question about pods that belong to no group.
        question: what is requested of each pod.
        how: combines the values of a group.
    """

    def __init__(
        self,
        index: PodIndex,
        ratios: PromisedRatios,
        about: Ask,
        question: PodQuestion,
        how: Aggregate,
    ) -> None:
        self._index = index
        self._ratios = ratios
        self._about = about
        self._question = question
        self._how = how
        self._members: dict[object, Mapping[ReplicaGroup | None, Sequence[Pod]]] = {}
        """Namespace and workload -> its groups."""
        self._values: dict[tuple[str, ReplicaGroup], Reading | Absence] = {}

    def of(self, pod: Pod) -> Steps[Reading | Absence]:
        """Return the value of a pod's group; that of the pod itself if it belongs to none."""
        group = group_of(pod)
        if group is None:
            return self._about(pod)
        key = (pod.namespace, group)
        value = self._values.get(key)
        if value is None:
            pods = (yield from self._groups(*key)).get(group, ())
            value = self._values[key] = yield from self._combine_pods(pods)
        return value

    def _groups(
        self, namespace: str, group: ReplicaGroup
    ) -> Steps[Mapping[ReplicaGroup | None, Sequence[Pod]]]:
        members = self._members.get((namespace, group.workload))
        if members is not None:
            return members
        groups: dict[ReplicaGroup | None, list[Pod]] = {}
        pods = yield from self._index.owned_by_in_steps(namespace, *group.workload)
        for some in parts(pods, _STEP):
            for pod in some:
                if not pod.deleting:
                    groups.setdefault(group_of(pod), []).append(pod)
            yield
        self._members[namespace, group.workload] = groups
        return groups

    def _combine_pods(self, pods: Sequence[Pod]) -> Steps[Reading | Absence]:
        size = max((stated_size(pod.annotations) or 0 for pod in pods), default=0)
        if len(pods) < size:
            return Absence(INCOMPLETE, f"{len(pods)} of {size} pods exist")
        metric, _, snapshot, _ = self._question
        expected = yield from expected_pods(pods, metric, snapshot)
        about = yield from self._ratios.about(expected, self._question)
        values = yield from read_pods(expected, metric, about)
        values = list((yield from pool_latencies(values, metric, self._how, snapshot.options)))
        lacking = [
            row
            for row in values
            if isinstance(row.value, Absence) and row.value.reason != NOT_SELECTED
        ]
        if lacking:
            return Absence(INCOMPLETE, describe_missing(lacking, len(values)))
        readings = [row.value for row in values if isinstance(row.value, Reading)]
        if not readings:
            return (
                values[0].value if values else Absence(INCOMPLETE, "no pod of it has such a value")
            )
        return combine(self._how, readings, partial=False)
