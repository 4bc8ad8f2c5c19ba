"""The table of faults and the tests that bring them about are the same."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.e2e.programs import ROOT

PAGE = (ROOT / "docs" / "faults.md").read_text()
SHOWN = re.findall(r"`(test_\w+\.py::[^`]+)`", PAGE)


@pytest.fixture(scope="module")
def cases() -> frozenset[str]:
    """Every case of the test files that the page names, and of those that are about faults."""
    folder = ROOT / "tests" / "e2e"
    files = {folder / name.partition("::")[0] for name in SHOWN}
    files |= set(folder.glob("test_faults_*.py"))
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", *sorted(map(str, files))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    lines = [line for line in done.stdout.splitlines() if "::" in line]
    return frozenset(line.removeprefix("tests/e2e/") for line in lines)


def test_every_row_is_shown_by_tests_that_exist(cases: frozenset[str]) -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| ")]
    faults = [line for line in rows if not line.startswith("| Fault")]
    assert [line for line in faults if "test_" not in line] == []
    assert set(SHOWN) - cases == set()


def test_every_fault_that_is_brought_about_has_its_row(cases: frozenset[str]) -> None:
    assert {case for case in cases if case.startswith("test_faults_")} - set(SHOWN) == set()


def test_no_case_is_shown_twice() -> None:
    assert sorted(SHOWN) == sorted(set(SHOWN))
