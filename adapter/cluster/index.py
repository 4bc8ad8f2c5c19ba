"""All pods of the cluster, indexed by name, labels, workload, node and address.

A reflector or a file feeds it through ``replace`` and ``apply``. Readers use the same event loop,
so a reader never sees half a change. Each namespace has one posting (a set of names) for each
label pair and each workload. A selector is answered from its smallest posting, and the answer is
cached until a pod of that namespace changes or the answer is evicted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from adapter.cluster.feed import Fed
from adapter.cluster.pod import Pod, PodRef
from adapter.cluster.workload import Workload, workloads
from apiservice.kube.reflector import EventType
from apiservice.labels.selector import Selector
from apiservice.provider import GroupResource
from apiservice.runtime.bytecache import ENTRY, weight
from apiservice.runtime.steps import Steps, at_once, parts

K = TypeVar("K")
N = TypeVar("N")

Listener = Callable[[Pod | None, Pod | None], None]
"""Called with (before, after) once the index has changed; None for a pod that does not exist."""

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


class _Selections:
    """Cached selections, bounded in bytes; the oldest are evicted.

    A change of a namespace's pods removes that namespace's selections.
    """

    def __init__(self) -> None:
        self._of: dict[tuple[str, Selector | Workload], _Found] = {}
        self._by_namespace: dict[str, set[Selector | Workload]] = {}
        self.bytes = 0

    def get(self, namespace: str, key: Selector | Workload) -> _Found | None:
        return self._of.get((namespace, key))

    def keep(self, namespace: str, key: Selector | Workload, pods: _Found) -> None:
        size = _weight(namespace, key, pods)
        if size > _MEMO_BYTES // 8:
            return
        while self.bytes + size > _MEMO_BYTES:
            self._drop(*next(iter(self._of)))
        self._of[namespace, key] = pods
        self._by_namespace.setdefault(namespace, set()).add(key)
        self.bytes += size

    def forget(self, namespace: str) -> None:
        for key in tuple(self._by_namespace.get(namespace, ())):
            self._drop(namespace, key)

    def _drop(self, namespace: str, key: Selector | Workload) -> None:
        pods = self._of.pop((namespace, key))
        _discard(self._by_namespace, namespace, key)
        self.bytes -= _weight(namespace, key, pods)


def _weight(namespace: str, key: Selector | Workload, pods: _Found) -> int:
    own = key.bytes if isinstance(key, Selector) else weight(key)
    return 2 * ENTRY + own + 8 * len(pods)


class _Namespace:
    """The pods of one namespace and their postings."""

    __slots__ = ("_memo", "changes", "labels", "name", "owners", "pods")

    def __init__(self, name: str, memo: _Selections) -> None:
        self.name = name
        self._memo = memo
        self.pods: dict[str, Pod] = {}
        self.labels: dict[tuple[str, str], set[str]] = {}
        self.owners: dict[Workload, set[str]] = {}
        self.changes = 0

    def put(self, pod: Pod, old: Pod | None) -> None:
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
        del self.pods[pod.ref.name]
        self._unpost(pod)
        self.changes += 1
        self._memo.forget(self.name)

    def _unpost(self, pod: Pod) -> None:
        for key in _label_keys(pod):
            _discard(self.labels, key, pod.ref.name)
        for workload in workloads(pod):
            _discard(self.owners, workload, pod.ref.name)

    def known(self, selector: Selector) -> tuple[Pod, ...] | None:
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


class PodIndex(Fed):
    """The pods, with a lookup for each kind of query. Answers are ordered by name."""

    def __init__(self) -> None:
        super().__init__()
        self._namespaces: dict[str, _Namespace] = {}
        self._memo = _Selections()
        self._nodes: dict[str, set[PodRef]] = {}
        self._addresses: dict[str, tuple[PodRef, ...]] = {}
        self._changes: dict[str, int] = {}
        self._changed_in: dict[str, int] = {}
        self._listeners: list[Listener] = []
        self.listed = asyncio.Event()
        """``synced`` as an event, to wait for."""

    def __len__(self) -> int:
        return sum(len(space.pods) for space in self._namespaces.values())

    @property
    def remembered_bytes(self) -> int:
        """Bytes of the cached selections."""
        return self._memo.bytes

    def get(self, namespace: str, name: str) -> Pod | None:
        """Return the pod of that name."""
        space = self._namespaces.get(namespace)
        return space.pods.get(name) if space else None

    def select(self, namespace: str | None, selector: Selector) -> Sequence[Pod]:
        """Return the pods that the selector matches; None searches every namespace."""
        space = self._namespaces.get(namespace) if namespace is not None else None
        found = space.known(selector) if space else None
        return at_once(self.selecting(namespace, selector)) if found is None else found

    def selecting(self, namespace: str | None, selector: Selector) -> Steps[Sequence[Pod]]:
        """The same in steps. The pods of one namespace are those of one point in time."""
        if namespace is not None:
            space = self._namespaces.get(namespace)
            return (yield from space.select(selector)) if space else ()
        pods: list[Pod] = []
        for space in [self._namespaces[name] for name in self.namespaces()]:
            pods += yield from space.select(selector)
        return pods

    def owned_by(self, namespace: str, resource: GroupResource, name: str) -> Sequence[Pod]:
        """Return the pods of a workload such as ``deployments.apps``; see :mod:`.workload`."""
        space = self._namespaces.get(namespace)
        return space.owned(Workload(resource, name)) if space else ()

    def workloads(self, namespace: str, resource: GroupResource) -> Sequence[str]:
        """Return the names of a namespace's workloads of one kind that own pods."""
        space = self._namespaces.get(namespace)
        owners = space.owners if space else ()
        return sorted(owner.name for owner in owners if owner.resource == resource)

    def each(self) -> Iterator[Pod]:
        """Yield every pod, in no order. The pods may change between two steps."""
        for space in tuple(self._namespaces.values()):
            yield from tuple(space.pods.values())

    def on_node(self, node: str) -> Sequence[Pod]:
        """Return the pods bound to a node, finished ones included."""
        refs = sorted(self._nodes.get(node, ()))
        return [self._namespaces[ref.namespace].pods[ref.name] for ref in refs]

    def at_address(self, address: str) -> Sequence[Pod]:
        """Return the unfinished pods that have an IP address; several share a node's address."""
        refs = self._addresses.get(address, ())
        return [self._namespaces[ref.namespace].pods[ref.name] for ref in refs]

    def changes(self, node: str) -> int:
        """Return a number that differs after every change of a pod on this node with a GPU."""
        return self._changes.get(node, 0)

    def changes_in(self, namespace: str) -> int:
        """Return a number that differs after every change of a pod of this namespace."""
        return self._changed_in.get(namespace, 0)

    def namespaces(self) -> Sequence[str]:
        """Return the namespaces that have pods."""
        return sorted(self._namespaces)

    @property
    def last_error(self) -> str:
        """Why the pods may be out of date. Empty if they are current."""
        return self._feed.last_error if self._feed else ""

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call ``listener`` at every change from now on. Call the result to stop."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def replace(self, items: Sequence[Pod]) -> None:
        """Take a complete list of pods."""
        at_once(self.replacing(items))

    def replacing(self, items: Sequence[Pod]) -> Steps[None]:
        """The same in steps. Each step leaves the index as single events would."""
        kept: set[PodRef] = set()
        for some in parts(items, _STEP):
            kept.update(pod.ref for pod in some)
            yield
        for some in parts(tuple(self.each()), _STEP):
            for pod in some:
                if pod.ref not in kept:
                    self._remove(pod.ref)
            yield
        for some in parts(items, _STEP):
            for pod in some:
                self._put(pod)
            yield
        self.synced = True
        self.listed.set()

    def apply(self, event: EventType, item: Pod) -> None:
        """One pod was added, modified or deleted."""
        if event is EventType.DELETED:
            self._remove(item.ref)
        else:
            self._put(item)

    def _put(self, pod: Pod) -> None:
        space = self._namespaces.get(pod.ref.namespace)
        if space is None:
            space = self._namespaces[pod.ref.namespace] = _Namespace(pod.ref.namespace, self._memo)
        old = space.pods.get(pod.ref.name)
        if old == pod:
            return
        if old and old.uid == pod.uid:
            # Keep the first texts: the postings hold them anyway.
            pod = replace(pod, ref=old.ref, uid=old.uid)
        space.put(pod, old)
        if old is None or old.node != pod.node:
            if old:
                _discard(self._nodes, old.node, old.ref)
            if pod.node:
                self._nodes.setdefault(pod.node, set()).add(pod.ref)
        self._readdress(old, pod)
        self._changed(old, pod)

    def _remove(self, ref: PodRef) -> None:
        space = self._namespaces.get(ref.namespace)
        pod = space.pods.get(ref.name) if space else None
        if space is None or pod is None:
            return
        space.remove(pod)
        if not space.pods:
            del self._namespaces[ref.namespace]
        _discard(self._nodes, pod.node, pod.ref)
        self._readdress(pod, None)
        self._changed(pod, None)

    def _readdress(self, old: Pod | None, new: Pod | None) -> None:
        before, after = _address(old), _address(new)
        if before == after:
            return
        if old is not None and before:
            kept = tuple(ref for ref in self._addresses.get(before, ()) if ref != old.ref)
            if kept:
                self._addresses[before] = kept
            else:
                self._addresses.pop(before, None)
        if new is not None and after:
            self._addresses[after] = (*self._addresses.get(after, ()), new.ref)

    def _changed(self, old: Pod | None, new: Pod | None) -> None:
        self.version += 1
        for pod in (old, new):
            if pod is None:
                continue
            if pod.ref.namespace in self._namespaces:
                self._changed_in[pod.ref.namespace] = self.version
            else:
                self._changed_in.pop(pod.ref.namespace, None)
            if not pod.node:
                continue
            if pod.node not in self._nodes:
                self._changes.pop(pod.node, None)  # names of autoscaled nodes are never used again
            elif pod.holds_gpu:
                self._changes[pod.node] = self.version
        for listener in tuple(self._listeners):
            listener(old, new)


def _address(pod: Pod | None) -> str:
    """Return no address for a finished pod: another pod may have it now."""
    return pod.ip if pod is not None and not pod.finished else ""


def _label_keys(pod: Pod) -> Iterable[tuple[str, str]]:
    return (item for item in pod.labels.items() if item[0] not in _UNIQUE_LABELS)


def _discard(postings: dict[K, set[N]], key: K, name: N) -> None:
    posting = postings.get(key)
    if posting is None:
        return
    posting.discard(name)
    if not posting:
        del postings[key]
