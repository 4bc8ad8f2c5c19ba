"""The selectors of metrics in HPAs, and of triggers for the adapter in ScaledObjects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from adapter.pipeline.attribution.serieslabels import parse_selector, selector_error
from adapter.pipeline.catalog.promise import SLO_RATIO
from adapter.pipeline.cluster.fixes import Fix
from adapter.tools.doctor import servedmetrics
from adapter.tools.doctor.askedmetrics import OURS
from adapter.tools.doctor.facts import Facts, Hpa, HpaMetric
from apiservice.labels.selector import Selector, SelectorError, parse


class InvalidSelector(NamedTuple):
    """A selector of a metric that the HPA controller cannot use."""

    hpa: Hpa
    metric: HpaMetric
    why: str


def invalid_selectors(facts: Facts) -> Iterator[InvalidSelector]:
    """Yield the selectors of HPAs that are not valid, of any metric; raises UnreadError.

    The API server does not look at them (``validateMetricIdentifier`` of
    ``pkg/apis/autoscaling/validation/validation.go``). The controller refuses the metric at each
    sync (``metav1.LabelSelectorAsSelector`` in ``horizontal.go`` and ``replica_calculator.go``).
    """
    for hpa in facts.hpas.read():
        for metric in hpa.metrics if not hpa.owner else ():
            if metric.type in OURS and (why := selector_error(metric.selector)):
                yield InvalidSelector(hpa, metric, why)


class SeenSelector(NamedTuple):
    """A selector of series in a manifest."""

    subject: str
    metric: str
    at: str
    """The path of the selector."""
    selector: Selector
    kind: str
    """Type of the metric; ``Object`` for that of a trigger, which selects devices too."""
    command: str | Fix
    """Opens the manifest in an editor; empty for a file."""


def selectors(facts: Facts) -> Iterator[SeenSelector]:
    """Yield the valid selectors of series of HPAs and ScaledObjects; raises UnreadError."""
    names = servedmetrics.metrics(facts.settings)
    for hpa in facts.hpas.read():
        for metric in hpa.metrics:
            stated = metric.selector or metric.name == SLO_RATIO
            selector = parse_selector(metric.selector or {}) if stated else None
            if selector is not None and metric.type in OURS and metric.name in names:
                path = metric.selector_path
                edit = "" if hpa.origin else f"kubectl -n {hpa.namespace} edit hpa {hpa.name}"
                yield SeenSelector(hpa.subject, metric.name, path, selector, metric.type, edit)
    for scaled in facts.scaledobjects.value or () if facts.scaledobjects.known else ():
        for trigger in scaled.ours:
            try:
                selector = parse(trigger.metadata.get("metricSelector", ""))
            except SelectorError:
                continue  # GMA426
            path = f"{trigger.path}.metadata.metricSelector"
            name = trigger.metadata.get("metric", "")
            if name == SLO_RATIO:
                continue  # GMA426 has its promise
            yield SeenSelector(scaled.subject, name, path, selector, "Object", scaled.edit)
