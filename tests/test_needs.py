"""Tests name what they need; nothing else skips one, and a missing engine ends no run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests import debian, engines, needs
from tests.needs import BASH, NOT_ROOT, PROMETHEUS, ROOT, Need

BUILDERS = {
    "tests/needs.py": "the list itself",
    "tests/debian.py": "the tools that unpack packages",
    "tests/e2e/programs.py": "finds, builds and installs programs",
    "tests/e2e/toolchain.py": "finds or downloads Go",
    "tests/e2e/imagebuild.py": "builds the image",
    "tests/e2e/privatenetwork.py": "makes the network",
    "tests/browser/axe.py": "downloads axe-core",
}
"""Modules that look for programs other than those of a test."""
DYNAMIC = {
    "tests/docs/test_suppressions.py": "has such calls as texts",
    "tests/e2e/test_image.py": "the build of the image says why it is impossible here",
    "tests/e2e/test_nodepool.py": "looks back on all other tests of its module",
}
"""Modules in which a test knows only when it runs that it cannot."""
LISTED = [need for need in vars(needs).values() if isinstance(need, Need)]


def _modules_with(pattern: str) -> set[str]:
    """The modules of the tests that contain a pattern."""
    paths = sorted((ROOT / "tests").rglob("*.py"))
    return {str(path.relative_to(ROOT)) for path in paths if re.search(pattern, path.read_text())}


def test_only_a_need_skips_a_test() -> None:
    skips = r"pytest\.(?:mark\.)?(?:skip\(|skipif|importorskip)"
    assert _modules_with(skips) - {"tests/needs.py"} == set(DYNAMIC)


def test_only_the_list_looks_for_programs() -> None:
    assert _modules_with(r"shutil\.which\(") == set(BUILDERS)


@pytest.mark.parametrize("need", LISTED, ids=lambda need: need.name)
def test_a_reason_names_the_command(need: Need) -> None:
    missing = Need(need.name, need.command, lambda: None)
    assert missing.missing() == f"without {need.name}: {need.command}"
    assert need.command


def test_a_test_without_the_marker_fails_although_the_program_is_there() -> None:
    with pytest.raises(AssertionError, match="mark this test with needs"):
        PROMETHEUS.path()


@needs.needs(BASH)
def test_a_marked_test_gets_the_program() -> None:
    assert Path(BASH.path()).name == "bash"


def test_the_summary_has_two_lines() -> None:
    reasons = ["without bash: install bash"] * 3 + ["without IPv6: run on a machine with IPv6"]
    assert needs.summary(reasons) == [
        "4 tests were skipped: 3 without bash, 1 without IPv6",
        "to run more: install bash; run on a machine with IPv6",
    ]
    assert needs.summary([]) == []


def test_a_skip_for_another_reason_is_unexpected() -> None:
    reasons = ["without bash: install bash", "no time"]
    assert needs.unexpected(reasons, ["bash"]) == ["no time"]
    assert needs.unexpected(reasons, [NOT_ROOT.name]) == sorted(reasons)


def test_without_apt_get_the_run_goes_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(engines, "PACKAGES", {"no-package": (Need("no-program", "", _nothing),)})
    assert engines.main() == 0
    assert "not fetched: no-package: apt-get is not on the PATH" in capsys.readouterr().err


def test_a_package_that_cannot_be_had_is_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for tool in ("apt-get", "dpkg-deb"):
        (tmp_path / tool).write_text("#!/bin/sh\necho 'E: no network' >&2; exit 100\n")
        (tmp_path / tool).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(engines, "PACKAGES", {"no-package": (Need("no-program", "", _nothing),)})
    monkeypatch.setattr(debian, "UNPACKED", tmp_path / "unpacked")
    assert engines.main() == 0
    assert capsys.readouterr().err.splitlines()[1:] == ["not fetched: apt-get: E: no network"]


def _nothing() -> None:
    return None
