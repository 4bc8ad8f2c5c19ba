"""The pods of one namespace, by name, labels and workload.

Pods with equal labels form a group. A posting leads from the values of a label, or from workloads,
to the groups that have them. It is made when a request names the label: about most pods nobody
asks. A selector is answered from its smallest posting, and the answer is cached until a pod of that
namespace changes or the answer is evicted (:mod:`adapter.pipeline.cluster.selections`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Final

from adapter.pipeline.cluster.pod import Pod
from adapter.pipeline.cluster.selections import Selections
from adapter.pipeline.cluster.workload import Workload, workloads
from apiservice.labels.requirement import Requirement
from apiservice.labels.selector import Selector
from apiservice.runtime.steps import Steps, parts

_UNIQUE_LABELS = frozenset(
    {
        "statefulset.kubernetes.io/pod-name",
        "apps.kubernetes.io/pod-index",
        "batch.kubernetes.io/job-completion-index",
    }
)
"""Labels that controllers set to number the pods of one workload. They have no postings and do not
split a group: each value would cost more than its pod."""

_STEP = 64
"""Groups that are compared with a selector in one step."""
_SORTED = 2048
"""Pods that are sorted in one step."""
_POSTED: Final = 512
"""Groups that are posted in one step."""
_NAME: Final = attrgetter("name")
_OWNER: Final = ""
"""The key of the postings of workloads. No label has it."""
_DONE: Final = True


class _Group:
    """Pods of one controller with equal labels, apart from those that number the pods.

    A cluster has far fewer groups than pods, so the postings hold groups, and a selector is
    compared with the labels of a group.
    """

    __slots__ = ("pods",)

    def __init__(self, pod: Pod) -> None:
        self.pods = [pod]
        """By name; empty once the group is gone."""

    def put(self, pod: Pod) -> None:
        """Add a pod, or replace the pod of that name."""
        place = bisect_left(self.pods, pod.name, key=_NAME)
        present = place < len(self.pods) and self.pods[place].name == pod.name
        self.pods[place : place + present] = [pod]

    def remove(self, name: str) -> None:
        """Remove the pod of that name."""
        del self.pods[bisect_left(self.pods, name, key=_NAME)]


_Posting = dict[Hashable, list[_Group]]
"""Value -> the groups that have it."""


class NamespacePods:
    """The pods of one namespace and their postings."""

    __slots__ = ("_groups", "_keys", "_making", "_memo", "changes", "name", "pods", "postings")

    def __init__(self, name: str, memo: Selections) -> None:
        self.name = name
        self._memo = memo
        self.pods: dict[str, Pod] = {}
        self._groups: dict[str, _Group] = {}
        self._keys: dict[str, int] = {}
        """Label key, or :data:`_OWNER` -> groups that have it."""
        self.postings: dict[str, _Posting] = {}
        """By the same keys, of those that somebody asked for."""
        self._making: dict[str, Iterator[bool]] = {}
        """The rest of the work for postings that do not have all groups yet."""
        self.changes = 0

    def put(self, pod: Pod, old: Pod | None) -> None:
        """Add a pod, or replace its former state."""
        key = _group_key(pod)
        before = key if old is None or old.template is pod.template else _group_key(old)
        self.pods[pod.name] = pod
        group = self._groups.get(key)
        if group is not None:
            group.put(pod)
        else:
            self._add_group(key, pod)
        if old is not None and before != key:
            self._ungroup(before, old)
        self._note_change()

    def remove(self, pod: Pod) -> None:
        """Remove a pod."""
        del self.pods[pod.name]
        self._ungroup(_group_key(pod), pod)
        self._note_change()

    def _note_change(self) -> None:
        self.changes += 1
        self._memo.forget(self.name)

    def _add_group(self, name: str, pod: Pod) -> None:
        group = self._groups[name] = _Group(pod)
        for key in _keys(pod):
            self._keys[key] = self._keys.get(key, 0) + 1
            if key in self.postings:
                _post(self.postings[key], key, group)

    def _ungroup(self, name: str, pod: Pod) -> None:
        group = self._groups[name]
        group.remove(pod.name)
        if group.pods:
            return
        del self._groups[name]
        for key in _keys(pod):
            if key in self.postings:
                _unpost(self.postings[key], key, group, pod)
            self._keys[key] -= 1
            if not self._keys[key]:
                del self._keys[key]
                self.postings.pop(key, None)
                self._making.pop(key, None)

    def cached_pods(self, selector: Selector) -> tuple[Pod, ...] | None:
        """Return the cached pods of a selector; None if they are not cached."""
        return self._memo.get(self.name, selector)

    def select(self, selector: Selector) -> Steps[tuple[Pod, ...]]:
        """Return the pods that match at one time. Later changes have no effect."""
        cached = self.cached_pods(selector)
        if cached is not None:
            return cached
        exact = [row for row in selector.requirements if _is_exact(row)]
        for key, _, _ in exact:
            yield from self._make(key)
        changes = self.changes
        candidates = [group.pods[:] for group in self._candidates(exact)]
        yield
        numbered = any(key in _UNIQUE_LABELS for key, _, _ in selector.requirements)
        matching: list[Pod] = []
        for some in parts(candidates, _STEP):
            for pods in some:
                if numbered:
                    matching += [pod for pod in pods if selector.matches(pod.labels)]
                elif selector.matches(pods[0].labels):
                    matching += pods
            yield
        return (yield from self._remember(selector, matching, changes))

    def owned_by(self, workload: Workload) -> Steps[tuple[Pod, ...]]:
        """Return the pods of a workload."""
        cached = self._memo.get(self.name, workload)
        if cached is not None:
            return cached
        yield from self._make(_OWNER)
        groups: Iterable[_Group] = self.postings.get(_OWNER, {}).get(workload, ())
        if not self._is_complete(_OWNER):
            groups = [
                group for group in self._groups.values() if workload in workloads(group.pods[0])
            ]
        matching = [pod for group in groups for pod in group.pods]
        return (yield from self._remember(workload, matching, self.changes))

    def workloads(self) -> Steps[list[Workload]]:
        """Return the workloads that have pods."""
        yield from self._make(_OWNER)
        if self._is_complete(_OWNER):
            return [owner for owner in self.postings.get(_OWNER, ()) if isinstance(owner, Workload)]
        return list(
            {owner for group in self._groups.values() for owner in workloads(group.pods[0])}
        )

    def _make(self, key: str) -> Steps[None]:
        """Make the postings of a key, unless no pod has it: made-up keys take no memory."""
        if key not in self.postings and key in self._keys:
            self.postings[key] = {}
            self._making[key] = self._post_groups(key)
        # Several requests may work on the same postings, and any of them may be given up.
        while (making := self._making.get(key)) is not None:
            if next(making, _DONE):
                del self._making[key]
            else:
                yield

    def _is_complete(self, key: str) -> bool:
        """Return whether the postings of a key lead to all of its groups.

        They do after :meth:`_make`, unless all pods with the key have gone while others of them
        were posted, and new ones have come.
        """
        return key not in self._keys or (key in self.postings and key not in self._making)

    def _post_groups(self, key: str) -> Iterator[bool]:
        """Post all groups that exist now; later ones are posted when they are added."""
        posting = self.postings[key]
        for number, some in enumerate(parts(tuple(self._groups.values()), _POSTED)):
            if number:
                yield not _DONE
            for group in some:
                if group.pods:
                    _post(posting, key, group)

    def _candidates(self, exact: Iterable[Requirement]) -> Iterable[_Group]:
        """Return groups that include every match."""
        best: Iterable[_Group] = self._groups.values()
        fewest = len(self._groups)
        for key, _, values in exact:
            if not self._is_complete(key):
                continue
            posting = self.postings.get(key, {})
            groups = [group for value in values for group in posting.get(value, ())]
            if len(groups) < fewest:
                best, fewest = groups, len(groups)
        return best

    def _remember(
        self, key: Selector | Workload, matching: list[Pod], changes: int
    ) -> Steps[tuple[Pod, ...]]:
        """Return the pods by name. Cache them if nothing has changed since ``changes``.

        The last pod takes its namespace with it: what a request still finds here is not that of
        pods that come later, in another object of the same name.
        """
        ordered = tuple((yield from _by_name(matching)))
        if self.changes == changes and self.pods:
            self._memo.keep(self.name, key, ordered)
        return ordered


def _by_name(pods: list[Pod]) -> Steps[list[Pod]]:
    """Sort the pods of one namespace by name. The last step merges sorted parts, which is quick."""
    ordered: list[Pod] = []
    for some in parts(pods, _SORTED):
        ordered += sorted(some, key=_NAME)
        yield
    ordered.sort(key=_NAME)
    return ordered


def _is_exact(requirement: Requirement) -> bool:
    """Return whether postings lead to the pods that meet a requirement."""
    return requirement.op in ("=", "==", "in") and requirement.key not in _UNIQUE_LABELS


def _group_key(pod: Pod) -> str:
    """Return what a group has in common as one text, which takes half the bytes of a tuple."""
    common = [item for item in pod.labels.items() if item[0] not in _UNIQUE_LABELS]
    return repr((*(pod.owner or ()), *sorted(common)))


def _keys(pod: Pod) -> list[str]:
    """Return the keys under which postings may lead to a pod's group."""
    keys = [key for key in pod.labels if key not in _UNIQUE_LABELS]
    return [*keys, _OWNER] if pod.owner is not None else keys


def _values(pod: Pod, key: str) -> Sequence[Hashable]:
    """Return the values of a pod's group under a key."""
    if key == _OWNER:
        return workloads(pod)
    return (pod.labels[key],) if key in pod.labels else ()


def _post(posting: _Posting, key: str, group: _Group) -> None:
    for value in _values(group.pods[0], key):
        posting.setdefault(value, []).append(group)


def _unpost(posting: _Posting, key: str, group: _Group, pod: Pod) -> None:
    """Remove a group, whose last pod this was, and each value with its last group."""
    for value in _values(pod, key):
        groups = posting.get(value, [])
        if group in groups:  # postings that are being made may not have it yet
            groups.remove(group)
            if not groups:
                del posting[value]
