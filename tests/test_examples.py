"""A seed decides the examples of a property by itself."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

DRAW = """
import importlib, json, sys
from hypothesis import given, settings, strategies as st
import hypothesis.core
from tests import examples

hypothesis.core.global_force_seed = 1
if sys.argv[1] == "alone":
    examples.leave_out_constants()
for name in sys.argv[2:]:
    importlib.import_module(name)
drawn = []

@settings(max_examples=200, database=None)
@given(st.floats(0, 1e17))
def draw(number):
    drawn.append(number)

draw()
print(json.dumps(drawn))
"""


def drawn(*arguments: str) -> list[float]:
    ran = subprocess.run(
        [sys.executable, "-c", DRAW, *arguments], capture_output=True, text=True, check=True
    )
    numbers: list[float] = json.loads(ran.stdout)
    return numbers


@pytest.mark.parametrize(("constants", "same"), [("alone", True), ("too", False)])
def test_what_was_imported_decides_no_example_of_a_seed(constants: str, same: bool) -> None:
    """The second case shows what the first would miss: Hypothesis does use those constants."""
    few, many = drawn(constants), drawn(constants, "adapter.nodepool.learn.history")
    assert (few == many) is same
