"""A captured page in a matching cluster, and the values that must be served.

A table is complete: other values must not be served. An unexpected value fails a test just like a
wrong value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import pytest

from adapter.pipeline.attribution.reading import Reading
from apiservice.labels.selector import EVERYTHING
from tests.adapter.world import CATALOG, World
from tests.needs import CAPTURED_PAGES, needs

PRINCIPAL = tuple(n for n in CATALOG.metrics if n in CATALOG.fields or n not in CATALOG.spellings)
"""Each metric once: the other spellings of a field are served too, in their own units."""


CAPTURED = "captured "
"""How the names of scenes over captured pages begin."""


class Line(NamedTuple):
    """One fact of a page."""

    metric: str
    value: float | str
    """A number, or the reason for its absence."""
    why: str
    """The reason in the contract."""
    where: str = ""
    """``metricLabelSelector``."""


class Scene(NamedTuple):
    """Pods in, values or absences out."""

    pages: tuple[str, ...]
    """Files of the shared folder that it reads."""
    build: Callable[[], World]
    """The cluster, after its pages were scraped."""
    now: float
    """Epoch seconds of the request."""
    says: Mapping[str, tuple[Line, ...]]
    """``namespace/pod`` or ``node:NAME`` -> its complete table."""
    rejects: Mapping[str, int] = {}
    """Reason -> number of samples and values that were left out."""
    kind: str = ""
    """Short name of the kind of server that serves the page; empty for exporters."""


def answer(world: World, subject: str, metric: str, where: str, now: float) -> float | str:
    """Return the value of a pod or a node, or the reason for its absence."""
    if subject.startswith("node:"):
        reading = world.node(subject.removeprefix("node:"), metric, now, where)
    else:
        namespace, _, name = subject.partition("/")
        reading = world.read(name, metric, now, where, namespace)
    return reading.value if isinstance(reading, Reading) else str(reading.reason)


def served(world: World, subject: str, now: float) -> set[str]:
    """Every metric with a value for a pod or a node, each once."""
    snapshot = world.store.snapshot
    if subject.startswith("node:"):
        node = subject.removeprefix("node:")
        answers = {name: snapshot.node(node, name, EVERYTHING, now) for name in PRINCIPAL}
    else:
        pod = next(pod for ref, pod in world.pods.items() if "/".join(ref) == subject)
        answers = {name: snapshot.pod(pod, name, EVERYTHING, now) for name in PRINCIPAL}
    return {name for name, value in answers.items() if isinstance(value, Reading)}


def listed(lines: tuple[Line, ...]) -> set[str]:
    """The metrics for which a table gives a number without any selector."""
    numbers = {line.metric for line in lines if not line.where and not isinstance(line.value, str)}
    return numbers & set(PRINCIPAL)


def every_line(scenes: Mapping[str, Scene]) -> list[object]:
    """A test case per line."""
    return [
        pytest.param(scene, subject, line, id=f"{name}: {subject} {_id(line)}", marks=_marks(name))
        for name, scene in scenes.items()
        for subject, lines in scene.says.items()
        for line in lines
    ]


def every_subject(scenes: Mapping[str, Scene]) -> list[object]:
    """A test case per pod or node."""
    return [
        pytest.param(scene, subject, id=f"{name}: {subject}", marks=_marks(name))
        for name, scene in scenes.items()
        for subject in scene.says
    ]


def every_scene(scenes: Mapping[str, Scene]) -> list[object]:
    """A test case per scene."""
    return [pytest.param(scene, id=name, marks=_marks(name)) for name, scene in scenes.items()]


def _marks(name: str) -> tuple[pytest.MarkDecorator, ...]:
    return (needs(CAPTURED_PAGES),) if name.startswith(CAPTURED) else ()


def _id(line: Line) -> str:
    selected = f"{{{line.where}}}" if line.where else ""
    return f"{line.metric}{selected}: {line.why}"
