"""The files of the page: what is vendored is unchanged, and everything is in the wheel."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.browser.axe import ROOT
from tests.needs import NODE, needs

STATIC = ROOT / "adapter" / "tools" / "ui" / "static"
MODULES = sorted(STATIC.glob("*.js"))
VENDORED = {
    "uplot-1.6.32.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
    "uplot-1.6.32.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
    "uplot-LICENSE": "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd",
}


@pytest.mark.parametrize("name", VENDORED)
def test_what_is_vendored_is_the_published_file(name: str) -> None:
    assert hashlib.sha256((STATIC / "vendor" / name).read_bytes()).hexdigest() == VENDORED[name]


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.name)
def test_each_module_writes_no_markup(module: Path) -> None:
    text = module.read_text()
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text)
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text), "another origin"


@needs(NODE)
@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.name)
def test_each_module_parses(module: Path, tmp_path: Path) -> None:
    copy = tmp_path / f"{module.stem}.mjs"
    copy.write_text(module.read_text())
    subprocess.run([NODE.path(), "--check", copy], check=True, timeout=60)


def test_modules_stay_small() -> None:
    assert {
        path.name: lines for path in MODULES if (lines := len(path.read_text().splitlines())) > 250
    } == {}


def test_every_import_and_every_file_of_the_index_exists() -> None:
    wanted = re.findall(r'(?:src|href)="/static/([^"]+)"', (STATIC / "index.html").read_text())
    for module in MODULES:
        wanted += re.findall(r'from "\./([^"]+)"', module.read_text())
    assert len(wanted) > 30
    assert [name for name in wanted if not (STATIC / name).is_file()] == []


def test_the_wheel_contains_the_page_and_the_licence(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path],
        cwd=ROOT,
        check=True,
        capture_output=True,
        timeout=120,
    )
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    ours = {str(path.relative_to(ROOT)) for path in STATIC.rglob("*") if path.is_file()}
    assert ours <= names
