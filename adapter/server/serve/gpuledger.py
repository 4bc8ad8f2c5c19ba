"""Count the GPU-seconds that pods hold: used, idle and unknown, by namespace and workload.

Each count of :mod:`adapter.server.serve.coverage` adds the time since the last one, with the value
that each pod has then. Time during which `serve` did not count is not added at all: a restart, an
API server that does not answer, or a count that comes later than :data:`LONGEST` allows.

The number of series is bounded. The accounts whose pods hold most GPUs have series of their own,
and the rest counts as one account ``other``. A new account is shown with 0 first, and with its
first seconds at the next count, because a query of an increase does not see what a series begins
with.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from heapq import nsmallest
from typing import Final, NamedTuple

from adapter.answers.view.owner import topmost_workload
from adapter.config.settings.accounting import AccountingSettings
from adapter.pipeline.attribution.gpuuse import GpuUse, gpu_use
from adapter.pipeline.attribution.reading import Absence, Reading
from adapter.pipeline.cluster.nodelabels import INSTANCE_TYPE, capacity_type
from adapter.pipeline.cluster.pod import Pod
from adapter.pipeline.store.snapshot import Snapshot
from apiservice.selfmetrics.families import OTHER

STATES: Final = GpuUse._fields
LONGEST: Final = 3.0
"""Of the usual times between two counts: what a later count adds at most."""
_KEPT: Final = 3600.0
"""Seconds for which an account without pods keeps its series."""
_STAYS: Final = 2.0
"""An account with series keeps them until another one holds so many times as much."""
_NOTHING: Final = GpuUse(0.0, 0.0, 0.0)


class Account(NamedTuple):
    """Whose GPU-seconds, and of which GPUs. The fields are labels."""

    namespace: str
    workload: str
    """``Deployment/llm``, or ``Pod/NAME`` of a bare pod; empty if namespaces are counted."""
    holder: str
    """Empty unless pods are counted."""
    team: str
    """The pods' label; empty without it."""
    model: str
    """As the node's labels name it, or else the exporter."""
    instance_type: str
    """Of the node; empty without the label."""
    capacity: str
    """``spot``, ``on-demand``, or as the node's labels say; empty if they do not."""


REST: Final = Account(*[OTHER] * len(Account._fields))


class _Total:
    """What one account has counted."""

    __slots__ = ("last", "pending", "shown")

    def __init__(self) -> None:
        self.shown = _NOTHING
        """In seconds."""
        self.pending = _NOTHING
        """Not yet shown."""
        self.last = 0.0
        """Epoch seconds of the last count with a pod of it."""


class GpuLedger:
    """Counts GPU-seconds.

    Args:
        settings: by what to count.
        clock: epoch seconds.
    """

    def __init__(
        self, settings: AccountingSettings, clock: Callable[[], float] = time.time
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._last: float | None = None
        self._now = 0.0
        self._span = 0.0
        self._usual = 0.0
        self._seen: dict[Account, tuple[float, GpuUse]] = {}
        self._totals: dict[Account, _Total] = {}
        self._rest = _NOTHING
        self._unsized = 0
        self.unsized = 0
        """Pods of the last count that hold GPUs, and it is not known how much of them."""

    def begin(self, usual: float) -> None:
        """Begin a count.

        Args:
            usual: seconds between two counts.
        """
        self._now = self._clock()
        self._usual = usual
        past = 0.0 if self._last is None else self._now - self._last
        self._span = min(max(past, 0.0), LONGEST * usual)
        self._seen, self._unsized = {}, 0

    def add(self, pod: Pod, value: Reading | Absence, snapshot: Snapshot) -> None:
        """Count a pod that holds a GPU.

        Args:
            pod: on a node, and not finished.
            value: its ``gpu_utilization``.
            snapshot: with its node.
        """
        if self._settings.by == "off" or pod.placeholder:
            return
        facts = snapshot.cluster.facts(pod.node)
        use = gpu_use(pod, facts, value)
        if use is None:
            self._unsized += 1
            return
        seconds = max(0.0, min(self._span, self._now - pod.born))
        model = facts.model
        if not model and isinstance(value, Reading):
            model = value.devices[0].labels.get("model", "")
        account = self._account(pod, model, snapshot)
        gpus, before = self._seen.get(account, (0.0, _NOTHING))
        self._seen[account] = gpus + sum(use), _sum(before, use, seconds)

    def end(self) -> None:
        """End the count: show what it added."""
        self._last, self.unsized = self._now, self._unsized
        chosen = self._choose_accounts()
        for account in self._totals.keys() - chosen:
            # Nobody would see what its series does not show yet.
            self._rest = _sum(self._rest, self._totals.pop(account).pending)
        for past in self._totals.values():
            past.shown, past.pending = _sum(past.shown, past.pending), _NOTHING
        for account, (_, use) in self._seen.items():
            total = self._totals.get(account)
            if total is not None:
                total.shown = _sum(total.shown, use)
            elif account in chosen:
                total = self._totals[account] = _Total()
                total.pending = use
            else:
                self._rest = _sum(self._rest, use)
                continue
            total.last = self._now
        self._seen = {}

    def rows(self) -> Iterator[tuple[tuple[str, ...], float]]:
        """Yield the labels and the seconds of each account and state, those of the rest last."""
        if self._settings.by == "off":
            return
        for account, total in self._totals.items():
            yield from _rows(account, total.shown)
        yield from _rows(REST, self._rest)

    def _account(self, pod: Pod, model: str, snapshot: Snapshot) -> Account:
        labels = snapshot.cluster.labels(pod.node)
        by, above = self._settings.by, topmost_workload(pod)
        workload = f"{above.kind}/{above.name}" if above is not None else f"Pod/{pod.name}"
        return Account(
            pod.namespace,
            "" if by == "namespace" else workload,
            pod.name if by == "pod" else "",
            pod.labels.get(self._settings.team_label, ""),
            model,
            labels.get(INSTANCE_TYPE, ""),
            capacity_type(labels),
        )

    def _choose_accounts(self) -> set[Account]:
        """Return the accounts that have series of their own.

        These are those that hold most GPUs, and then those that held some last.
        """
        ranks = {
            account: (0.0, total.last)
            for account, total in self._totals.items()
            if self._now - total.last <= _KEPT
        }
        for account, (gpus, _) in self._seen.items():
            stays = _STAYS if account in self._totals else 1.0
            ranks[account] = gpus * stays, self._now
        most = self._settings.accounts
        if len(ranks) <= most:
            return set(ranks)

        def place(account: Account) -> tuple[float, float, Account]:
            gpus, last = ranks[account]
            return -gpus, -last, account

        return set(nsmallest(most, ranks, key=place))


def _sum(before: GpuUse, more: GpuUse, times: float = 1.0) -> GpuUse:
    pairs = zip(before, more, strict=True)
    return GpuUse(*[amount + added * times for amount, added in pairs])


def _rows(account: Account, seconds: GpuUse) -> Iterator[tuple[tuple[str, ...], float]]:
    for state, number in zip(STATES, seconds, strict=True):
        yield (*account, state), number
