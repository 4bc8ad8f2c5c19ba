"""Full collections take a small share of the time, and a larger one while memory grows."""

from __future__ import annotations

import subprocess
import sys

from adapter.serve.garbage import Garbage, resident

MIB = 1 << 20


class Machine:
    """A full collection takes a tenth of a second."""

    def __init__(self) -> None:
        self.now = 0.0
        self.memory = 100 * MIB
        self.collections = 0

    def collect(self) -> None:
        self.now += 0.1
        self.collections += 1

    def run(self, garbage: Garbage, seconds: int, growth: int = 0) -> int:
        before = self.collections
        for _ in range(seconds):
            self.now += 1
            self.memory += growth
            garbage.look()
        return self.collections - before


def made() -> tuple[Machine, Garbage]:
    machine = Machine()
    return machine, Garbage(machine.collect, lambda: machine.now, lambda: machine.memory)


def test_collections_take_half_a_percent_of_the_time() -> None:
    machine, garbage = made()
    assert machine.run(garbage, 1) == 1
    assert machine.run(garbage, 19) == 0
    assert machine.run(garbage, 2000) in range(90, 102)


def test_memory_that_grows_is_collected_sooner() -> None:
    machine, garbage = made()
    machine.run(garbage, 1)
    assert machine.run(garbage, 12, growth=33 * MIB) >= 6
    machine.memory += 31 * MIB
    assert machine.run(garbage, 10) == 0


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
