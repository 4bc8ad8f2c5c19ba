"""The evaluation of pip-audit's report."""

from __future__ import annotations

from typing import Any

import pytest

from tests.security.audit import verdict

CLEAN = {"name": "a", "version": "1", "vulns": []}
HIT = {"name": "b", "version": "2", "vulns": [{"id": "PYSEC-1", "fix_versions": ["3"]}]}
UNFIXED = {"name": "c", "version": "2", "vulns": [{"id": "PYSEC-2", "fix_versions": []}]}
SKIPPED = {"name": "d", "skip_reason": "not found"}

CASES: dict[str, tuple[list[dict[str, Any]], int, str]] = {
    "nothing found": ([CLEAN, CLEAN], 0, "audit: no advisory applies to 2 distributions"),
    "an advisory": ([CLEAN, HIT], 1, "b 2: PYSEC-1, fixed in 3"),
    "one without a fix": ([UNFIXED], 1, "c 2: PYSEC-2, fixed in no version yet"),
    "an advisory, and others were not checked": ([SKIPPED, HIT], 1, "PYSEC-1"),
    "some were not checked": ([CLEAN, SKIPPED], 1, "audit: not checked: d"),
    "none was": ([SKIPPED, SKIPPED], 0, "audit: NOT CHECKED: the advisory service"),
}


@pytest.mark.parametrize(("rows", "status", "words"), CASES.values(), ids=CASES.keys())
def test_a_report_is_judged(rows: list[dict[str, Any]], status: int, words: str) -> None:
    judged = verdict({"dependencies": rows, "fixes": []})
    assert judged[0] == status
    assert words in judged[1].splitlines()[-1 if status == 0 else 0]
