"""Read cpu and memory of many objects at once: all pods of a namespace, or all nodes.

All requests for objects of one namespace send the same two queries, so the store of the rules'
answers asks Prometheus once for all of them.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from adapter.answers.rules.kinds import KindTable
from adapter.answers.rules.objects import MAX_OBJECTS
from adapter.answers.rules.resourcerule import ResourceRule, ResourceRules, UsageQuery
from adapter.answers.rules.store import RuleAnswer, RuleStore
from adapter.answers.rules.vector import BAD_NAME, INCOMPLETE, NEGATIVE, TOO_MANY
from apiservice.errors import Unavailable
from apiservice.runtime.steps import Steps, WaitingSteps, parts, run_in_slices, wait_for_result

_STEP: Final = 256
"""Values that one step takes."""
_KEPT: Final = 60.0
"""Seconds for which the values of a namespace are kept after a request for them."""
_LONGEST_NAME: Final = 63
"""Characters of a container's name: it is a DNS label (Kubernetes API, ``Container.name``)."""
_MOST_CONTAINERS: Final = 256
"""Containers of one pod. Series may name more, also if the pod has fewer."""
_SANDBOX: Final = ("", "POD")
"""Names of what is not a container of a pod's manifest: its cgroup, and its pause container."""


@dataclass(slots=True)
class CpuMemory:
    """What a container, or a node, uses, in thousandths. None is not known."""

    cpu: int | None = None
    memory: int | None = None

    @property
    def complete(self) -> bool:
        """Whether both are known."""
        return self.cpu is not None and self.memory is not None


@dataclass(slots=True)
class ObjectUsage:
    """What an object uses."""

    time: float
    """Epoch seconds of its oldest value."""
    containers: dict[str, CpuMemory] = field(default_factory=dict)
    """By name; a node has one entry without a name."""

    def total(self, of: Callable[[CpuMemory], int | None]) -> int | None:
        """Return the sum over the containers; None if a part of it is not known."""
        amounts = [of(usage) for usage in self.containers.values()]
        return None if None in amounts else sum(value for value in amounts if value is not None)


class _Space(NamedTuple):
    """The objects of one namespace, or the nodes."""

    answers: Sequence[RuleAnswer]
    usages: Mapping[str, ObjectUsage]
    used: float
    """Epoch seconds of the last request."""


class Served(NamedTuple):
    """What the queries depend on."""

    rules: ResourceRules | None
    kinds: KindTable


Ask = Callable[[ResourceRule, KindTable, str, Sequence[str]], UsageQuery | None]
"""Rule, resources, namespace and names -> the query; None if the rule has none."""


class UsageReader:
    """Reads the usage of objects.

    Args:
        served: returns the current rules.
        store: returns what answers queries.
        ask: makes the query of one of the rules.
        pods: whether the objects are pods, which have containers.
    """

    def __init__(
        self, served: Callable[[], Served], store: Callable[[], RuleStore], ask: Ask, *, pods: bool
    ) -> None:
        self._served = served
        self._store = store
        self._ask = ask
        self._pods = pods
        self._spaces: dict[str, _Space] = {}

    @property
    def window(self) -> int:
        """Milliseconds over which the values are computed."""
        rules = self._served().rules
        return 0 if rules is None else rules.window

    def get(self, space: str, name: str) -> ObjectUsage | None:
        """Return the usage of an object of a namespace that has been read; None if not known."""
        objects = self._spaces.get(space)
        return None if objects is None else objects.usages.get(name)

    def read(self, names: Mapping[str, Sequence[str]], now: float) -> WaitingSteps[None]:
        """Read the usage of objects.

        Args:
            names: the names of all objects of each namespace that is read.
            now: epoch seconds.

        Raises:
            Unavailable: there is no rule, or the store failed and no answer is young enough.
        """
        served = self._served()
        if served.rules is None:
            raise Unavailable("the rules file has no usable resourceRules; the log says why")
        for space in [space for space, last in self._spaces.items() if now - last.used > _KEPT]:
            del self._spaces[space]
        queries = {
            space: list(self._queries(served.rules, served.kinds, space, objects))
            for space, objects in names.items()
        }
        answers = yield from wait_for_result(self._answers(queries))
        for space, pairs in queries.items():
            space_answers = answers[space]
            last = self._spaces.get(space)
            if last is not None and list(map(id, last.answers)) == list(map(id, space_answers)):
                self._spaces[space] = last._replace(used=now)
                continue
            usages = yield from self._usages(pairs, space_answers, frozenset(names[space]))
            self._spaces[space] = _Space(space_answers, usages, now)

    def _queries(
        self, rules: ResourceRules, kinds: KindTable, space: str, names: Sequence[str]
    ) -> Iterator[UsageQuery]:
        """Yield queries of cpu and memory in turn."""
        for some in parts(names, MAX_OBJECTS):
            cpu = self._ask(rules.cpu, kinds, space, some)
            memory = self._ask(rules.memory, kinds, space, some)
            if cpu is not None and memory is not None:
                yield cpu
                yield memory

    async def _answers(
        self, queries: Mapping[str, Sequence[UsageQuery]]
    ) -> dict[str, Sequence[RuleAnswer]]:
        store = self._store()
        texts = dict.fromkeys(query.text for batch in queries.values() for query in batch)
        gathered = await asyncio.gather(*(run_in_slices(store.answer(text)) for text in texts))
        answers = dict(zip(texts, gathered, strict=True))
        return {space: [answers[query.text] for query in batch] for space, batch in queries.items()}

    def _usages(
        self,
        queries: Sequence[UsageQuery],
        answers: Sequence[RuleAnswer],
        names: frozenset[str],
    ) -> Steps[dict[str, ObjectUsage]]:
        """Return the objects of which both cpu and memory are known."""
        left_out: Counter[str] = Counter()
        by_resource: tuple[dict[str, ObjectUsage], dict[str, ObjectUsage]] = ({}, {})
        for place, (query, answer) in enumerate(zip(queries, answers, strict=True)):
            if answer.vector.scalar:
                raise Unavailable(f"{query.text[:200]} returns a scalar; it must return a vector")
            yield from _add(by_resource[place % 2], query, answer, names, left_out)
        cpu, memory = by_resource
        usages = {name: _merge_usages(cpu[name], memory[name]) for name in cpu if name in memory}
        for usage in usages.values():
            left_out[INCOMPLETE] += self._fill(usage)
        self._store().left_out.update(left_out)
        return usages

    def _fill(self, usage: ObjectUsage) -> int:
        """Return how many containers lack cpu or memory.

        What is not a container of the manifest has 0 instead: some rules select it for one of the
        two only, and its pod is complete without it.
        """
        incomplete = 0
        for name, container in usage.containers.items():
            if container.complete:
                continue
            if self._pods and name in _SANDBOX:
                container.cpu, container.memory = container.cpu or 0, container.memory or 0
            else:
                incomplete += 1
        return incomplete


def _add(
    into: dict[str, ObjectUsage],
    query: UsageQuery,
    answer: RuleAnswer,
    names: frozenset[str],
    left_out: Counter[str],
) -> Steps[None]:
    """Add the values of one answer as cpu; :func:`_merge_usages` takes them as what they are."""
    for some in parts(answer.vector.values, _STEP):
        for value in some:
            name = value.labels.get(query.label, "")
            if name not in names:
                continue
            if value.milli < 0:
                left_out[NEGATIVE] += 1
                continue
            container = value.labels.get(query.container_label, "")
            if len(container) > _LONGEST_NAME:
                left_out[BAD_NAME] += 1
                continue
            usage = into.setdefault(name, ObjectUsage(value.time))
            if container not in usage.containers and len(usage.containers) >= _MOST_CONTAINERS:
                left_out[TOO_MANY] += 1
                continue
            usage.time = min(usage.time, value.time)
            usage.containers[container] = CpuMemory(cpu=value.milli)
        yield


def _merge_usages(cpu: ObjectUsage, memory: ObjectUsage) -> ObjectUsage:
    both = ObjectUsage(min(cpu.time, memory.time), dict(cpu.containers))
    for name, usage in memory.containers.items():
        both.containers.setdefault(name, CpuMemory()).memory = usage.cpu
    return both
