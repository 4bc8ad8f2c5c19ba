"""The review of the locks: distributions, origins and licences."""

from __future__ import annotations

import importlib.metadata
import re
from pathlib import Path

import pytest

from tests.security.lock import Locked, read

ROOT = Path(__file__).parents[2]
RUNTIME, DEVELOPMENT = ROOT / "requirements.lock", ROOT / "requirements-dev.lock"

FREE = re.compile(
    r"\b(MIT|MIT-0|BSD|Apache|PSF|Python Software Foundation|ISC|MPL|Mozilla Public|CNRI-Python"
    r"|Dual License|Unlicense|Zlib|0BSD)\b",
    re.IGNORECASE,
)
"""Licences that are compatible with an Apache-2.0 program, by the names in metadata."""
NOT_FREE = re.compile(r"\b(A?GPL|LGPL|SSPL|BUSL|proprietary|commercial)\b", re.IGNORECASE)


@pytest.mark.parametrize("file", [RUNTIME, DEVELOPMENT], ids=lambda file: file.name)
def test_every_line_is_one_version_with_hashes_and_no_index(file: Path) -> None:
    text = file.read_text()
    locked = read(text)
    assert len(locked) > 20
    assert [row.name for row in locked.values() if not row.hashes] == []
    assert "://" not in text
    assert "--index" not in text
    assert re.findall(r"^(?!\s|#|[A-Za-z0-9][\w.-]*(\[[\w,-]+\])?==)\S.*", text, re.MULTILINE) == []


def test_tests_run_with_the_shipped_versions() -> None:
    shipped, tested = read(RUNTIME.read_text()), read(DEVELOPMENT.read_text())
    differ = {
        name: (row.version, tested[name].version)
        for name, row in shipped.items()
        if name in tested and tested[name].version != row.version
    }
    assert differ == {}


def test_shipped_licences_are_allowed() -> None:
    """By the metadata of each distribution, except those of extras that are not installed."""
    rows = read(RUNTIME.read_text()).values()
    stated = {row.name: _licence(row) for row in rows if _installed(row)}
    assert len(stated) > 40
    assert {name: text for name, text in stated.items() if NOT_FREE.search(text)} == {}
    assert {name: text for name, text in stated.items() if not FREE.search(text)} == {}


def _installed(row: Locked) -> bool:
    try:
        importlib.metadata.distribution(row.name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _licence(row: Locked) -> str:
    metadata = importlib.metadata.metadata(row.name)
    classifiers = [c for c in metadata.get_all("Classifier") or [] if c.startswith("License")]
    stated = [metadata.get_all(key) or [] for key in ("License-Expression", "License")]
    return " ".join([text[:60] for texts in stated for text in texts] + classifiers)
