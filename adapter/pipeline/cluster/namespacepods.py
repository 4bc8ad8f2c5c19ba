"""The pods of one namespace, by name, labels and workload, and the cached selections of them.

Pods with equal labels form a group. There is one posting (a set of groups) for each label pair and
each workload. A selector is answered from its smallest posting, and the answer is cached until a
pod of that namespace changes or the answer is evicted.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from typing import TypeVar

from adapter.pipeline.cluster.pod import Pod
from adapter.pipeline.cluster.workload import Workload, workloads
from apiservice.labels.selector import Selector
from apiservice.runtime.bytecache import ENTRY, weight
from apiservice.runtime.steps import Steps, at_once, parts

K = TypeVar("K")
N = TypeVar("N")

_UNIQUE_LABELS = frozenset(
    {
        "statefulset.kubernetes.io/pod-name",
        "apps.kubernetes.io/pod-index",
        "batch.kubernetes.io/job-completion-index",
    }
)
"""Labels that controllers set to number the pods of one workload. They have no postings and do not
split a group: each value would cost more than its pod."""

_MEMO_BYTES = 16 << 20
"""Bytes of cached selections of all namespaces. Those of 5,000 HPAs or ScaledObjects fit, about
3 kB each with 100 pods."""

_Found = tuple[Pod, ...]
_STEP = 64
"""Groups that are compared with a selector in one step."""
_SORTED = 2048
"""Pods that are sorted in one step."""


class Selections:
    """Cached selections, bounded in bytes; the oldest are evicted.

    A change of a namespace's pods removes that namespace's selections.
    """

    def __init__(self) -> None:
        self._of: dict[tuple[str, Selector | Workload], _Found] = {}
        self._by_namespace: dict[str, set[Selector | Workload]] = {}
        self.bytes = 0

    def get(self, namespace: str, key: Selector | Workload) -> _Found | None:
        """Return a cached selection."""
        return self._of.get((namespace, key))

    def keep(self, namespace: str, key: Selector | Workload, pods: _Found) -> None:
        """Cache a selection, unless it is very large."""
        size = _weight(namespace, key, pods)
        if size > _MEMO_BYTES // 8:
            return
        while self.bytes + size > _MEMO_BYTES:
            self._drop(*next(iter(self._of)))
        self._of[namespace, key] = pods
        self._by_namespace.setdefault(namespace, set()).add(key)
        self.bytes += size

    def forget(self, namespace: str) -> None:
        """Remove the selections of a namespace."""
        for key in tuple(self._by_namespace.get(namespace, ())):
            self._drop(namespace, key)

    def _drop(self, namespace: str, key: Selector | Workload) -> None:
        pods = self._of.pop((namespace, key))
        discard(self._by_namespace, namespace, key)
        self.bytes -= _weight(namespace, key, pods)


def _weight(namespace: str, key: Selector | Workload, pods: _Found) -> int:
    own = key.bytes if isinstance(key, Selector) else weight(key)
    return 2 * ENTRY + own + 8 * len(pods)


class _Group:
    """Pods of one controller with equal labels, apart from those that number the pods.

    A cluster has far fewer groups than pods, so the postings hold groups, and a selector is
    compared with the labels of a group.
    """

    __slots__ = ("labels", "names", "workloads")

    def __init__(self, pod: Pod) -> None:
        self.labels = pod.labels
        """Those of one of the pods."""
        self.workloads = workloads(pod)
        self.names: set[str] = set()


class NamespacePods:
    """The pods of one namespace and their postings."""

    __slots__ = ("_groups", "_memo", "changes", "labels", "name", "owners", "pods")

    def __init__(self, name: str, memo: Selections) -> None:
        self.name = name
        self._memo = memo
        self.pods: dict[str, Pod] = {}
        self._groups: dict[Hashable, _Group] = {}
        self.labels: dict[tuple[str, str], set[_Group]] = {}
        self.owners: dict[Workload, set[_Group]] = {}
        self.changes = 0

    def put(self, pod: Pod, old: Pod | None) -> None:
        """Add a pod, or replace its former state."""
        moved = old is None or old.labels != pod.labels or old.owner != pod.owner
        if old and moved:
            self._ungroup(old)
        self.pods[pod.ref.name] = pod
        if moved:
            self._group(pod)
        self.changes += 1
        self._memo.forget(self.name)

    def remove(self, pod: Pod) -> None:
        """Remove a pod."""
        del self.pods[pod.ref.name]
        self._ungroup(pod)
        self.changes += 1
        self._memo.forget(self.name)

    def _group(self, pod: Pod) -> None:
        key = _group_key(pod)
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = _Group(pod)
            for pair in _common_labels(pod):
                self.labels.setdefault(pair, set()).add(group)
            for workload in group.workloads:
                self.owners.setdefault(workload, set()).add(group)
        group.names.add(pod.ref.name)

    def _ungroup(self, pod: Pod) -> None:
        key = _group_key(pod)
        group = self._groups[key]
        group.names.discard(pod.ref.name)
        if group.names:
            return
        del self._groups[key]
        for pair in _common_labels(pod):
            discard(self.labels, pair, group)
        for workload in group.workloads:
            discard(self.owners, workload, group)

    def known(self, selector: Selector) -> tuple[Pod, ...] | None:
        """Return the cached pods of a selector; None if they are not cached."""
        return self._memo.get(self.name, selector)

    def select(self, selector: Selector) -> Steps[tuple[Pod, ...]]:
        """Return the pods that match now. Changes between the steps have no effect."""
        found = self.known(selector)
        if found is not None:
            return found
        changes = self.changes
        numbered = any(key in _UNIQUE_LABELS for key, _, _ in selector.requirements)
        candidates = [(group.labels, self._pods(group)) for group in self._candidates(selector)]
        yield
        matching: list[Pod] = []
        for some in parts(candidates, _STEP):
            for labels, pods in some:
                if numbered:
                    matching += [pod for pod in pods if selector.matches(pod.labels)]
                elif selector.matches(labels):
                    matching += pods
            yield
        ordered = yield from _by_name(matching)
        if self.changes != changes:
            return tuple(ordered)
        return self._remember(selector, ordered)

    def owned(self, workload: Workload) -> tuple[Pod, ...]:
        """Return the pods of a workload."""
        pods = self._memo.get(self.name, workload)
        if pods is None:
            groups = self.owners.get(workload, ())
            pods = self._remember(
                workload, at_once(_by_name([pod for group in groups for pod in self._pods(group)]))
            )
        return pods

    def _pods(self, group: _Group) -> list[Pod]:
        return [self.pods[name] for name in group.names]

    def _candidates(self, selector: Selector) -> Iterable[_Group]:
        """Return groups that include every match."""
        best: Collection[_Group] = self._groups.values()
        for key, op, values in selector.requirements:
            if op not in ("=", "==", "in") or key in _UNIQUE_LABELS:
                continue
            postings = [self.labels.get((key, value), set()) for value in values]
            if sum(map(len, postings)) < len(best):
                best = postings[0] if len(postings) == 1 else set().union(*postings)
        return best

    def _remember(self, key: Selector | Workload, pods: list[Pod]) -> tuple[Pod, ...]:
        kept = tuple(pods)
        self._memo.keep(self.name, key, kept)
        return kept


def _by_name(pods: list[Pod]) -> Steps[list[Pod]]:
    """Sort the pods of one namespace by name. The last step merges sorted parts, which is quick."""
    ordered: list[Pod] = []
    for some in parts(pods, _SORTED):
        ordered += sorted(some, key=_name)
        yield
    ordered.sort(key=_name)
    return ordered


def _name(pod: Pod) -> str:
    return pod.ref.name


def _common_labels(pod: Pod) -> Iterable[tuple[str, str]]:
    return (item for item in pod.labels.items() if item[0] not in _UNIQUE_LABELS)


def _group_key(pod: Pod) -> Hashable:
    return (pod.owner, *sorted(_common_labels(pod)))


def discard(postings: dict[K, set[N]], key: K, name: N) -> None:
    """Remove a name from a posting, and the posting with its last name."""
    posting = postings.get(key)
    if posting is None:
        return
    posting.discard(name)
    if not posting:
        del postings[key]
