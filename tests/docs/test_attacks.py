"""Every attack of docs/threat-model.md has tests that exist, in tests/attack/README.md."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import ROOT

MODEL = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")
ATTACKS = re.findall(
    r"^- \*\*(.+?)\.\*\*",
    MODEL.partition("\n## Attacks and answers\n")[2].partition("\n### ")[0],
    re.MULTILINE | re.DOTALL,
)
TESTS = dict(
    re.findall(
        r"^- (.+?): (`tests/.+)$",
        (ROOT / "tests" / "attack" / "README.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
)


def test_the_list_of_tests_has_the_attacks_of_the_page() -> None:
    assert ATTACKS
    assert [" ".join(attack.split()) for attack in ATTACKS] == list(TESTS)


@pytest.mark.parametrize("attack", TESTS)
def test_the_tests_of_an_attack_exist(attack: str) -> None:
    for path in re.findall(r"`([^`]+)`", TESTS[attack]):
        assert (ROOT / path).exists(), path
