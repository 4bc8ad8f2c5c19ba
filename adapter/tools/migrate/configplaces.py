"""Where a configuration of prometheus-adapter is within documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import yaml


class FoundConfig(NamedTuple):
    """A configuration, and where it is."""

    owner: str
    """Kind and name of the object, such as ``ConfigMap monitoring/rules``; empty without one."""
    path: tuple[str, ...]
    node: yaml.Node
    text: str | None
    """The text that the node is the whole of; None if it is a part of a document."""
    values: bool
    """Whether it is the chart's values, not a configuration file."""
    chart: yaml.Node | None = None
    """The chart's values, which say how prometheus-adapter runs; None if no values do."""
    notes: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """For messages."""
        if not self.path:
            return self.owner
        config_map = self.owner.startswith("ConfigMap ") and self.path[0] == "data"
        inside = f"key {self.path[1]}" if config_map and len(self.path) > 1 else ".".join(self.path)
        return f"{self.owner}, {inside}" if self.owner else inside


class At(NamedTuple):
    """A place within the documents."""

    owner: str
    path: tuple[str, ...] = ()
    parameters: Mapping[str, str] = {}
    """Single values for the values here."""
    beside: int = 0
    """Length of the path of what has these values: the parameters are beside it."""
    texts: int = 0
    """Texts around it."""

    def under(self, key: str) -> At:
        """Return the place of a key's value; an umbrella chart's parameters begin with the key."""
        below = self._replace(path=(*self.path, key))
        if len(below.path) <= self.beside:
            return below
        of_key = {
            name.removeprefix(f"{key}."): value
            for name, value in self.parameters.items()
            if name.startswith(f"{key}.")
        }
        return below._replace(parameters=of_key)

    def with_parameters(self, parameters: Mapping[str, str]) -> At:
        """Return the place, with parameters for the values that one of its keys has."""
        if not parameters:
            return self
        return self._replace(parameters=parameters, beside=len(self.path) + 1)


def places(pieces: Iterable[FoundConfig]) -> str:
    """Return where pieces are, for a message."""
    return "; ".join(piece.place or "the document" for piece in pieces)
