"""``replay hpa`` as a command: its table, its JSON, and what it says about wrong input."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from adapter.hpa import from_manifest
from tests.adapter.clientapi import api_server
from tests.adapter.commandline import Ended, invoke
from tests.adapter.tools.replay.day import PERIOD, Day, manifest, waves, write

HPA = "/apis/autoscaling/v2/namespaces/ml/horizontalpodautoscalers"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recorded day, and the HPA's manifest."""
    folder = tmp_path_factory.mktemp("replay")
    hpa = manifest("30")
    write(folder / "day.gma", Day(waves, hpa=hpa))
    other = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "llm"}}
    (folder / "hpa.yaml").write_text(yaml.safe_dump_all([other, hpa]))
    return folder


def replay(folder: Path, *arguments: str, name: str = "ml/llm") -> Ended:
    file = ("-f", str(folder / "hpa.yaml"))
    return invoke(
        *("replay", "hpa", name, "--from", str(folder / "day.gma")),
        *("--sync-period", f"{PERIOD:g}s", *(() if "-f" in arguments else file), *arguments),
    )


def test_the_table_recommends_and_prints_a_manifest_to_apply(folder: Path) -> None:
    done = replay(
        folder, "--target", "45,60", "--limit", "66", "--allow", "1h", "--gpu-hour", "2.5"
    )
    assert done.code == 0, done.output
    lines = done.output.splitlines()
    assert [line.split("  ")[0] for line in lines if "GPU" not in line][2:6] == [
        "recorded",
        "now",
        "target 45",
        "target 60",
    ]
    assert "recommended" in next(line for line in lines if line.startswith("target"))
    assert "decided as the controller at" in done.output
    applied = yaml.safe_load(done.output.partition("# apply this manifest, or commit it:\n")[2])
    assert from_manifest(applied).metrics[0].target.milli == 45_000
    expected = manifest("45")
    assert applied == expected


def test_the_json_has_the_figures(folder: Path) -> None:
    done = replay(folder, "--min", "2", "--stabilization", "900", "-o", "json")
    report = json.loads(done.output)
    assert report["agreement"]["equal"] == report["agreement"]["compared"] > 250
    assert [row["settings"] for row in report["variants"]] == ["now", "window 900 s, min 2"]
    now, other = report["variants"]
    assert other["gpuHours"] > now["gpuHours"] > 0
    assert "cost" not in now
    assert report["bootPods"] > 5


def test_an_hpa_that_does_not_exist_needs_another_name_and_no_file(
    folder: Path, tmp_path: Path
) -> None:
    with api_server(tmp_path) as (server, file):
        server.answers[HPA] = {"items": [manifest("30")]}
        done = invoke(
            *("replay", "hpa", "lm", "-n", "ml", "--from", str(folder / "day.gma")),
            *("--kubeconfig", str(file)),
        )
    assert done.code == 2
    assert "no HPA 'lm' in namespace ml" in done.output
    assert "--filename" not in done.output


def test_the_hpa_is_read_from_the_cluster_without_a_file(folder: Path, tmp_path: Path) -> None:
    with api_server(tmp_path) as (server, file):
        server.answers[f"{HPA}/llm"] = manifest("30")
        done = invoke(
            *("replay", "hpa", "llm", "-n", "ml", "--from", str(folder / "day.gma")),
            *("--sync-period", f"{PERIOD:g}s", "--kubeconfig", str(file)),
        )
    assert done.code == 0, done.output
    assert "HPA ml/llm" in done.output


def changed(**spec: Any) -> str:
    hpa = manifest()
    hpa["spec"] |= spec
    return yaml.safe_dump(hpa)


@pytest.mark.parametrize(
    ("name", "arguments", "content", "said"),
    [
        ("ml/llm", ("--from", "none.gma"), "", "none.gma does not exist: name a recording or"),
        ("ml/llm", ("--from", "hpa.yaml"), "", "hpa.yaml is not a recording: give a file that"),
        ("ml/llm", ("-n", "chat"), "", "ml/llm and -n chat name two namespaces: remove one"),
        ("ml/other", (), "", "hpa.yaml has no HPA ml/other: it has ml/llm"),
        ("ml/llm", ("--metric", "power"), "", "has no metric of type Pods that work is divided"),
        ("ml/llm", ("--min", "9", "--max", "3"), "", "minReplicas 9 is above maxReplicas 3"),
        ("ml/llm", ("-f", "bad.yaml"), "a: [", "bad.yaml cannot be read as YAML"),
        ("ml/llm", ("-f", "bad.yaml"), "[]", "bad.yaml has no HPA ml/llm: it has no HPA"),
        ("ml/llm", ("-f", "bad.yaml"), changed(metrics=[]), "it has Resource cpu"),
        ("ml/llm", ("-f", "bad.yaml"), changed(maxReplicas="x"), "spec.maxReplicas is 'x'"),
    ],
)
def test_a_failure_is_one_line_with_the_thing_and_the_fix(
    folder: Path, name: str, arguments: tuple[str, ...], content: str, said: str
) -> None:
    (folder / "bad.yaml").write_text(content)
    files = [str(folder / word) if word.endswith((".gma", ".yaml")) else word for word in arguments]
    done = replay(folder, *files, name=name)
    assert done.code == 2
    assert said in done.output
    assert done.output.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "name what to read, with either --from PATH or --from-prometheus URL"),
        (("--from-prometheus", "notaurl"), "--from-prometheus: Input should be a valid URL"),
        (("--from-prometheus", "http://a", "--since", "0s"), "--since has to be above 0"),
        (("--from", "none.gma"), "none.gma does not exist"),
        (("--from", "nofolder", "--config", "c.yaml"), "nofolder does not exist"),
        (("--from", "x" * 300), "cannot be read: File name too long"),
        (("--from", ".", "--config", "none.yaml"), "none.yaml"),
        (("--from", "."), "; or give the HPA's manifest with --filename"),
    ],
)
def test_the_cluster_is_asked_last_and_a_manifest_replaces_it(
    tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    done = invoke("replay", "hpa", "ml/llm", "--kubeconfig", str(tmp_path / "none"), *arguments)
    assert done.code == 2
    assert said in done.output
    assert ("kubeconfig" in done.output) == ("--filename" in said)
    assert done.output.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--target", "60,x"), "'x': give numbers from 0.001 to 1000000000, separated by"),
        (("--min", "1.5"), "'1.5': give whole numbers from 1 to 2147483647, separated"),
        (("--boot", "5"), "'5': write a number and s, m, h or d, such as 10m"),
        (("--limit", "0"), "'0': give a number from 0.001"),
    ],
)
def test_a_wrong_option_is_named(folder: Path, arguments: tuple[str, ...], said: str) -> None:
    done = replay(folder, *arguments)
    assert done.code == 2
    assert said in done.output


def test_the_page_has_the_table_the_plots_and_the_manifest(folder: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    arguments = ("--target", "45,60", "--limit", "66", "--allow", "1h", "--gpu-hour", "2.5")
    printed = replay(folder, *arguments, "--html", str(page))
    assert printed.code == 0
    text = page.read_text()
    assert printed.output == replay(folder, *arguments).output
    assert text.count("<svg") == text.count("</svg>") == 3
    assert "Recommended: target 45." in text
    assert "averageValue: &#x27;45&#x27;" in text
    assert not re.search(r"<script|<link|src=|https?:|url\(", text)


def test_a_variant_has_one_color_in_every_plot(folder: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    replay(folder, "--target", "45,60", "--limit", "66", "--allow", "1h", "--html", str(page))
    text = page.read_text()
    lines = set(re.findall(r'<span class="([a-z]+)">([^<]+)</span>', text))
    points = set(re.findall(r'<circle class="([a-z]+)".*?<text class="name"[^>]*>([^<]+)<', text))
    names = {name for _, name in lines} & {name for _, name in points}
    assert "target 45" in names, "the recommended settings are in both plots"
    styles = {(style, name) for style, name in lines | points if name in names}
    assert len(styles) == len(names), styles
    assert "chosen" in {style for style, _ in styles}


def test_a_page_that_cannot_be_written_is_one_line(folder: Path, tmp_path: Path) -> None:
    done = replay(folder, "--html", str(tmp_path / "none" / "report.html"))
    assert done.code == 2
    (line,) = done.output.splitlines()
    assert line.endswith("none/report.html cannot be written: name a file in a folder that exists")
