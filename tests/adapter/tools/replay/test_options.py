"""Wrong values of the options of ``replay``: one line names the option, the value and the fix."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.adapter.commandline import Ended, invoke
from tests.adapter.tools.replay.day import Day, manifest, write


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("options")
    write(folder / "day.gma", Day(lambda _: 120.0, syncs=40, period=15.0))
    (folder / "hpa.yaml").write_text(yaml.safe_dump(manifest()))
    return folder


def replay(folder: Path, *arguments: str, name: str = "ml/llm", file: str = "hpa.yaml") -> Ended:
    files = ("--from", str(folder / "day.gma"), "-f", str(folder / file))
    return invoke("replay", "hpa", name, *files, *arguments)


WRONG = {
    "--limit nan": "'nan': give a number from 0.001 to 1000000000",
    "--limit inf": "'inf': give a number from 0.001 to 1000000000",
    "--limit 0": "'0': give a number from 0.001",
    "--gpu-hour nan": "'nan': give a number from 0 to 1000000000",
    "--gpu-hour 1e308": "'1e308': give a number from 0 to 1000000000",
    "--gpu-hour -1": "'-1': give a number from 0",
    "--sync-period 0s": "'0s': give a time from 1s to 60m",
    "--sync-period 2h": "'2h': give a time from 1s to 60m",
    "--stabilization 4000": "'4000': give whole numbers from 0 to 3600",
    "--max 1e10": "'1e10': give whole numbers from 1 to 2147483647",
    "--min 2000000000 --max 2000000000": "has 2000000000 replicas, and a replay has at most 10000",
    "--target 0.001 --max 2000000000": "replicas, and a replay has at most 10000: give another",
    "--fail exporter:1m@0001-01-01T00:00+14:00": "'0001-01-01T00:00+14:00' is before 1970",
    "--fail exporter:1d": "--fail takes 24h, and the recording is from",
    "--headroom ٣": "'٣': write none, a share such as 20%",
}


@pytest.mark.parametrize(("arguments", "said"), WRONG.items(), ids=WRONG)
def test_a_wrong_value_is_named(folder: Path, arguments: str, said: str) -> None:
    ended = replay(folder, *arguments.split())
    assert ended.code == 2
    assert said in " ".join(ended.output.split())


def test_a_failure_longer_than_the_recording_has_its_own_fix(folder: Path) -> None:
    assert "UTC: give a shorter time" in replay(folder, "--fail", "exporter:1d").output


def test_a_page_that_cannot_be_written_is_named_first(folder: Path) -> None:
    for path in (folder, folder / "none" / "report.html"):
        ended = replay(folder, "--html", str(path), name="ml/none")
        assert ended.code == 2
        assert f"{path} cannot be written: name a file in a folder that exists" in ended.output


@pytest.mark.parametrize("name", ["day.gma", "hpa.yaml"])
def test_a_page_never_overwrites_what_is_read(folder: Path, name: str) -> None:
    before = (folder / name).read_bytes()
    ended = replay(folder, "--html", str(folder / ".." / folder.name / name))
    assert ended.code == 2
    assert "would overwrite" in ended.output
    assert (folder / name).read_bytes() == before


def test_rows_state_their_targets_exactly(folder: Path) -> None:
    report = json.loads(replay(folder, "--target", "45.4,45.04", "-o", "json").output)
    assert [row["settings"] for row in report["variants"]] == ["now", "target 45.4", "target 45.04"]


def hpas(folder: Path, text: str) -> str:
    (folder / "other.yaml").write_text(text)
    return "other.yaml"


def test_an_hpa_in_a_file_twice_is_named(folder: Path) -> None:
    file = hpas(folder, yaml.safe_dump_all([manifest("50"), manifest("60")]))
    ended = replay(folder, file=file)
    assert ended.code == 2
    assert "other.yaml has 2 HPAs ml/llm: leave one" in ended.output


@pytest.mark.parametrize("kind", ["List", "HorizontalPodAutoscalerList"])
def test_a_list_of_kubectl_has_hpas(folder: Path, kind: str) -> None:
    written: dict[str, Any] = {"apiVersion": "v1", "kind": kind, "items": [manifest()]}
    assert replay(folder, file=hpas(folder, yaml.safe_dump(written))).code == 0


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("ml/llx", "hpa.yaml has no HPA ml/llx: it has ml/llm"),
        ("xx/llm", "hpa.yaml has no HPA xx/llm: it has ml/llm"),
        ("/", "'/' is not the name of an HPA: write ml/llm, or llm -n ml"),
    ],
)
def test_a_wrong_name_is_named_with_those_of_the_file(folder: Path, name: str, said: str) -> None:
    ended = replay(folder, name=name)
    assert ended.code == 2
    assert said in ended.output
