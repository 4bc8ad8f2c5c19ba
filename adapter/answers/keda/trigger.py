"""A trigger's metadata from the manifest: validated and compiled once.

KEDA passes on every key of the trigger, its own included, and never says which ``metricType`` the
HPA will use. The default is the sum, which ``AverageValue`` divides; ``aggregate: mean`` is for
``Value`` (docs/keda.md).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, NamedTuple

from adapter.answers.api.aggregate import Aggregate
from adapter.answers.keda.errors import BadTrigger
from adapter.hpa import quantity
from adapter.pipeline.catalog.nearest import nearest_metrics
from adapter.pipeline.catalog.promise import SLO_RATIO, PromiseError, promise_in
from apiservice.labels.selector import EVERYTHING, Selector, SelectorError, parse
from apiservice.runtime.nearest import nearest

OWN: Final = ("metric", "target", "activation", "podSelector", "aggregate", "metricSelector")
"""The keys that this scaler reads."""

AGGREGATES: Final = (Aggregate.SUM, Aggregate.MEAN, Aggregate.MAX, Aggregate.P95)

_KEDA: Final = frozenset(
    {"scalerAddress", "enableTLS", "unsafeSsl", "caCert", "tlsClientCert", "tlsClientKey"}
    | {"tlsCertFile", "metricName", "metricType", "useCachedMetrics", "name", "type"}
)
"""Keys that KEDA reads from the same map (``pkg/scalers/external_scaler.go``), or once read."""

_LONGEST: Final = 200
"""Characters of a user's text that a message repeats."""
_MOST_BYTES: Final = 8192
"""Bytes of a trigger's whole metadata. A ScaledObject that a person writes has a few hundred."""
_MOST_KEYS: Final = 64
"""Keys of a trigger's metadata."""
_MOST_PARTS: Final = 64
"""Requirements and values of one selector: each is compiled to a function."""
_SMALLEST: Final = Decimal("0.001")
_LARGEST: Final = Decimal(2**63 // 1000)


class Ref(NamedTuple):
    """A trigger of a ScaledObject, as KEDA names it."""

    namespace: str
    name: str
    metadata: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Trigger:
    """A compiled trigger."""

    metric: str
    """A metric's name in the catalogue."""
    target: float
    """In the metric's unit: per replica for a sum, else for the value itself."""
    activation: float
    """The trigger is active above it."""
    aggregate: Aggregate
    pods: Selector | None
    """Matches labels of the namespace's pods; None uses the ScaledObject's target."""
    devices: Selector
    """Matches labels of the devices; of ``inference_slo_ratio``, the promise."""


def compile_trigger(metadata: Mapping[str, str], metrics: Collection[str]) -> Trigger:
    """Check and compile a trigger's metadata.

    Args:
        metadata: every key of the manifest, as KEDA sends it.
        metrics: the names of all metrics.

    Raises:
        BadTrigger: a key of the metadata is wrong; the message names it and the fix.
    """
    size = sum(len(key.encode()) + len(value.encode()) for key, value in metadata.items())
    if size > _MOST_BYTES:
        raise BadTrigger(
            f"metadata: has {size} bytes, at most {_MOST_BYTES} are read; shorten its longest value"
        )
    if len(metadata) > _MOST_KEYS:
        raise BadTrigger(
            f"metadata: has {len(metadata)} keys, at most {_MOST_KEYS} are read; leave out those "
            f"that docs/keda.md does not name"
        )
    for key in metadata:
        if key not in OWN and key not in _KEDA and not key.endswith("FromEnv"):
            raise BadTrigger(f"{_shorten_key(key)}: no such key; {_keys(key)}")
    trigger = Trigger(
        metric=_metric(metadata, metrics),
        target=_number(metadata, "target", _SMALLEST),
        activation=_number(metadata, "activation", Decimal(0)) if "activation" in metadata else 0.0,
        aggregate=_aggregate(metadata),
        pods=_selector(metadata, "podSelector") if "podSelector" in metadata else None,
        devices=_selector(metadata, "metricSelector")
        if "metricSelector" in metadata
        else EVERYTHING,
    )
    if trigger.metric == SLO_RATIO:
        try:
            promise_in(trigger.devices.requirements)
        except PromiseError as error:
            raise BadTrigger(f"metricSelector: {error}") from None
    return trigger


def _metric(metadata: Mapping[str, str], metrics: Collection[str]) -> str:
    name = metadata.get("metric", "")
    if not name:
        raise BadTrigger("metric: is missing; name a metric, e.g. gpu_utilization")
    if name not in metrics:
        raise BadTrigger(
            f"metric: no metric is named {_quote_text(name)}; {_metrics(metadata, metrics)}"
        )
    return name


def _number(metadata: Mapping[str, str], key: str, least: Decimal) -> float:
    text = metadata.get(key, "").strip()
    if not text:
        raise BadTrigger(f'{key}: is missing; give a number, e.g. {key}: "70"')
    try:
        value = quantity.parse(text)
    except ValueError:
        raise BadTrigger(
            f'{key}: {_quote_text(text)} is not a number; write e.g. "70", "0.5" or "2Gi"'
        ) from None
    if not least <= value <= _LARGEST:
        raise BadTrigger(f"{key}: {_quote_text(text)} must be at least {least} and below 9.2e15")
    return float(value)


def _aggregate(metadata: Mapping[str, str]) -> Aggregate:
    text = metadata.get("aggregate", Aggregate.SUM.value)
    if text not in AGGREGATES:
        choices = ", ".join(AGGREGATES)
        raise BadTrigger(
            f"aggregate: {_quote_text(text)} is not an aggregate; use one of {choices}"
        )
    return Aggregate(text)


def _selector(metadata: Mapping[str, str], key: str) -> Selector:
    text = metadata[key]
    if not text.strip():
        raise BadTrigger(f"{key}: is empty; write e.g. {_EXAMPLES[key]}, or leave the key out")
    if text.count(",") >= _MOST_PARTS:
        raise BadTrigger(
            f"{key}: has more than {_MOST_PARTS} requirements and values; select by a label that "
            f"they have in common"
        )
    try:
        return parse(text)
    except SelectorError as error:
        raise BadTrigger(
            f"{key}: is not a label selector: {_shorten(str(error))}; write e.g. {_EXAMPLES[key]}"
        ) from None


_EXAMPLES: Final = {"podSelector": "app=inference", "metricSelector": "model=NVIDIA-H100"}


def _quote_text(text: str) -> str:
    return repr(_shorten(text))


def _shorten_key(key: str) -> str:
    return _shorten(key) or "an empty key"


def _shorten(text: str) -> str:
    """Shorten a text, so that the fix after it is visible."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _metrics(metadata: Mapping[str, str], metrics: Collection[str]) -> str:
    try:
        target = quantity.parse(metadata.get("target", "").strip())
    except ValueError:
        target = None
    near = nearest_metrics(metadata["metric"], metrics, target)
    return near.question or "docs/metrics.md lists them all"


def _keys(key: str) -> str:
    folded = {other.lower(): other for other in OWN}
    if close := nearest(key.lower(), folded, 1):
        return f"did you mean {folded[close[0]]}?"
    return f"known keys: {', '.join(OWN)}"
