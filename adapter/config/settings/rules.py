"""Settings: prometheus-adapter's configuration file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field

from adapter.config.settings.types import ADVANCED, Interval, Section
from adapter.pipeline.sources.prometheus.ruleoptions import RuleOptions

_DEFAULTS: Final = RuleOptions(Path())


class RuleSettings(Section):
    """Metrics of prometheus-adapter's rules, beside the metrics of the catalogue: see
    docs/rules.md. The series are in the store that ``source.prometheus`` describes, regardless of
    ``source.kind``."""

    file: Path | None = None
    """prometheus-adapter's configuration file. ``externalRules`` also need ``external.enabled``,
    and ``resourceRules`` need ``rules.resource_metrics``."""
    resource_metrics: bool = _DEFAULTS.resource_metrics
    """Serve ``metrics.k8s.io`` by the file's ``resourceRules``. A cluster has one server of it,
    usually metrics-server."""
    prefer: Literal["rules", "catalogue"] = "rules"
    """What serves a metric that a rule and the catalogue both have."""
    relist_interval: Interval = _DEFAULTS.relist_interval
    """Seconds between two discoveries of series, as prometheus-adapter's
    ``--metrics-relist-interval``."""
    max_age: Interval = _DEFAULTS.max_age
    """Seconds from the last sample of a series until it has no metric, as prometheus-adapter's
    ``--metrics-max-age``. At least ``relist_interval``."""
    cache: Annotated[Interval, Field(le=60), ADVANCED] = _DEFAULTS.cache
    """Seconds for which an answer serves further requests."""
    max_bytes: Annotated[int, Field(ge=1024), ADVANCED] = _DEFAULTS.max_bytes
    """Bytes of one answer to a rule's query or for series, after decompression. Other answers in
    progress share a quarter of it. For more, raise the pod's memory limit by three times the
    difference."""
    widen: bool = _DEFAULTS.widen
    """Send the query of a rule once per ``interval`` for all objects if its template allows it,
    instead of once per request."""
    interval: Annotated[Interval, Field(le=60), ADVANCED] = _DEFAULTS.interval
    """Seconds between two queries of a rule for all objects, while its metric is requested."""
