"""The workloads whose pods are shown: each with its pods, by the name of its object.

The pods of a namespace are grouped once, and again only when one of its pods has changed or another
pod has become a server.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from adapter.answers.view.gpupods import is_shown
from adapter.answers.view.owner import Above, topmost_workload
from adapter.answers.view.pernamespace import PerNamespace
from adapter.pipeline.cluster.index import PodIndex
from adapter.pipeline.cluster.pod import Pod, PodRef
from apiservice.labels.selector import EVERYTHING
from apiservice.runtime.steps import Steps, parts

_STEP: Final = 64
"""Pods that one step groups."""
_OF_ONE_VERSION: Final = ("pod-template-hash", "controller-revision-hash")
"""Labels that distinguish versions of a workload."""


@dataclass(slots=True)
class WorkloadGroup:
    """A workload and its pods that are shown."""

    above: Above
    pods: list[Pod] = field(default_factory=list)
    labels: Mapping[str, str] = field(default_factory=dict)
    """Those that all of the pods have."""
    rejected: list[Pod] = field(default_factory=list)
    """Pods that the kubelet did not admit, or did not keep."""

    def add(self, pod: Pod) -> None:
        """Add a pod."""
        if not self.pods:
            pairs = pod.labels.items()
            self.labels = {key: text for key, text in pairs if key not in _OF_ONE_VERSION}
        elif pod.labels is not self.pods[-1].labels:
            self.labels = {k: text for k, text in self.labels.items() if pod.labels.get(k) == text}
        self.pods.append(pod)


@dataclass(slots=True)
class _Namespace:
    """The workloads of one namespace."""

    groups: Mapping[str, WorkloadGroup]
    """By the names of their objects, in order."""
    _alike: Mapping[frozenset[tuple[str, str]], Sequence[str]] | None = None

    def twin(self, name: str) -> str:
        """See :meth:`WorkloadGroups.twin`."""
        if self._alike is None:
            alike: dict[frozenset[tuple[str, str]], list[str]] = {}
            for other, group in self.groups.items():
                alike.setdefault(frozenset(group.labels.items()), []).append(other)
            self._alike = alike
        labels = self.groups[name].labels
        same = self._alike[frozenset(labels.items())] if labels else ()
        return next((other for other in same if other != name), "")


class WorkloadGroups:
    """The workloads by namespace and name of their objects.

    Args:
        pods: the known pods.
    """

    def __init__(self, pods: PodIndex) -> None:
        self._pods = pods
        self._known = PerNamespace(pods, self._group_pods)

    def of(self, namespace: str) -> Mapping[str, WorkloadGroup]:
        """Return name -> group in order, as of the last :meth:`refresh` of the namespace."""
        workloads = self._known.of(namespace)
        return workloads.groups if workloads is not None else {}

    def twin(self, namespace: str, name: str) -> str:
        """Return another workload whose pods have the same labels; empty without one.

        What a Deployment adds to the labels of its pods is not in a selector of the Deployment, so
        each selector that matches these pods matches the others too.
        """
        workloads = self._known.of(namespace)
        return workloads.twin(name) if workloads is not None and name in workloads.groups else ""

    def refresh(self, namespaces: Sequence[str], serving: frozenset[PodRef]) -> Steps[None]:
        """Group the pods of namespaces, in steps; see :meth:`.PerNamespace.refresh`."""
        return self._known.refresh(namespaces, serving)

    def _group_pods(self, namespace: str, serving: frozenset[PodRef]) -> Steps[_Namespace]:
        groups: dict[Above, WorkloadGroup] = {}
        rejected: list[Pod] = []
        for some in parts((yield from self._pods.select_in_steps(namespace, EVERYTHING)), _STEP):
            for pod in some:
                if is_shown(pod, on_page=pod.ref in serving):
                    above = topmost_workload(pod) or Above("v1", "Pod", pod.ref.name)
                    group = groups.get(above)
                    if group is None:
                        group = groups[above] = WorkloadGroup(above)
                    group.add(pod)
                elif pod.finished and pod.trouble and pod.gpus:
                    rejected.append(pod)
            yield
        for some in parts(rejected, _STEP):
            for pod in some:
                owner = topmost_workload(pod)
                if owner is not None and owner in groups:
                    groups[owner].rejected.append(pod)
            yield
        return _Namespace((yield from _name_groups(tuple(groups.values()))))


def _name_groups(groups: Sequence[WorkloadGroup]) -> Steps[Mapping[str, WorkloadGroup]]:
    """Return name -> group, in order of the names."""
    by_name: dict[str, list[WorkloadGroup]] = {}
    for some in parts(groups, _STEP):
        for group in some:
            by_name.setdefault(f"{group.above.kind.lower()}.{group.above.name}", []).append(group)
        yield
    unique: dict[str, WorkloadGroup] = {}
    for names in parts(tuple(by_name), _STEP):
        for name in names:
            same = by_name[name]
            for group in same:
                unique[name if len(same) == 1 else _name_with_group(group.above)] = group
        yield
    order = sorted(unique)
    yield
    ordered: dict[str, WorkloadGroup] = {}
    for names in parts(order, _STEP):
        ordered.update((name, unique[name]) for name in names)
        yield
    return ordered


def _name_with_group(above: Above) -> str:
    """Return a name with the API group, for kinds that several groups have."""
    group, _, _ = above.api_version.rpartition("/")
    return ".".join(filter(None, (above.kind.lower(), group, above.name)))
