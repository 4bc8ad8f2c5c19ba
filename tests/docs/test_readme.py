"""What README.md shows works as shown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from adapter.__main__ import main
from adapter.catalog import Catalog
from adapter.config import load
from adapter.hpa import from_manifest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> Iterator[str]:
    return (match[1] for match in re.finditer(rf"```{language}\n(.*?)```", README, re.DOTALL))


def test_the_manifest_is_an_hpa_on_metrics_that_are_served() -> None:
    manifest = yaml.safe_load(next(blocks("yaml")))
    from_manifest(manifest)
    (metric,) = manifest["spec"]["metrics"]
    assert metric["pods"]["metric"]["name"] in Catalog().metrics
    assert "DCGM_FI_DEV_GPU_UTIL" in Catalog().metrics


def test_the_configuration_is_accepted(tmp_path: Path) -> None:
    shown = [block for block in blocks("yaml") if block.startswith("# config.yaml")]
    assert shown
    for block in shown:
        file = tmp_path / "config.yaml"
        file.write_text(block)
        load(file, environ={})


def test_every_make_target_named_exists() -> None:
    named = set(re.findall(r"(?:`|^)make ([a-z0-9]+)", README, re.MULTILINE))
    targets = set(
        re.findall(r"^([a-z0-9]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    )
    assert {"demo", "test"} <= named <= targets


@pytest.mark.parametrize("command", ["serve", "demo"])
def test_every_command_named_has_help(command: str) -> None:
    assert command in README
    assert CliRunner().invoke(main, [command, "--help"]).exit_code == 0


def test_every_page_linked_to_is_there() -> None:
    linked = re.findall(r"\]\(([^)#:]+)\)", README)
    assert [page for page in linked if not (ROOT / page).exists()] == []
