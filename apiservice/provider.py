"""The interface between the generic API server and the source of its metric values.

A provider answers in steps, so that an answer about many objects does not block the event loop. The
built-in metrics are answered from memory, with the values at the time of the first step. A provider
that needs a network bounds the time for which a request waits. Absence is an empty answer or an
exception of :mod:`apiservice.errors`, never an invented number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, Protocol, TypeVar

from apiservice.labels.selector import Selector
from apiservice.runtime.steps import WaitingSteps

T = TypeVar("T")


class GroupResource(NamedTuple):
    """A resource and its API group, written ``deployments.apps``; the core group is ``""``."""

    resource: str
    group: str

    @classmethod
    def parse(cls, text: str) -> GroupResource:
        """Split at the first dot, as Go's ``schema.ParseGroupResource`` does."""
        resource, _, group = text.partition(".")
        return cls(resource, group)

    def __str__(self) -> str:
        return f"{self.resource}.{self.group}" if self.group else self.resource


@dataclass(frozen=True, slots=True)
class ObjectReference:
    """The Kubernetes object that a custom metric describes."""

    kind: str
    name: str
    namespace: str | None = None
    """None for cluster-scoped kinds."""
    api_version: str = "v1"


@dataclass(slots=True, eq=False)
class MetricValue:
    """One item of a MetricValueList. Treated as immutable; it caches its JSON.

    Providers return the same object while nothing about it changes, so that its JSON is rendered
    once for many requests.
    """

    described: ObjectReference
    metric: str
    milli: int
    """The value in thousandths, rounded to nearest; ``|milli| < 9.2e18`` (an int64)."""
    timestamp: int
    """Seconds since the epoch at which the value was *measured*, not served."""
    window: int | None
    """Whole seconds over which the value is a mean; None for a point-in-time value."""
    rendered: dict[str, bytes] = field(default_factory=dict, repr=False)
    """API version -> the item's JSON without a selector; filled by the renderer."""


@dataclass(frozen=True, slots=True)
class ExternalValue:
    """One item of an ExternalMetricValueList."""

    metric: str
    labels: Mapping[str, str]
    milli: int
    timestamp: int
    window: int | None


@dataclass(frozen=True, slots=True)
class MetricResource:
    """A row of discovery: a metric under a resource."""

    resource: GroupResource
    metric: str
    namespaced: bool
    """The same for every metric of one resource: the aggregator rejects a mixture."""


@dataclass(frozen=True, slots=True)
class ObjectQuery:
    """A request for custom metrics, parsed and validated."""

    resource: GroupResource
    namespace: str | None
    """None on cluster-scoped paths. On ``namespaces/NS/metrics/M`` the resource is
    ``namespaces``, this is None, and ``name`` is NS (None if NS is ``*``)."""
    name: str | None
    """None means ``*``: every object that ``object_selector`` matches."""
    metric: str
    object_selector: Selector
    """Selects objects by their labels. Selects everything if a name is given."""
    metric_selector: Selector


@dataclass(frozen=True, slots=True)
class ExternalQuery:
    """A request for external metrics; ``metric`` arrives in lower case from client-go."""

    namespace: str
    metric: str
    selector: Selector


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """Values, and how long they may be served again without a new query."""

    items: Sequence[T]
    expires: float
    """Epoch seconds after which an item is too old to be served; ``inf`` if never.
    The answer also expires when the provider's ``version`` changes."""


class CustomMetricsProvider(Protocol):
    """Serves ``custom.metrics.k8s.io``."""

    @property
    def version(self) -> int:
        """Changes whenever an answer could change for a reason other than age."""

    def resources(self) -> Sequence[MetricResource]:
        """Return everything that discovery lists; never empty."""

    def values(self, query: ObjectQuery, now: float) -> WaitingSteps[Answer[MetricValue]]:
        """Return the values that match, at most one per object.

        Raises:
            MetricUnknown: there is no such metric for the resource.
            MetricNotFound: the object is not known, or the one named object has no reliable value.
            BadQuery: the query asks for what cannot be answered, such as a selector over
                labels that are not watched.
            Unavailable: the data needed has never been read.
        """


class ExternalMetricsProvider(Protocol):
    """Serves ``external.metrics.k8s.io``."""

    @property
    def version(self) -> int:
        """Changes whenever an answer could change for a reason other than age."""

    def metrics(self) -> Sequence[str]:
        """Return every metric's name, in lower case; never empty."""

    def values(self, query: ExternalQuery, now: float) -> WaitingSteps[Answer[ExternalValue]]:
        """Return the series that match; raises as :meth:`CustomMetricsProvider.values` does."""
