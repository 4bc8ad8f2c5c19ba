"""Collections visit few objects: new ones that were not freed, and all after memory has grown."""

from __future__ import annotations

import subprocess
import sys

from adapter.server.serve.garbage import CyclicCollector, Garbage, resident_memory

MIB = 1 << 20


class Machine(CyclicCollector):
    """A full collection takes 0.3 s."""

    def __init__(self) -> None:
        self.now = 0.0
        self.memory = 100 * MIB
        self.difference = 0
        self.unreachable = 50_000
        """What a full collection finds."""
        self.requests = 0
        self.events: list[str] = []

    def count_new(self) -> int:
        return self.difference

    def visit_new(self) -> None:
        self.events.append("new")

    def visit_all(self) -> int:
        self.events.append(f"all at {self.memory // MIB}")
        self.now += 0.3
        return self.unreachable

    def exclude(self) -> None:
        self.events.append("exclude")

    def run(self, garbage: Garbage, seconds: int, growth: int = 0, *, asked: int = 0) -> list[str]:
        """Look once a second; returns what was collected. ``asked`` is requests a second."""
        before = len(self.events)
        for _ in range(seconds):
            self.now += 1
            self.memory += growth * MIB
            self.requests += asked
            garbage.look()
        events = self.events[before:]
        assert events.count("exclude") == seconds
        return [event for event in events if event != "exclude"]


def made() -> tuple[Machine, Garbage]:
    machine = Machine()
    garbage = Garbage(
        machine, lambda: machine.now, lambda: machine.memory, lambda: machine.requests
    )
    return machine, garbage


def test_objects_that_are_replaced_are_never_visited() -> None:
    machine, garbage = made()
    assert machine.run(garbage, 1000) == []


def test_new_objects_are_visited_before_they_are_excluded_if_few_were_freed() -> None:
    machine, garbage = made()
    machine.difference = 1000
    assert machine.run(garbage, 2) == ["new", "new"]
    assert machine.events[-2:] == ["new", "exclude"]


def test_at_the_start_memory_has_to_grow_by_768_mebibytes() -> None:
    machine, garbage = made()
    assert machine.run(garbage, 115, growth=10) == ["all at 870"]


def test_later_growth_counts_from_the_end_of_the_start() -> None:
    machine, garbage = made()
    assert machine.run(garbage, 120, growth=4) == []
    assert machine.run(garbage, 150, growth=2) == ["all at 872"], "a half above 580"


def test_later_a_half_is_enough_and_never_less_than_64_mebibytes() -> None:
    machine, garbage = made()
    machine.run(garbage, 120)
    assert machine.run(garbage, 100, growth=3) == ["all at 166", "all at 250", "all at 376"]


def test_a_full_collection_that_finds_nothing_doubles_the_growth_that_starts_the_next() -> None:
    """Caches that fill up grow the memory, and no collection frees that: each would be a stop."""
    machine, garbage = made()
    machine.run(garbage, 120)
    machine.unreachable = 400
    assert machine.run(garbage, 90, growth=3) == ["all at 166", "all at 334"]
    machine.unreachable = 50_000
    assert machine.run(garbage, 90, growth=8) == ["all at 1010"], "patience of four halves"
    machine.memory = 1010 * MIB
    assert machine.run(garbage, 90, growth=8) == ["all at 1522"], "and of one again"


def test_a_full_collection_waits_until_nobody_asks() -> None:
    machine, garbage = made()
    machine.run(garbage, 120)
    assert machine.run(garbage, 30, growth=3, asked=1) == []
    assert machine.run(garbage, 1) == ["all at 190"]


def test_a_full_collection_waits_for_twice_the_growth_at_most() -> None:
    machine, garbage = made()
    machine.run(garbage, 120)
    assert machine.run(garbage, 50, growth=3, asked=1) == ["all at 229"], "100, and twice 64"


def test_a_full_collection_takes_a_tenth_of_the_time_at_most() -> None:
    machine, garbage = made()
    machine.run(garbage, 120)
    assert len(machine.run(garbage, 30, growth=1000)) <= 10


def test_cycles_are_freed_soon_if_they_are_new_and_after_growth_if_they_are_excluded() -> None:
    program = """
import gc
from adapter.server.serve import garbage
memory, now = 0, 1e9
collector = garbage.take_over()
collector._memory, collector._clock = lambda: memory, lambda: now
class Node: pass
def cycles():
    nodes = [Node() for _ in range(1000)]
    for node in nodes:
        node.self = node
    return nodes
def alive():
    gc.unfreeze()
    return sum(isinstance(each, Node) for each in gc.get_objects())
cycles()
assert alive() == 1000
collector.look()
assert alive() == 0, "new"
nodes = cycles()
collector.look()
assert gc.get_freeze_count() >= 1000
del nodes
now += 1e6
collector.look()
gc.freeze()
assert alive() == 1000, "excluded"
gc.freeze()
memory, now = 1 << 40, now + 1e6
collector.look()
assert alive() == 0
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


def test_the_resident_memory_is_known() -> None:
    assert resident_memory() > MIB


def test_python_starts_no_full_collection_after_the_takeover() -> None:
    program = """
import gc
from adapter.server.serve.garbage import take_over
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
assert len(gc.get_objects()) < count - 199_900  # the interpreter's own vary
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
