"""What is served now, for those who answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from adapter.catalog.metric import Metric


class Names(Protocol):
    """The metrics in force. A change of the configuration brings another mapping, never
    another content of the same."""

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """API name -> what it is made of."""

    @property
    def principal(self) -> Sequence[str]:
        """API names without the further spellings of exporters' fields."""
