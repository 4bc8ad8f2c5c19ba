"""Which changes of the configuration file are taken up."""

from __future__ import annotations

from pathlib import Path

from adapter.config import load
from adapter.reload import ConfigWatch
from adapter.settings import Settings


def watched(file: Path) -> tuple[ConfigWatch, list[Settings]]:
    used: list[Settings] = []
    return ConfigWatch(
        file, load(file, environ={}), lambda: load(file, environ={}), used.append
    ), used


def test_a_file_that_stays_as_it_was_is_not_taken_up(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("values: {window: 10}")
    watch, used = watched(file)
    watch.check()
    watch.check()
    assert (used, watch.reloads) == ([], 0)


def test_a_change_between_loading_and_watching_is_taken_up(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("values: {window: 10}")
    watch, used = watched(file)
    file.write_text("values: {window: 20}")
    watch.check()
    assert [settings.values.window for settings in used] == [20]


def test_a_bad_file_is_a_problem_until_it_is_mended(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("values: {window: 10}")
    watch, used = watched(file)
    file.write_text("values: {window: soon}")
    watch.check()
    assert "values.window" in watch.problem
    file.unlink()
    watch.check()
    assert "cannot be read" in watch.problem
    file.write_text("values: {window: 10}")
    watch.check()
    assert (watch.problem, len(used)) == ("", 1)
