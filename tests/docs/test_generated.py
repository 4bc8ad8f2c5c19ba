"""The generated pages agree with the code."""

from __future__ import annotations

import re

import pytest

from adapter.settings import Settings
from docs.generate import FOLDER, PAGES, settings_page


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_up_to_date(name: str) -> None:
    written = (FOLDER / name).read_text(encoding="utf-8")
    assert written == PAGES[name](), f"docs/{name} is behind the code: run `make docs`"


def test_every_setting_is_documented() -> None:
    def undocumented(schema: dict[str, object]) -> list[str]:
        definitions = schema["$defs"]
        assert isinstance(definitions, dict)
        return [
            f"{section}.{key}"
            for section, content in definitions.items()
            for key, field in content.get("properties", {}).items()
            if "description" not in field and "$ref" not in field
        ]

    assert undocumented(Settings.model_json_schema()) == []


def test_each_key_is_listed_once_and_advanced_keys_are_in_a_table_of_their_own() -> None:
    tables = settings_page().split("\n### Advanced settings of `server`\n")
    common, advanced = tables[0], tables[1].partition("\n## ")[0]
    assert "`GMA_SERVER__PORT`" in common
    assert "`GMA_SERVER__GRACE`" in advanced
    variables = re.findall(r"`(GMA_[A-Z_]+)`", settings_page())
    assert len(variables) == len(set(variables)) > 0
