"""The port through which the API reads the names of the current metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from adapter.pipeline.catalog.metric import Metric


class Names(Protocol):
    """The current metrics. A change of the configuration replaces the mapping and never edits
    it."""

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """API name -> metric."""

    @property
    def principal(self) -> Sequence[str]:
        """API names without aliases, that is without other spellings of exporters' fields."""
