"""The command line of `nodepool`: rejected arguments and their messages."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from adapter.__main__ import main


def run(*arguments: str, config: str = "", folder: Path) -> tuple[int, str]:
    file = folder / "config.yaml"
    file.write_text(config or "{}")
    done = CliRunner().invoke(main, ["nodepool", "--config", str(file), *arguments])
    return done.exit_code, done.output


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("nodepool: {aply: true}", "nodepool.aply: no such key; did you mean apply?"),
        (
            "nodepool: {provisioning_method: guess}",
            "nodepool.provisioning_method: Input should be 'auto', 'buffer'",
        ),
        ("nodepool: {limits: {quantile: 2}}", "nodepool.limits.quantile: Input should be less"),
        (
            "nodepool: {lease: {duration: 5, renew: 9}}",
            "nodepool.lease: must have retry * 1.2 < renew < duration",
        ),
        ("nodepool: {lifeline: soon}", "nodepool.lifeline: 'soon' is not a duration"),
        (
            "nodepool: {lifeline: 30, interval: 15}",
            "nodepool: lifeline must be at least three intervals",
        ),
        (
            "nodepool: {limits: {cost_per_day: 10}}",
            "nodepool.limits: cost_per_day needs gpu_hour_prices",
        ),
    ],
)
def test_an_invalid_setting_is_named_with_file_and_key(
    config: str, words: str, tmp_path: Path
) -> None:
    code, output = run("--once", config=config, folder=tmp_path)
    assert code == 2
    assert words in output
    assert str(tmp_path / "config.yaml") in output


def test_once_and_apply_are_rejected_together(tmp_path: Path) -> None:
    code, output = run("--once", "--apply", folder=tmp_path)
    assert code == 2
    assert "--once writes nothing" in output


def test_once_that_cannot_look_ends_with_2_and_the_process_with_1(tmp_path: Path) -> None:
    arguments = ("--kubeconfig", str(tmp_path / "none"))
    assert run(*arguments, folder=tmp_path)[0] == 1
    code, output = run("--once", *arguments, folder=tmp_path)
    assert code == 2
    assert f"kubeconfig {tmp_path / 'none'} does not exist" in output


def test_a_pods_file_is_rejected(tmp_path: Path) -> None:
    code, output = run("--once", config="cluster: {pods_file: x.yaml}", folder=tmp_path)
    assert code == 2
    assert "nodepool needs a cluster: remove cluster.pods_file" in output


def test_help_explains_the_dry_run() -> None:
    done = CliRunner().invoke(main, ["nodepool", "--help"])
    assert done.exit_code == 0
    assert "--once" in done.output
    assert "--apply / --dry-run" in done.output
