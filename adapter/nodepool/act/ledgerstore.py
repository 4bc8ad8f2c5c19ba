"""Store the ledger in a ConfigMap, so that it survives a restart.

The leader writes it every few minutes, and reads it when it starts to lead. It does not overwrite
a ConfigMap that it cannot read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec
import structlog

from adapter.config.settings.nodepool import HistorySettings
from adapter.nodepool.act.serverside import KubeObject, WriteError, Writer
from adapter.nodepool.learn.boots import KEPT, BootTimes
from adapter.nodepool.learn.historyqueries import read_back
from adapter.nodepool.learn.historytext import decode, encode
from adapter.nodepool.learn.ledger import Ledger
from adapter.nodepool.model.demand import JOB_QUEUE, WorkloadRef
from adapter.nodepool.model.names import MANAGER
from adapter.nodepool.seen.headroom import read_shape, shape_text
from adapter.pipeline.sources.prometheus.options import PrometheusOptions

log = structlog.get_logger(__name__)

NAME: Final = MANAGER
_BYTES: Final = 900_000
"""Bytes of the ConfigMap's 1 MiB. Beyond that, the least recently updated histories are dropped."""


class _StoredWorkload(msgspec.Struct, omit_defaults=True):
    namespace: str
    kind: str
    name: str
    history: str
    shape: str = ""
    """Shape of a queue of Jobs, which may be empty now."""


class _Spent(msgspec.Struct):
    day: int
    gpu_hours: dict[str, float]
    counted_at: float | None = None


class LedgerStore:
    """Reads and writes one ledger.

    Args:
        past: returns how the Prometheus is reached that scrapes this controller; raises
            CredentialError. None: there is none.
    """

    def __init__(
        self,
        writer: Writer,
        ledger: Ledger,
        namespace: str,
        settings: HistorySettings,
        past: Callable[[], PrometheusOptions] | None = None,
    ) -> None:
        self._past = past
        self._settings = settings
        self._writer = writer
        self._ledger = ledger
        self._namespace = namespace
        self._read = False
        self.problem = ""
        """Why the ledger is not read or stored; empty if it is."""
        self._written_at: float | None = None

    def forget(self) -> None:
        """Read again before the next write: another replica may have been the leader meanwhile."""
        self._read = False

    async def read(self, now: float) -> bool:
        """Load the stored ledger once, and add histories from Prometheus.

        Returns:
            Whether it was read now. A failure is logged, and the next round tries again.
        """
        if self._read:
            return False
        try:
            configmap = await self._writer.read(_configmap(self._namespace, {}))
        except WriteError as error:
            if str(error) != self.problem:
                log.warning("stored history cannot be read", error=str(error))
            self.problem = str(error)
            return False
        self._read, self.problem = True, ""
        self._written_at = now
        restore(self._ledger, (configmap or {}).get("data") or {})
        past = await read_back(self._past, now) if self._past else {}
        for workload, history in past.items():
            self._ledger.histories.setdefault(workload, history)
        return True

    async def write(self, now: float) -> None:
        """Store the ledger if the interval has passed."""
        due = self._written_at is None or now - self._written_at >= self._settings.interval
        if not self._read or not due:
            return
        try:
            await self._writer.apply(_configmap(self._namespace, dump(self._ledger)))
            self.problem = ""
        except WriteError as error:
            log.warning("history not stored", error=str(error))
            self.problem = str(error)
        # Wait a full interval after a failure too.
        self._written_at = now


def dump(ledger: Ledger) -> dict[str, str]:
    """Return the ledger as the data of a ConfigMap."""
    rows: list[bytes] = []
    size = 0
    for row in _rows(ledger):
        text = msgspec.json.encode(row)
        size += len(text) + 1
        if size > _BYTES:
            break
        rows.append(text)
    spent = _Spent(ledger.day, dict(ledger.gpu_hours), ledger.counted_at)
    return {
        "workloads": b"\n".join(reversed(rows)).decode(),
        "boots": msgspec.json.encode(ledger.boots.seconds).decode(),
        "spent": msgspec.json.encode(spent).decode(),
    }


def restore(ledger: Ledger, data: dict[str, str]) -> None:
    """Load the data of the ConfigMap. Log and leave out the parts that cannot be read."""
    for line in data.get("workloads", "").splitlines():
        try:
            row = msgspec.json.decode(line, type=_StoredWorkload)
            shape = read_shape(row.shape, ledger.resources) if row.shape else None
        except (msgspec.MsgspecError, ValueError) as error:
            log.warning("stored history ignored", error=str(error))
            continue
        ref = WorkloadRef(row.namespace, row.kind, row.name)
        stored = decode(row.history)
        if stored.problem is not None:
            log.warning("stored history ignored", workload=ref, error=stored.problem)
            continue
        ledger.histories[ref] = stored.history
        if stored.history.recent:
            ledger.known_at[ref] = stored.history.recent[-1].time
        if shape is not None:
            ledger.queues[ref.namespace, ref.name] = shape
    boots = _json(data, "boots", dict[str, list[float]])
    if boots:
        latest = {pool: tuple(seconds[-KEPT:]) for pool, seconds in boots.items()}
        ledger.boots = BootTimes(latest)
    spent = _json(data, "spent", _Spent)
    if spent is not None:
        ledger.day, ledger.gpu_hours = spent.day, spent.gpu_hours
        ledger.counted_at = spent.counted_at


def _json(data: dict[str, str], key: str, kind: Any) -> Any:
    try:
        return msgspec.json.decode(data[key], type=kind) if key in data else None
    except msgspec.MsgspecError as error:
        log.warning("part of the stored history ignored", part=key, error=str(error))
        return None


def _rows(ledger: Ledger) -> Iterator[_StoredWorkload]:
    """Return the histories, newest first."""
    for ref, history in reversed(list(ledger.histories.items())):
        shape = ledger.queues.get((ref.namespace, ref.name)) if ref.kind == JOB_QUEUE else None
        yield _StoredWorkload(*ref, encode(history), shape_text(shape) if shape is not None else "")


def _configmap(namespace: str, data: dict[str, str]) -> KubeObject:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": NAME,
            "namespace": namespace,
            "labels": {"app.kubernetes.io/managed-by": MANAGER},
        },
        "data": data,
    }
