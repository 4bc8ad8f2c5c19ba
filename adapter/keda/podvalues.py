"""What is known of pods, asked once per change and not once per trigger.

Fifteen hundred triggers may ask about the same pods, and a page of an exporter ends what
all of them were told, although it changes few pods.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Final, NamedTuple, Protocol
from weakref import WeakValueDictionary

from adapter.aggregate import PodValue
from adapter.cluster.pod import Pod
from adapter.metric import Metric, Scope
from adapter.reading import Absence, Reading
from apiservice.selector import Selector

GONE: Final = Absence("gone")
"""The pod has finished or is being deleted."""
NO_GPU: Final = Absence("no_gpu")
"""The metric is of GPUs, and the pod holds none by its spec."""

_LIMIT: Final = 65536
"""Values remembered: metric selectors come from users."""


class PodAnswers(Protocol):
    """Values as of one moment."""

    def pod(self, pod: Pod, metric: str, selector: Selector, now: float) -> Reading | Absence:
        """A metric's value for a pod over the devices selected, or why there is none."""


class Known(Protocol):
    """The values known now."""

    @property
    def snapshot(self) -> PodAnswers:
        """They, as of one moment."""

    @property
    def version(self) -> int:
        """Grows with every change of them."""


class Found(NamedTuple):
    """What is known of some pods."""

    values: Sequence[float]
    others: Sequence[PodValue]
    """Pods without a value, finished and deleted ones left out."""
    until: float
    """Epoch seconds at which a value's age may end it."""


class PodRow:
    """Pods in an order, looked up at once: one by one took most of an answer's time."""

    __slots__ = ("__weakref__", "_pick", "keys", "pods")

    def __init__(self, pods: Sequence[Pod], keys: tuple[int, ...]) -> None:
        self.pods = pods
        self.keys = keys
        """Their identities, which belong to nobody else while the pods are held here."""
        self._pick: Callable[[Mapping[int, float]], tuple[float, ...]] | None = (
            itemgetter(*keys) if len(keys) > 1 else None  # of one key it makes no tuple
        )

    def of(self, values: Mapping[int, float]) -> tuple[float, ...]:
        """The value of each.

        Raises:
            KeyError: one has none.
        """
        if self._pick is None:
            return tuple(values[key] for key in self.keys)
        return self._pick(values)


class _Column:
    """One metric over some devices. Pods are known by identity: one that changed is another."""

    __slots__ = ("_held", "lacking", "until", "values")

    def __init__(self) -> None:
        self.values: dict[int, float] = {}
        self.lacking: dict[int, PodValue] = {}
        self.until = float("inf")
        """When the first of the values ends: all are asked for anew then."""
        self._held: list[Pod] = []
        """Lest an identity be given to another pod."""

    def __len__(self) -> int:
        return len(self._held)

    def put(self, pod: Pod, value: Reading | Absence) -> None:
        self._held.append(pod)
        if isinstance(value, Reading):
            self.values[id(pod)] = value.value
            self.until = min(self.until, value.expires)
        else:
            self.lacking[id(pod)] = PodValue(pod, value)


class PodValues:
    """Belongs to one event loop.

    Args:
        known: the values.
        limit: how many are remembered.
    """

    def __init__(self, known: Known, limit: int = _LIMIT) -> None:
        self._known = known
        self._limit = limit
        self._version = -1
        self._asked = 0.0
        self._size = 0
        self._columns: dict[tuple[str, Selector], _Column] = {}
        self._rows: WeakValueDictionary[tuple[int, ...], PodRow] = WeakValueDictionary()
        """Many questions may be about the same pods."""

    def row(self, pods: Sequence[Pod]) -> PodRow:
        """The row of these pods, to be kept by whoever asks about them."""
        keys = tuple(map(id, pods))
        found = self._rows.get(keys)
        if found is None:
            found = self._rows[keys] = PodRow(pods, keys)
        return found

    def of(self, row: PodRow, metric: Metric, devices: Selector, version: int, now: float) -> Found:
        """What is known of each pod; no value is past its age.

        Args:
            row: the pods as the cluster has them now.
            metric: of the catalogue.
            devices: over the devices' labels.
            version: grows with every change of a value or a pod.
            now: epoch seconds.
        """
        column = self._column((metric.name, devices), version, now)
        try:
            return Found(row.of(column.values), (), column.until)
        except KeyError:
            self._fill(column, row.pods, metric, devices, now)
        values = tuple(column.values[key] for key in row.keys if key in column.values)
        others = [column.lacking[key] for key in row.keys if key in column.lacking]
        return Found(values, [other for other in others if other.value is not GONE], column.until)

    def _column(self, key: tuple[str, Selector], version: int, now: float) -> _Column:
        if version != self._version or now < self._asked or self._size > self._limit:
            self._columns.clear()
            self._version, self._size = version, 0
        self._asked = now
        column = self._columns.get(key)
        if column is None or column.until <= now:
            self._size -= 0 if column is None else len(column)
            column = self._columns[key] = _Column()
        return column

    def _fill(
        self, column: _Column, pods: Sequence[Pod], metric: Metric, devices: Selector, now: float
    ) -> None:
        snapshot, of_pods = self._known.snapshot, metric.scope is Scope.SERVER
        for pod in pods:
            if id(pod) in column.values or id(pod) in column.lacking:
                continue
            if pod.finished or pod.deleting:
                column.put(pod, GONE)
            elif not of_pods and not pod.holds_gpu:
                column.put(pod, NO_GPU)
            else:
                column.put(pod, snapshot.pod(pod, metric.name, devices, now))
            self._size += 1
