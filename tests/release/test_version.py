"""One version in every file, the notes of a release, and the commit that has its tag."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from adapter import __version__
from release import version
from release.__main__ import main
from release.source import Source
from release.version import ROOT, ReleaseError

FILES = ("adapter/__init__.py", "charts/gpu-metrics-adapter/Chart.yaml", "Dockerfile", "README.md")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for name in (*FILES, "docs/image.md", "CHANGELOG.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, tmp_path / name)
    return tmp_path


def test_every_file_has_the_version_of_the_package() -> None:
    assert version.disagreements() == []


def test_a_file_with_another_version_is_named(copy: Path) -> None:
    chart = copy / "charts/gpu-metrics-adapter/Chart.yaml"
    chart.write_text(chart.read_text().replace(f"version: {__version__}", "version: 9.9.9", 1))
    assert version.disagreements(copy) == [
        f"charts/gpu-metrics-adapter/Chart.yaml has version 9.9.9, not {__version__}"
    ]


def test_a_new_version_is_written_everywhere(copy: Path) -> None:
    version.write("7.8.9-rc.1", copy)
    for name in (*FILES, "docs/image.md"):
        text = (copy / name).read_text()
        assert "7.8.9-rc.1" in text, name
    assert f"IMAGE:{__version__}" not in (copy / "README.md").read_text()
    assert len(version.disagreements(copy)) == 5


@pytest.mark.parametrize("text", ["1.2", "v1.2.3", "1.2.3 ", "latest", ""])
def test_another_form_is_refused(text: str, copy: Path) -> None:
    with pytest.raises(ReleaseError, match="not a version"):
        version.write(text, copy)


def test_the_notes_are_the_section_of_the_version(copy: Path) -> None:
    (copy / "CHANGELOG.md").write_text(
        "# C\n\n## 0.3.0 - unreleased\n\nnew\n\n## 0.2.0 - 2026-01-02\n\n### Added\n\n- old\n"
    )
    assert version.notes("0.2.0", released=True, root=copy) == "### Added\n\n- old\n"
    assert version.notes("0.3.0", released=False, root=copy) == "new\n"
    with pytest.raises(ReleaseError, match=r"0\.3\.0 is unreleased: write the date"):
        version.notes("0.3.0", released=True, root=copy)
    with pytest.raises(ReleaseError, match=r"no heading `## 0\.4\.0 - DATE`"):
        version.notes("0.4.0", released=False, root=copy)


def test_the_current_version_has_notes() -> None:
    assert version.notes(__version__, released=False)


def _git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.invalid")
    subprocess.run(
        ["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True
    )


def test_only_the_unchanged_commit_of_the_tag_is_released(tmp_path: Path) -> None:
    _git(tmp_path, "init", "--quiet")
    (tmp_path / "file").write_text("one")
    _git(tmp_path, "add", "file")
    _git(tmp_path, "commit", "--quiet", "--message", "one")
    with pytest.raises(ReleaseError, match=r"must be v1\.0\.0, not None"):
        Source.of(tmp_path).require_tag(None, "1.0.0")
    with pytest.raises(ReleaseError, match=r"does not have the tag v1\.0\.0"):
        Source.of(tmp_path).require_tag("v1.0.0", "1.0.0")
    _git(tmp_path, "tag", "v1.0.0")
    Source.of(tmp_path).require_tag("v1.0.0", "1.0.0")
    (tmp_path / "file").write_text("two")
    with pytest.raises(ReleaseError, match="files differ from the commit"):
        Source.of(tmp_path).require_tag("v1.0.0", "1.0.0")


def test_a_folder_without_git_is_named(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match="git rev-parse failed"):
        Source.of(tmp_path)


def test_a_release_without_its_tag_ends_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--tag", "v0.0.1"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        f"release: the tag must be v{__version__}, not v0.0.1: pass --tag v{__version__}"
    ]
