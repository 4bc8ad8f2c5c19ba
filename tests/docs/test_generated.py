"""Pages made from the code say what the code says."""

from __future__ import annotations

import pytest

from adapter.settings import Settings
from docs.generate import FOLDER, PAGES


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
