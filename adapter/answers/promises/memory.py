"""What was learned about promises, as text: for a restart, and for the other replicas.

A line is one workload, promise and type of GPU. Of two that are about the same, the one with more
evidence is kept: to add them would count requests twice that both have seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from typing import Final, NamedTuple

import msgspec

from adapter.answers.promises.capacity import HALF_LIFE, TOP, Count, StepCounts
from adapter.pipeline.catalog.promise import Promise, PromiseError, parse_promise
from adapter.pipeline.cluster.workload import Workload
from apiservice.provider import GroupResource
from apiservice.runtime.inturn import in_turn
from apiservice.runtime.jsontext import UNREADABLE

MOST_BYTES: Final = 256 << 10
"""Bytes of the text; a ConfigMap takes 1 MiB, for all that is kept. Of the namespaces with most
lines, those with the least evidence are left out."""
LONGEST_LINE: Final = 1 << 16
"""Bytes of one line that are read. A promise of all twelve bounds has 41 counts of at most 19
digits for each of 65 loads."""
_LEAST: Final = 1.0
"""Requests of evidence below which a line is forgotten."""
_DIGITS: Final = 4


class Topic(NamedTuple):
    """What a line is about."""

    namespace: str
    workload: Workload
    promise: Promise
    gpu: str
    """Type of the GPU; empty if nobody knows it."""


class Lesson(NamedTuple):
    """What is known about a topic."""

    time: float
    """Epoch seconds at which the counts have this weight."""
    steps: Mapping[int, StepCounts]
    """By place (:func:`adapter.answers.promises.capacity.middle`)."""

    def evidence(self, now: float) -> float:
        """Return the number of requests behind it, those longer ago counting less."""
        weight: float = 0.5 ** (max(0.0, now - self.time) / HALF_LIFE)
        return weight * sum(step.requests for step in self.steps.values())


Lessons = Mapping[Topic, Lesson]


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    namespace: str
    resource: str
    name: str
    promise: dict[str, str]
    gpu: str
    time: Count
    steps: dict[str, StepCounts]
    """By place."""


_lines = msgspec.json.Decoder(_Line)


def dump_lessons(lessons: Lessons, now: float) -> tuple[str, int]:
    """Return the text, and how many lessons were too many for it.

    Args:
        now: epoch seconds.
    """
    ranked = sorted(
        ((lesson.evidence(now), topic) for topic, lesson in lessons.items()),
        key=lambda row: (-row[0], row[1].namespace, row[1].workload, row[1].gpu),
    )
    # In turn: a namespace's own numbers decide only which of its own lessons come first.
    worth = in_turn(
        (topic for evidence, topic in ranked if evidence >= _LEAST), attrgetter("namespace")
    )
    lines: list[str] = []
    size = 0
    for topic in worth:
        line = msgspec.json.encode(_line(topic, lessons[topic])).decode()
        size += len(line.encode()) + 1
        if size > MOST_BYTES:
            break
        lines.append(line)
    return "\n".join(lines), len(worth) - len(lines)


def load_lessons(text: str) -> tuple[Lessons, int]:
    """Return the lessons of a text, and how many of its lines cannot be read."""
    lessons: dict[Topic, Lesson] = {}
    unread = 0
    for line in text[:MOST_BYTES].splitlines():
        try:
            if len(line) > LONGEST_LINE:
                raise ValueError(f"a line of {len(line)} characters")
            topic, lesson = _read(_lines.decode(line))
        except (*UNREADABLE, PromiseError, ValueError):
            unread += 1
            continue
        lessons[topic] = lesson
    return lessons, unread


def better_of(one: Lessons, other: Lessons, now: float) -> Lessons:
    """Return the lessons of both; of a topic that both know, the one with more evidence."""
    merged = dict(one)
    for topic, lesson in other.items():
        current = merged.get(topic)
        if current is None or lesson.evidence(now) > current.evidence(now):
            merged[topic] = lesson
    return merged


def _line(topic: Topic, lesson: Lesson) -> _Line:
    namespace, workload, promise, gpu = topic
    steps = {str(place): step.each(_short) for place, step in sorted(lesson.steps.items())}
    bounds = {bound.key: f"{bound.seconds:.12g}s" for bound in promise}
    return _Line(
        namespace,
        str(workload.resource),
        workload.name,
        bounds,
        gpu,
        lesson.time,
        steps,
    )


def _short(count: float) -> float:
    return float(f"{count:.{_DIGITS}g}")


def _read(line: _Line) -> tuple[Topic, Lesson]:
    promise = parse_promise(line.promise)
    steps: dict[int, StepCounts] = {}
    for text, counts in line.steps.items():
        place = int(text)
        bounds = {len(counts.counts), len(counts.late), len(counts.quantiles)}
        if not 0 <= place <= TOP or bounds != {len(promise)}:
            raise ValueError(f"step {place} does not fit the promise")
        counts.late = list(map(min, counts.late, counts.counts))
        steps[place] = counts
    workload = Workload(GroupResource.parse(line.resource), line.name)
    return Topic(line.namespace, workload, promise, line.gpu), Lesson(line.time, steps)
