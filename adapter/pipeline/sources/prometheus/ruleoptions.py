"""Options of the rules. The settings take their defaults from here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class RuleOptions:
    """Durations in seconds."""

    file: Path
    relist_interval: float = 60.0
    """Between two discoveries of series."""
    max_age: float = 300.0
    """Series without a sample for longer than this have no metric."""
    cache: float = 5.0
    """For which the answer to a query serves further requests."""
    max_bytes: int = 64 << 20
    """Bytes of one answer of the store."""
    widen: bool = True
    """Whether a rule is asked once for all objects if its template allows it."""
    interval: float = 10.0
    """Between two queries of a rule for all objects."""
    resource_metrics: bool = False
    """Whether ``resourceRules`` are served as ``metrics.k8s.io``."""
