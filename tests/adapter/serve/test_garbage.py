"""Full collections visit new objects only, and all objects while memory grows."""

from __future__ import annotations

import subprocess
import sys

from adapter.serve.garbage import Garbage, resident

MIB = 1 << 20


class Machine:
    """A collection takes 10 ms for a million objects."""

    def __init__(self) -> None:
        self.now = 0.0
        self.memory = 100 * MIB
        self.objects = 10_000_000
        self.excluded = 0
        self.visited: list[int] = []
        """Objects of each collection."""

    def collect(self) -> None:
        self.visited.append(self.objects)
        self.now += self.objects * 1e-8

    def exclude(self) -> None:
        self.excluded += self.objects
        self.objects = 0

    def include(self) -> None:
        self.objects += self.excluded
        self.excluded = 0

    def run(self, garbage: Garbage, seconds: int, growth: int = 0) -> list[int]:
        before = len(self.visited)
        for _ in range(seconds):
            self.now += 1
            self.memory += growth
            self.objects += 1_000
            garbage.look()
        return self.visited[before:]


def made() -> tuple[Machine, Garbage]:
    machine = Machine()
    take = machine.collect, lambda: machine.now, lambda: machine.memory
    return machine, Garbage(*take, machine.exclude, machine.include)


def test_only_objects_that_are_new_since_a_long_collection_are_visited() -> None:
    machine, garbage = made()
    first, *others = machine.run(garbage, 100)
    assert first > 10_000_000
    assert len(others) == 99, "at the start, at every check"
    assert max(others) < 200_000
    visited = machine.run(garbage, 2000)
    assert 0 < max(visited) < 200_000
    assert sum(visited) * 1e-8 < 2000 / 200, "half a percent of the time"


def test_at_the_start_all_objects_are_visited_after_memory_doubled() -> None:
    machine, garbage = made()
    visited = machine.run(garbage, 115, growth=3 * MIB)
    every = [number for number, seen in enumerate(visited) if seen > 10_000_000]
    assert len(every) == 3, "at 100 MiB, above 200 MiB and above 400 MiB"


def test_all_objects_are_visited_while_memory_grows() -> None:
    machine, garbage = made()
    machine.run(garbage, 120, growth=3 * MIB)
    every = [seen for seen in machine.run(garbage, 12, growth=120 * MIB) if seen > 10_000_000]
    assert len(every) >= 4
    machine.run(garbage, 10)
    machine.memory += 31 * MIB
    assert max(machine.run(garbage, 10), default=0) < 1_000_000


def test_an_excluded_cycle_is_freed_once_memory_has_grown() -> None:
    program = """
import gc
from adapter.serve import garbage
memory, now = 0, 1e9
collector = garbage.take_over()
collector._memory, collector._clock = lambda: memory, lambda: now
class Node: pass
nodes = [Node() for _ in range(100_000)]
for node in nodes:
    node.self = node
gc.freeze()
del nodes, node
count = len(gc.get_objects(2)) + gc.get_freeze_count()
now += 1e6
collector.look()
assert gc.get_freeze_count() >= 100_000, "excluded"
memory, now = 1 << 40, now + 1e6
collector.look()
assert len(gc.get_objects()) + gc.get_freeze_count() <= count - 100_000
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


def test_the_resident_memory_is_known() -> None:
    assert resident() > MIB


def test_python_starts_no_full_collection_after_the_takeover() -> None:
    program = """
import gc
from adapter.serve.garbage import take_over
take_over()
full = []
gc.callbacks.append(lambda phase, info: full.append(info) if info["generation"] == 2 else None)
class Node: pass
kept = []
for number in range(200_000):
    node = Node()
    node.self = node
    kept.append(node)
assert not full, full
count = len(gc.get_objects())
del kept, node
gc.collect()
assert len(gc.get_objects()) < count - 200_000
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
