"""What ``top`` reads of a cluster: lists, each with its own failure."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any, Final, Literal, get_args
from urllib.parse import quote

from adapter.answers.causes import drains
from adapter.pipeline.cluster.evictions import UNSPACED_EVENTS as EVENTS
from adapter.pipeline.cluster.objects import SeenEvent, read
from adapter.tools.client.access import Api
from adapter.tools.client.errors import ClientError, odd_answers
from adapter.tools.client.histories import HpaName, HpaPast, read_histories
from adapter.tools.client.tables import ObjectTable
from adapter.tools.overview.columns import Columns
from adapter.tools.overview.gpuclasses import count_classes, gpu_classes, silent_gpus
from adapter.tools.overview.hpas import HpaSummary, summarize, workload_pods
from adapter.tools.overview.scalers import ReadScalers, read_scalers
from adapter.tools.overview.verdict import ClusterVerdict, PodCounts, pod_counts, verdict
from adapter.tools.overview.viewlists import ViewList, read_view_list

ListName = Literal[
    "gpus", "gpunodes", "gpupods", "gpuworkloads", "hpas", "nodeevents", "gpuhistories", "gpupools"
]
LISTS: Final[tuple[ListName, ...]] = get_args(ListName)
_MINUTE: Final = 60.0
"""Seconds for which the past is not read again."""
_STEP: Final = 200
"""HPAs after which keys are looked at."""


@dataclass(frozen=True, slots=True)
class ReadScope:
    """Which objects are read."""

    namespace: str = ""
    """Of pods, workloads and HPAs; empty for all namespaces."""
    labels: str = ""
    """A label selector."""


@dataclass(frozen=True, slots=True)
class ClusterLists:
    """The lists as they were last read. A list that fails keeps its last rows."""

    tables: Mapping[ListName, ObjectTable] = field(default_factory=dict)
    """Those of the view API."""
    hpas: Sequence[HpaSummary] | None = None
    problems: Mapping[ListName, ClientError] = field(default_factory=dict)
    """Why the last look at a list failed."""
    at: float = 0.0
    """Epoch seconds of the last look."""
    took: float = 0.0
    """Seconds that it took."""
    read_hpas: ReadScalers | None = None
    """The HPAs before they were judged."""
    kept: Mapping[str, str] | None = None
    """Node -> what an autoscaler says keeps it from removing the node."""
    pasts: Mapping[HpaName, HpaPast] | None = None
    """What HPAs were, as ``serve`` has noted it; read once a minute."""
    pasts_at: float = 0.0
    """Epoch seconds at which they were read."""
    labels: str = ""
    """The label selector of all lists."""

    def has(self, name: ListName) -> bool:
        """Return whether a list has been read."""
        if name == "nodeevents":
            return self.kept is not None
        if name == "gpuhistories":
            return self.pasts is not None
        return self.hpas is not None if name == "hpas" else name in self.tables

    @property
    def shows(self) -> bool:
        """Whether a list with rows has been read; events alone show nothing."""
        return bool(self.tables) or self.hpas is not None

    @property
    def texts(self) -> list[str]:
        """The problems, each once."""
        return list(dict.fromkeys(str(error) for error in self.problems.values()))

    def verdict(self) -> ClusterVerdict:
        """Return the verdict about what has been read."""
        pods, gpus = self.tables.get("gpupods"), self.tables.get("gpus")
        nodes = self.tables.get("gpunodes")
        cluster_verdict = verdict(
            self.hpas,
            None if pods is None else _pods(Columns(pods)),
            None if gpus is None else count_classes(gpu_classes(Columns(gpus))),
            silent=0 if nodes is None else silent_gpus(Columns(nodes)),
        )
        if cluster_verdict.level == "empty":
            return replace(cluster_verdict, text=self.none("object", cluster_verdict.text))
        return cluster_verdict

    def none(self, noun: str, every: str) -> str:
        """Return what stands in place of rows.

        Args:
            noun: what a row is, as the selector selects it.
            every: said without a selector.
        """
        return f"No {noun} matches -l {self.labels}." if self.labels else every


def _pods(by: Columns) -> PodCounts:
    return pod_counts(by.cells("Why-Not"), by.cells("Node"))


async def look(
    api: Api, scope: ReadScope, names: Sequence[ListName], past: ClusterLists
) -> ClusterLists:
    """Read lists at the same time. A failure is kept beside the rows of an earlier look."""
    started = time.monotonic()
    fresh = 0 <= time.time() - past.pasts_at < _MINUTE
    names = [name for name in names if name != "gpuhistories" or not fresh]
    answers = await asyncio.gather(*(_read(api, name, scope) for name in names))
    tables, problems = dict(past.tables), dict(past.problems)
    hpas, kept, pasts, pasts_at = past.read_hpas, past.kept, past.pasts, past.pasts_at
    for name, answer in zip(names, answers, strict=True):
        problems.pop(name, None)
        if isinstance(answer, ClientError):
            problems[name] = answer
        elif isinstance(answer, ObjectTable):
            tables[name] = answer
        elif name == "nodeevents":
            kept = answer
        elif name == "gpuhistories":
            pasts, pasts_at = answer, time.time()
        else:
            hpas = answer
            if answer.left_out:
                problems[name] = ClientError(answer.left_out)
    now = time.time()
    return ClusterLists(
        tables,
        None if hpas is None else await _judge_hpas(hpas, tables.get("gpuworkloads"), now, scope),
        problems,
        now,
        time.monotonic() - started,
        hpas,
        kept,
        pasts,
        pasts_at,
        scope.labels,
    )


async def _judge_hpas(
    read: ReadScalers, workloads: ObjectTable | None, now: float, scope: ReadScope
) -> list[HpaSummary]:
    summaries: list[HpaSummary] = []
    pods = workload_pods(workloads, now)
    for row in summarize(read, pods, now, complete=not scope.labels):
        summaries.append(row)
        if not len(summaries) % _STEP:
            await asyncio.sleep(0)
    return summaries


async def _read(api: Api, name: ListName, scope: ReadScope) -> Any:
    """Return the rows of a list, or the failure."""
    try:
        with odd_answers():
            if name == "hpas":
                return await read_scalers(api, _within(scope), labels=scope.labels)
            if name == "gpuhistories":
                return await _read_pasts(api, scope)
            return await (
                _read_kept_nodes(api) if name == "nodeevents" else _read_table(api, name, scope)
            )
    except ClientError as error:
        return error


async def _read_pasts(api: Api, scope: ReadScope) -> dict[HpaName, HpaPast]:
    """Return what HPAs were; nothing where ``serve`` is of a release that does not keep it."""
    try:
        return await read_histories(api, _within(scope))
    except ClientError as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
        return {}


async def _read_kept_nodes(api: Api) -> dict[str, str]:
    """Return node -> what an autoscaler says keeps it."""
    events: list[SeenEvent] = []
    for reason in drains.REASONS:
        fields = f"involvedObject.kind=Node,reason={reason}"
        try:
            events += [read(row, SeenEvent) for row in await api.list(EVENTS, fields=fields)]
        except ClientError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
    return drains.blocked_nodes(events, time.time())


async def _read_table(api: Api, name: ViewList, scope: ReadScope) -> ObjectTable:
    within = "" if name in ("gpus", "gpunodes", "gpupools") else _within(scope)
    return await read_view_list(api, name, within, labels=scope.labels)


def _within(scope: ReadScope) -> str:
    return f"/namespaces/{quote(scope.namespace, safe='')}" if scope.namespace else ""
