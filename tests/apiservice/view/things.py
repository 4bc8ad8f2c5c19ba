"""A group of two fake resources: cluster-scoped boards, and namespaced lamps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from apiservice.runtime.steps import Steps
from apiservice.view.resource import Cell, Column, Key, ServedResource, ViewGroup, ViewResource

GROUP = "view.example.com"
VERSION = "v1alpha1"
BASE = f"/apis/{GROUP}/{VERSION}"

BOARDS = ViewResource(
    plural="boards",
    singular="board",
    kind="Board",
    short_names=(),
    namespaced=False,
    columns=(
        Column("Slots", "The slots of the board.", "integer"),
        Column("Serial", "The serial number.", wide=True),
    ),
    schema={
        "type": "object",
        "description": "A board.",
        "properties": {"slots": {"type": "integer", "description": "The slots."}},
    },
    categories=("hardware",),
)
LAMPS = ViewResource(
    plural="lamps",
    singular="lamp",
    kind="Lamp",
    short_names=("lp",),
    namespaced=True,
    columns=(Column("Slots", "The slot of the lamp.", "integer"), Column("Serial", "It.")),
    schema={
        "type": "object",
        "description": "A lamp.",
        "properties": {
            "slots": {"type": "integer", "description": "The slots."},
            "parts": {
                "type": "array",
                "description": "The parts of the lamp.",
                "items": {
                    "type": "object",
                    "description": "A part.",
                    "properties": {"weight": {"type": "number", "description": "Grams."}},
                },
            },
        },
    },
    fields=("color",),
)


@dataclass
class Thing:
    """What a fake object is made of."""

    slots: int | None = None
    labels: dict[str, str] = field(default_factory=dict)
    color: str = "white"
    padding: str = ""


@dataclass
class FakeProvider:
    """Has the things it is given."""

    things: dict[Key, Thing]
    failure: Exception | None = None
    gone: set[Key] = field(default_factory=set)
    """Listed by ``keys``, and gone when it is asked for."""
    listed: int = 0
    """How often its keys were asked for."""
    prepared: set[Key] = field(default_factory=set)
    labelled: list[Key] = field(default_factory=list)

    def keys(self, namespace: str | None) -> Steps[Sequence[Key]]:
        if self.failure is not None:
            raise self.failure
        self.listed += 1
        yield
        return sorted(key for key in self.things if namespace in (None, key.namespace))

    def prepare(self, keys: Sequence[Key], now: float) -> Steps[None]:
        for key in keys:
            self.prepared.add(key)
            yield

    def labels(self, key: Key) -> Mapping[str, str]:
        self.labelled.append(key)
        return self.things[key].labels

    def fields(self, key: Key) -> Mapping[str, str]:
        return {"color": self.things[key].color}

    def cells(self, key: Key, now: float) -> Sequence[Cell] | None:
        if (thing := self._thing(key)) is None:
            return None
        return [thing.slots, f"s-{key.name}"]

    def object(self, key: Key, now: float) -> dict[str, Any] | None:
        if (thing := self._thing(key)) is None:
            return None
        metadata: dict[str, Any] = {"name": key.name}
        if key.namespace:
            metadata["namespace"] = key.namespace
        metadata |= {"uid": f"uid-{key.name}", "labels": thing.labels}
        body: dict[str, Any] = {"metadata": metadata}
        if thing.slots is not None:
            body["slots"] = thing.slots
        if thing.padding:
            body["padding"] = thing.padding
        return body

    def _thing(self, key: Key) -> Thing | None:
        assert key in self.prepared, "the routes prepare a key before they ask for it"
        return None if key in self.gone else self.things.get(key)


@dataclass
class FakeViews:
    """Two boards; two lamps in namespace ``ns`` and one in ``other``."""

    boards: FakeProvider = field(
        default_factory=lambda: FakeProvider(
            {
                Key("", "b0"): Thing(4, {"site": "east"}),
                Key("", "b1"): Thing(None, {"site": "west"}),
            }
        )
    )
    lamps: FakeProvider = field(
        default_factory=lambda: FakeProvider(
            {
                Key("ns", "desk"): Thing(1, {"app": "work"}, "red"),
                Key("ns", "floor"): Thing(2, {"app": "rest"}),
                Key("other", "desk"): Thing(3, {"app": "work"}),
            }
        )
    )

    @property
    def group(self) -> ViewGroup:
        return ViewGroup(
            GROUP, VERSION, (ServedResource(BOARDS, self.boards), ServedResource(LAMPS, self.lamps))
        )
