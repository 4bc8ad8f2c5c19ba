"""All pods of the cluster, indexed by name, labels, workload, node and address.

A reflector or a file feeds it through ``replace`` and ``apply``. Readers use the same event loop,
so a reader never sees half a change.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Final

from adapter.pipeline.cluster.feed import Fed
from adapter.pipeline.cluster.namespacepods import NamespacePods
from adapter.pipeline.cluster.pod import Pod
from adapter.pipeline.cluster.selections import Selections
from adapter.pipeline.cluster.workload import Workload
from apiservice.kube.reflector import EventType
from apiservice.labels.selector import Selector
from apiservice.provider import GroupResource
from apiservice.runtime.steps import Steps, at_once, parts

Listener = Callable[[Pod | None, Pod | None], None]
"""Called with (before, after) once the index has changed; None for a pod that does not exist."""

_STEP: Final = 64
"""Pods that are taken in one step."""
_REF: Final = attrgetter("ref")


class PodIndex(Fed):
    """The pods, with a lookup for each kind of query. Answers are ordered by name."""

    def __init__(self) -> None:
        super().__init__()
        self._namespaces: dict[str, NamespacePods] = {}
        self._memo = Selections()
        self._nodes: dict[str, list[Pod]] = {}
        """A set would take 75 bytes for each pod."""
        self._addresses: dict[str, tuple[Pod, ...]] | None = None
        """None until somebody asks: it takes 200 bytes for each pod, and few sources need it."""
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
        pods = space.cached_pods(selector) if space else None
        return at_once(self.select_in_steps(namespace, selector)) if pods is None else pods

    def select_in_steps(self, namespace: str | None, selector: Selector) -> Steps[Sequence[Pod]]:
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
        return at_once(self.owned_by_in_steps(namespace, resource, name))

    def owned_by_in_steps(
        self, namespace: str, resource: GroupResource, name: str
    ) -> Steps[Sequence[Pod]]:
        """The same in steps."""
        space = self._namespaces.get(namespace)
        return (yield from space.owned_by(Workload(resource, name))) if space else ()

    def workloads(self, namespace: str, resource: GroupResource) -> Steps[Sequence[str]]:
        """Return the names of a namespace's workloads of one kind that own pods."""
        space = self._namespaces.get(namespace)
        owners = (yield from space.workloads()) if space else ()
        return sorted(owner.name for owner in owners if owner.resource == resource)

    def each(self) -> Iterator[Pod]:
        """Yield every pod, in no order. The pods may change between two steps."""
        for space in tuple(self._namespaces.values()):
            yield from tuple(space.pods.values())

    def on_node(self, node: str) -> Sequence[Pod]:
        """Return the pods bound to a node, finished ones included."""
        return sorted(self._nodes.get(node, ()), key=_REF)

    def at_address(self, address: str) -> Sequence[Pod]:
        """Return the unfinished pods that have an IP address; several share a node's address.

        The first call makes the index, unless :meth:`note_addresses` was called.
        """
        self.note_addresses()
        return (self._addresses or {}).get(address, ())

    def note_addresses(self) -> None:
        """Keep the pods by address from now on. This takes long if there are many pods already."""
        if self._addresses is None:
            self._addresses = {}
            for pod in self.each():
                self._readdress(None, pod)

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
        at_once(self.replace_in_steps(items))

    def replace_in_steps(self, items: Sequence[Pod]) -> Steps[None]:
        """The same in steps. Each step leaves the index as single events would."""
        listed_names: dict[str, set[str]] = {}
        for some in parts(items, _STEP):
            for pod in some:
                listed_names.setdefault(pod.namespace, set()).add(pod.name)
            yield
        for namespace in self.namespaces():
            space, stay = self._namespaces[namespace], listed_names.pop(namespace, set())
            for names in parts(tuple(space.pods), _STEP):
                for name in names:
                    if name not in stay:
                        self._remove(namespace, name)
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
            self._remove(item.namespace, item.name)
        else:
            self._put(item)

    def lose(self, namespace: str, name: str) -> None:
        """Remove the pod of that name, which can no longer be read."""
        self._remove(namespace, name)

    def intern(self, pod: Pod) -> Pod:
        """Return the pod of the index if it is equal, so that a list of all pods takes no copy."""
        old = self.get(pod.namespace, pod.name)
        return old if old is not None and old == pod else pod

    def _put(self, pod: Pod) -> None:
        space = self._namespaces.get(pod.namespace)
        if space is None:
            space = NamespacePods(pod.namespace, self._memo)
            self._namespaces[pod.namespace] = space
        old = space.pods.get(pod.name)
        if old is pod or old == pod:
            return
        if old is not None:
            # The key of the pods' table stays the first text.
            pod = Pod(pod.template, old.name, pod.node, pod.own)
        space.put(pod, old)
        self._place(old, pod)
        self._readdress(old, pod)
        self._note_change(old, pod)

    def _remove(self, namespace: str, name: str) -> None:
        space = self._namespaces.get(namespace)
        pod = space.pods.get(name) if space else None
        if space is None or pod is None:
            return
        space.remove(pod)
        if not space.pods:
            del self._namespaces[namespace]
        self._place(pod, None)
        self._readdress(pod, None)
        self._note_change(pod, None)

    def _place(self, old: Pod | None, new: Pod | None) -> None:
        """Move a pod between nodes."""
        if old is not None and old.node:
            pods = self._nodes[old.node]
            place = next(place for place, pod in enumerate(pods) if pod is old)
            if new is not None and new.node == old.node:
                pods[place] = new
                return
            del pods[place]
            if not pods:
                del self._nodes[old.node]
        if new is not None and new.node:
            self._nodes.setdefault(new.node, []).append(new)

    def _readdress(self, old: Pod | None, new: Pod | None) -> None:
        if self._addresses is None:
            return
        before, after = _address(old), _address(new)
        if before:
            others = tuple(pod for pod in self._addresses.get(before, ()) if pod is not old)
            if others:
                self._addresses[before] = others
            else:
                self._addresses.pop(before, None)
        if new is not None and after:
            self._addresses[after] = (*self._addresses.get(after, ()), new)

    def _note_change(self, old: Pod | None, new: Pod | None) -> None:
        self.version += 1
        for pod in (old, new):
            if pod is None:
                continue
            if pod.namespace in self._namespaces:
                self._changed_in[pod.namespace] = self.version
            else:
                self._changed_in.pop(pod.namespace, None)
            if not pod.node:
                continue
            if pod.node not in self._nodes:
                self._changes.pop(pod.node, None)  # names of autoscaled nodes are never used again
            elif pod.may_hold_gpu:
                self._changes[pod.node] = self.version
        for listener in tuple(self._listeners):
            listener(old, new)


def _address(pod: Pod | None) -> str:
    """Return no address for a finished pod: another pod may have it now."""
    return pod.ip if pod is not None and not pod.finished else ""
