"""The generated pages agree with the code."""

from __future__ import annotations

import re

import pytest

from adapter.config.process.environment import PREFIX
from adapter.config.settings import Settings
from docs import settingspage
from docs.generate import FOLDER, PAGES


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_up_to_date(name: str) -> None:
    written = (FOLDER / name).read_text(encoding="utf-8")
    assert written == PAGES[name](), f"docs/{name} is behind the code: run `make docs`"


def test_every_setting_is_documented() -> None:
    rows = [line for line in settingspage.page().splitlines() if line.startswith("- `")]
    assert len(rows) > 150
    assert [row for row in rows if row.endswith(": ")] == []


def test_each_key_is_listed_once_and_advanced_keys_are_in_a_list_of_their_own() -> None:
    tables = settingspage.page().split("\n### Advanced: `server`\n")
    common, advanced = tables[0], tables[1].partition("\n## ")[0]
    assert "- `cert_file`: " in common
    assert "- `cert_file`: " not in advanced
    assert "- `grace` (`20`): " in advanced
    assert "- `grace` (`20`): " not in common


def test_the_rule_of_the_variables_has_an_example_that_works() -> None:
    key, variable = re.findall(
        r"`([\w.]+)` is `(GMA_\w+)`", settingspage.page().replace("\n", " ")
    )[0]
    section = Settings.model_validate({}).model_dump()
    for part in key.split("."):
        section = section[part]
    assert PREFIX + key.replace(".", "__").upper() == variable
