"""Decide which pods count as exporters: which of those with an exporter's labels are scraped.

Anyone who may create pods may write labels. Three rules apply, in this order:

1. A rule of the settings with a namespace is trusted: all its pods are scraped.
2. A pod that mounts a directory of its node takes precedence over one that does not. Exporters need
   such a mount to know which pod has which device, and the Pod Security Standards forbid it to
   tenants: a user who may mount directories of nodes already controls these nodes. While one such
   exporter exists in the cluster, pods without a mount are left out on all nodes. They stay out
   for some time afterwards, so that a restart of the exporter does not admit them.
3. Of the remaining pods, one of each family is scraped on a node: of several that mount a
   directory, one whose page names pods before one whose page names none; a DaemonSet's pod before
   others, then the oldest.

Whether a page names pods is known only of those that are scraped. So if one names none although a
pod on its node holds a GPU, the next one is tried, for some time later again.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from adapter.pipeline.cluster.pod import PodRef
from adapter.pipeline.sources.scrape.target import ScrapeTarget

LINGER: Final = 600.0
"""Seconds for which pods without a mount stay out after the last exporter with one is gone."""
RETRY: Final = 600.0
"""Seconds after which an exporter whose page named no pod is tried again."""
ANOTHER: Final = "another_exporter_on_node"
NO_HOST_PATH: Final = "no_host_path"


class ExporterPod(NamedTuple):
    """A pod that carries an exporter's labels, from its creation until it is finished."""

    pod: PodRef
    uid: str
    node: str
    rule: str
    family: str
    """What the pages of a built-in rule describe; empty for a rule of the settings."""
    pinned: bool
    """The rule names the pod's namespace."""
    mounts: bool
    """The pod mounts a directory of its node."""
    daemon: bool
    """A DaemonSet controls the pod."""
    born: float
    """Epoch seconds of its creation; 0 if unknown."""
    target: ScrapeTarget | None
    """Its page; None while it cannot be scraped: it does not run, terminates, or has no port."""

    @property
    def proven(self) -> bool:
        """Whether there is more evidence than labels that this is an exporter."""
        return self.pinned or self.mounts

    @property
    def scope(self) -> str:
        """The exporters whose proof counts against this one.

        For a built-in rule, whose labels are public, these are all exporters; for a rule of the
        settings, those of the same rule.
        """
        return "" if self.family else self.rule

    @property
    def kind(self) -> str:
        """One pod of each kind is scraped on a node. Without proof, the family is unverified."""
        if self.scope:
            return f"rule {self.scope}"
        return self.family if self.proven else ""


LeftOut = Callable[[ExporterPod, str, PodRef | None], None]
"""Is called with a pod that is left out, the reason, and the pod that is scraped instead."""


@dataclass(slots=True)
class _Node:
    exporters: dict[PodRef, ExporterPod] = field(default_factory=dict)
    """Claims with a page."""
    scraped: dict[PodRef, ScrapeTarget] = field(default_factory=dict)
    left_out: dict[PodRef, tuple[str, str]] = field(default_factory=dict)
    """Pod -> its UID, and why it is not scraped."""


class ExporterSelection:
    """Follows the exporters of all nodes, and decides which targets are scraped.

    The cost of a change is proportional to the exporters on its node. All nodes are checked only
    when proof appears or disappears. Nothing is decided before ``decide``, so that the order in
    which the pods are listed has no influence.
    """

    def __init__(
        self,
        added: Callable[[ScrapeTarget], None],
        removed: Callable[[ScrapeTarget], None],
        left_out: LeftOut,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._added, self._removed, self._left_out = added, removed, left_out
        self._clock = clock
        self._pods: dict[PodRef, ExporterPod] = {}
        self._nodes: dict[str, _Node] = {}
        self._proofs: Counter[str] = Counter()
        """Scope -> number of proven exporter pods."""
        self._ends: dict[str, float] = {}
        """Scope without a proven exporter pod -> when its earlier proof expires."""
        self._mute: dict[tuple[PodRef, str], float] = {}
        """Exporter's pod and UID -> until when its page counts as one that names no pod."""
        self._naming: set[tuple[PodRef, str]] = set()
        """Exporter's pod and UID, of those whose last page named pods."""
        self._deciding = False

    def is_contested(self, pod: PodRef) -> bool:
        """Return whether an exporter is scraped instead of another one of its kind."""
        exporter = self._pods.get(pod)
        node = None if exporter is None else self._nodes.get(exporter.node)
        return node is not None and any(why == ANOTHER for _, why in node.left_out.values())

    def note_page(self, pod: PodRef, *, names_pods: bool) -> None:
        """Note whether an exporter's page names pods, and choose again among those of its node."""
        exporter = self._pods.get(pod)
        if exporter is None:
            return
        key = (pod, exporter.uid)
        if names_pods:
            self._naming.add(key)
            self._mute.pop(key, None)
        else:
            self._naming.discard(key)
            self._mute[key] = self._clock() + RETRY
        self._choose((exporter.node,))

    def decide(self) -> None:
        """Choose among the known exporters, and follow every change from now on."""
        if not self._deciding:
            self._deciding = True
            self._choose(tuple(self._nodes))

    def change(self, pod: PodRef, after: ExporterPod | None) -> None:
        """Add, change or (with None) remove the exporter pod."""
        before = self._pods.pop(pod, None)
        if after is not None:
            self._pods[pod] = after
        if before == after:
            return
        proven = self._scopes()
        nodes = {exporter.node: None for exporter in (before, after) if exporter is not None}
        if before is not None and (after is None or after.uid != before.uid):
            self._mute.pop((pod, before.uid), None)
            self._naming.discard((pod, before.uid))
        if before is not None:
            self._count(before, -1)
            self._node(before).exporters.pop(pod, None)
        if after is not None:
            self._count(after, 1)
            if after.target is not None:
                self._node(after).exporters[pod] = after
        self._choose(tuple(nodes) if self._scopes() == proven else tuple(self._nodes))

    def pass_time(self) -> None:
        """Expire the proof of scopes that have had no proven exporter pod for long."""
        if self._ends:
            now = self._clock()
            ended = [scope for scope, end in self._ends.items() if end <= now]
            for scope in ended:
                del self._ends[scope]
            if ended:
                self._choose(tuple(self._nodes))

    def _scopes(self) -> frozenset[str]:
        return frozenset({*self._proofs, *self._ends})

    def _count(self, exporter: ExporterPod, step: int) -> None:
        if not exporter.proven:
            return
        for scope in {"", exporter.scope}:
            self._proofs[scope] += step
            if self._proofs[scope]:
                self._ends.pop(scope, None)
            else:
                del self._proofs[scope]
                self._ends[scope] = self._clock() + LINGER

    def _node(self, exporter: ExporterPod) -> _Node:
        return self._nodes.setdefault(exporter.node, _Node())

    def _choose(self, names: Iterable[str]) -> None:
        if not self._deciding:
            return
        for name in names:
            node = self._nodes.get(name)
            if node is None:
                continue
            scraped = self._best(node)
            before, node.scraped = node.scraped, scraped
            for pod, target in before.items():
                if scraped.get(pod) != target:
                    self._removed(target)
            for pod, target in scraped.items():
                if before.get(pod) != target:
                    self._added(target)
            if not node.exporters:
                del self._nodes[name]

    def _best(self, node: _Node) -> dict[PodRef, ScrapeTarget]:
        taken: dict[str, ExporterPod] = {}
        scraped: dict[PodRef, ScrapeTarget] = {}
        left_out: dict[PodRef, tuple[str, str]] = {}
        for exporter in sorted(node.exporters.values(), key=self._rank):
            if exporter.target is None:
                continue
            if not exporter.proven and (
                exporter.scope in self._proofs or exporter.scope in self._ends
            ):
                left_out[exporter.pod] = exporter.uid, NO_HOST_PATH
            elif not exporter.pinned and taken.setdefault(exporter.kind, exporter) is not exporter:
                left_out[exporter.pod] = exporter.uid, ANOTHER
            else:
                scraped[exporter.pod] = exporter.target
        for pod, (uid, reason) in left_out.items():
            if node.left_out.get(pod) != (uid, reason):
                other = taken.get(node.exporters[pod].kind) if reason == ANOTHER else None
                instead = other.pod if other else next(iter(scraped), None)
                self._left_out(node.exporters[pod], reason, instead)
        node.left_out = left_out
        return scraped

    def _rank(self, exporter: ExporterPod) -> tuple[bool, int, bool, float, PodRef, str]:
        """Return the sort key: the smallest comes first."""
        return (
            not exporter.proven,
            self._names_nobody(exporter),
            not exporter.daemon,
            exporter.born or float("inf"),
            exporter.pod,
            exporter.uid,
        )

    def _names_nobody(self, exporter: ExporterPod) -> int:
        """Return 0 if an exporter's page names pods, 2 if it names none, and 1 if that is unknown.

        A page without proof does not count: its author writes any names.
        """
        key = (exporter.pod, exporter.uid)
        if not exporter.proven or key in self._naming:
            return 0
        return 2 if self._mute.get(key, 0.0) > self._clock() else 1
