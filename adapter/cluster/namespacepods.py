"""The pods of one namespace, by name, labels and workload, and the cached selections of them.

There is one posting (a set of names) for each label pair and each workload. A selector is answered
from its smallest posting, and the answer is cached until a pod of that namespace changes or the
answer is evicted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from adapter.cluster.pod import Pod
from adapter.cluster.workload import Workload, workloads
from apiservice.labels.selector import Selector
from apiservice.runtime.bytecache import ENTRY, weight
from apiservice.runtime.steps import Steps, parts

K = TypeVar("K")
N = TypeVar("N")

_UNIQUE_LABELS = frozenset(
    {
        "statefulset.kubernetes.io/pod-name",
        "apps.kubernetes.io/pod-index",
        "batch.kubernetes.io/job-completion-index",
    }
)
"""Labels that controllers set to distinguish the pods of one workload. A posting for each value
would cost more than the pod."""

_MEMO_BYTES = 16 << 20
"""Bytes of cached selections of all namespaces. Those of 5,000 HPAs or ScaledObjects fit, about
3 kB each with 100 pods."""

_Found = tuple[Pod, ...]
_STEP = 64
"""Pods that are examined in one step."""


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


class NamespacePods:
    """The pods of one namespace and their postings."""

    __slots__ = ("_memo", "changes", "labels", "name", "owners", "pods")

    def __init__(self, name: str, memo: Selections) -> None:
        self.name = name
        self._memo = memo
        self.pods: dict[str, Pod] = {}
        self.labels: dict[tuple[str, str], set[str]] = {}
        self.owners: dict[Workload, set[str]] = {}
        self.changes = 0

    def put(self, pod: Pod, old: Pod | None) -> None:
        """Add a pod, or replace its former state."""
        name = pod.ref.name
        moved = old is None or old.labels != pod.labels or old.owner != pod.owner
        if old and moved:
            self._unpost(old)
        self.pods[name] = pod
        if moved:
            for key in _label_keys(pod):
                self.labels.setdefault(key, set()).add(name)
            for workload in workloads(pod):
                self.owners.setdefault(workload, set()).add(name)
        self.changes += 1
        self._memo.forget(self.name)

    def remove(self, pod: Pod) -> None:
        """Remove a pod."""
        del self.pods[pod.ref.name]
        self._unpost(pod)
        self.changes += 1
        self._memo.forget(self.name)

    def _unpost(self, pod: Pod) -> None:
        for key in _label_keys(pod):
            discard(self.labels, key, pod.ref.name)
        for workload in workloads(pod):
            discard(self.owners, workload, pod.ref.name)

    def known(self, selector: Selector) -> tuple[Pod, ...] | None:
        """Return the cached pods of a selector; None if they are not cached."""
        return self._memo.get(self.name, selector)

    def select(self, selector: Selector) -> Steps[tuple[Pod, ...]]:
        """Return the pods that match now. Changes between the steps have no effect."""
        found = self.known(selector)
        if found is not None:
            return found
        changes = self.changes
        pods = [self.pods[name] for name in sorted(self._candidates(selector))]
        matching: list[Pod] = []
        for some in parts(pods, _STEP):
            matching += [pod for pod in some if selector.matches(pod.labels)]
            yield
        if self.changes != changes:
            return tuple(matching)
        return self._remember(selector, matching)

    def owned(self, workload: Workload) -> tuple[Pod, ...]:
        """Return the pods of a workload."""
        found = self._memo.get(self.name, workload)
        if found is None:
            names = sorted(self.owners.get(workload, ()))
            found = self._remember(workload, [self.pods[name] for name in names])
        return found

    def _candidates(self, selector: Selector) -> Iterable[str]:
        """Return names that include every match."""
        best: Iterable[str] = self.pods
        size = len(self.pods)
        for key, op, values in selector.requirements:
            if op not in ("=", "==", "in") or key in _UNIQUE_LABELS:
                continue
            postings = [self.labels.get((key, value), set()) for value in values]
            count = sum(map(len, postings))
            if count < size:
                size = count
                best = postings[0] if len(postings) == 1 else set().union(*postings)
        return best

    def _remember(self, key: Selector | Workload, pods: list[Pod]) -> tuple[Pod, ...]:
        found = tuple(pods)
        self._memo.keep(self.name, key, found)
        return found


def _label_keys(pod: Pod) -> Iterable[tuple[str, str]]:
    return (item for item in pod.labels.items() if item[0] not in _UNIQUE_LABELS)


def discard(postings: dict[K, set[N]], key: K, name: N) -> None:
    """Remove a name from a posting, and the posting with its last name."""
    posting = postings.get(key)
    if posting is None:
        return
    posting.discard(name)
    if not posting:
        del postings[key]
