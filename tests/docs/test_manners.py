"""The files that the platform of a repository reads are valid, and name what exists."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from tests.docs.pages import ROOT

FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[!c]*.yml"))
FIELDS = {"markdown", "input", "textarea", "dropdown", "checkboxes"}
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.stem)
def test_a_form_has_a_title_and_fields_that_are_labelled(form: Path) -> None:
    template = yaml.safe_load(form.read_text(encoding="utf-8"))
    assert {"name", "description", "body"} <= set(template)
    for field in template["body"]:
        assert field["type"] in FIELDS
        assert field["attributes"].get("label" if field["type"] != "markdown" else "value")


def test_every_folder_with_a_module_of_go_is_kept_up_to_date() -> None:
    updates = yaml.safe_load((ROOT / ".github" / "dependabot.yml").read_text(encoding="utf-8"))
    (go,) = (row for row in updates["updates"] if row["package-ecosystem"] == "gomod")
    covered = {
        file.parent for pattern in go["directories"] for file in ROOT.glob(f"{pattern[1:]}/go.mod")
    }
    assert covered == {
        file.parent for top in ("tests", "load") for file in (ROOT / top).rglob("go.mod")
    }


def test_the_hooks_are_programs_of_the_lint() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    (lint,) = re.findall(r"^lint: .*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    for hook in hooks["repos"][0]["hooks"]:
        entry = hook["entry"].replace(".venv/bin", "$(BIN)").removesuffix(" --fix")
        assert entry.removesuffix(" format") in lint


def test_the_container_of_developers_makes_the_environment() -> None:
    config = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8"))
    target = config["postCreateCommand"].removeprefix("make ")
    assert target == ".venv/.ready"
    assert config["customizations"]["vscode"]["settings"][
        "python.defaultInterpreterPath"
    ].startswith(".venv/")
