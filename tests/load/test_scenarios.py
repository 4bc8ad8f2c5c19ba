"""The table of scenarios, its sections in the README and the Makefile's example agree."""

from __future__ import annotations

import re
from pathlib import Path

from load.__main__ import README, SCENARIOS

MAKEFILE = Path(__file__).parents[2] / "Makefile"


def test_every_scenario_has_its_section_in_the_order_of_the_table() -> None:
    titles = re.findall(r"^## (.+)$", README.read_text(), re.MULTILINE)
    assert [title for title in titles if title in SCENARIOS] == list(SCENARIOS)


def test_every_result_has_a_section_to_be_written_to() -> None:
    text = README.read_text()
    begun, ended = re.findall(r"<!-- begin (\w+)", text), re.findall(r"<!-- end (\w+)", text)
    assert begun == ended == ["machine", *SCENARIOS]


def test_the_scenarios_in_the_makefile_exist() -> None:
    (example,) = re.findall(r'^bench:.*\(ARGS="(.*)"\)$', MAKEFILE.read_text(), re.MULTILINE)
    assert set(example.split()) <= SCENARIOS.keys()
