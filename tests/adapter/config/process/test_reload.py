"""Which changes of the configuration file are taken up."""

from __future__ import annotations

from pathlib import Path

from adapter.config.process.config import load
from adapter.config.process.reload import ConfigWatch
from adapter.config.settings import Settings


def check(watch: ConfigWatch) -> None:
    """Check twice: a change is loaded once the file has settled."""
    watch.check()
    watch.check()


def watched(file: Path) -> tuple[ConfigWatch, list[Settings]]:
    used: list[Settings] = []
    return ConfigWatch(
        file, load(file, environ={}), lambda: load(file, environ={}), used.append
    ), used


def test_a_file_that_stays_as_it_was_is_not_taken_up(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("values: {window: 10}")
    watch, used = watched(file)
    check(watch)
    check(watch)
    assert (used, watch.reloads) == ([], 0)


def test_a_change_between_loading_and_watching_is_taken_up(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("values: {window: 10}")
    watch, used = watched(file)
    file.write_text("values: {window: 20}")
    check(watch)
    assert [settings.values.window for settings in used] == [20]


def test_a_file_that_is_still_written_is_not_loaded(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("values: {window: 10}")
    watch, used = watched(file)
    check(watch)
    file.write_text("values:")
    watch.check()
    file.write_text("values: {window: 20}")
    watch.check()
    assert (used, watch.problem) == ([], "")
    watch.check()
    assert [settings.values.window for settings in used] == [20]


def test_a_file_that_was_emptied_keeps_the_previous_settings(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("source: {scrape: {discover: false}}")
    watch, used = watched(file)
    check(watch)
    file.write_text("")
    check(watch)
    assert "is empty" in watch.problem
    assert used == []


def test_a_bad_file_is_a_problem_until_it_is_fixed(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("values: {window: 10}")
    watch, used = watched(file)
    file.write_text("values: {window: soon}")
    check(watch)
    assert "values.window" in watch.problem
    file.unlink()
    check(watch)
    assert "cannot be read" in watch.problem
    file.write_text("values: {window: 10}")
    check(watch)
    assert (watch.problem, len(used)) == ("", 1)
