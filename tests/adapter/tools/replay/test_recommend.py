"""``replay recommend``: settings for one HPA or all of a namespace, with the evidence."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from adapter.hpa import from_manifest
from tests.adapter.clientapi import api_server
from tests.adapter.commandline import Ended, invoke
from tests.adapter.tools.replay.day import PERIOD, Day, ServerDay, manifest, waves, write

HPAS = "/apis/autoscaling/v2/namespaces/ml/horizontalpodautoscalers"


def recommend(folder: Path, *arguments: str, name: str = "ml/llm", day: str = "day.gma") -> Ended:
    files = ("--from", str(folder / day), "-f", str(folder / "hpa.yaml"))
    names = (name,) if name else ()
    period = ("--sync-period", f"{PERIOD:g}s")
    return invoke("replay", "recommend", *names, *files, *period, *arguments)


def item(done: Ended, number: int = 0) -> dict[str, Any]:
    assert done.code == 0, done.output
    answer: dict[str, Any] = json.loads(done.output)["items"][number]
    return answer


def saved(folder: Path, *hpas: dict[str, Any], day: Day) -> Path:
    write(folder / "day.gma", day)
    (folder / "hpa.yaml").write_text(yaml.safe_dump_all(hpas))
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recorded day of an HPA whose target is low, and an HPA that was not recorded."""
    hpa = manifest("30")
    other = manifest("30")
    other = {**other, "metadata": {"name": "embed", "namespace": "ml"}}
    return saved(tmp_path_factory.mktemp("recommend"), other, hpa, day=Day(waves, hpa=hpa))


def test_settings_that_save_are_recommended_with_a_manifest(folder: Path) -> None:
    done = recommend(folder, "--allow", "1h")
    assert done.code == 0, done.output
    row = done.output.splitlines()[1].split("   ")
    assert row[0] == "ml/llm"
    assert row[1].strip() == "DCGM_FI_DEV_GPU_UTIL 30, 1-20"
    applied = yaml.safe_load(done.output.partition("# apply this manifest, or commit it:\n")[2])
    assert from_manifest(applied).metrics[0].target.milli > 30_000
    assert "the limit is 90 a pod, for at most 60m a day" in done.output


def test_what_is_recommended_costs_what_replay_hpa_says(folder: Path) -> None:
    answer = item(recommend(folder, "--allow", "1h", "-o", "json"))
    best = answer["replay"]["variants"][1]
    made = from_manifest(answer["recommended"])
    window = made.behavior.scale_down.window if made.behavior else None
    tried: tuple[str, ...] = ("--target", f"{made.metrics[0].target.milli / 1000:g}")
    tried += ("--stabilization", f"{window:g}") if window is not None else ()
    done = invoke(
        *("replay", "hpa", "ml/llm", "--from", str(folder / "day.gma"), "--limit", "90"),
        *("-f", str(folder / "hpa.yaml"), "--sync-period", f"{PERIOD:g}s", "-o", "json", *tried),
    )
    same = json.loads(done.output)["variants"][1]
    assert (same["gpuHours"], same["changes"]) == (best["gpuHours"], best["changes"])
    assert best["gpuHours"] < answer["replay"]["variants"][0]["gpuHours"]


def test_an_hpa_that_cannot_be_replayed_does_not_end_the_others(folder: Path) -> None:
    done = recommend(folder, "-n", "ml", "--allow", "1h", name="")
    assert done.code == 0, done.output
    lines = done.output.splitlines()
    assert lines[1].split() == ["ml/embed", "-", "-", "-", "-", "-"]
    assert lines[2].startswith("ml/llm")
    assert "has no sync of HPA ml/embed" in " ".join(done.output.split())


def test_a_maximum_that_is_too_low_is_raised(tmp_path: Path) -> None:
    hpa = manifest("60", high=4)
    saved(tmp_path, hpa, day=Day(waves, hpa=hpa))
    answer = item(recommend(tmp_path, "--limit", "95", "--allow", "4h", "-o", "json"))
    now, best = answer["replay"]["variants"]
    assert now["overLimitSeconds"] > 4 * 3600 > best["overLimitSeconds"]
    assert best["maxReplicas"] == 8
    # Four pods that were busy to the limit do not show how much work there was.
    assert answer["recommended"] is None
    assert any("the pods were busy to the limit" in text for text in answer["evidence"])


def test_a_short_recording_supports_no_recommendation(tmp_path: Path) -> None:
    hpa = manifest("30")
    saved(tmp_path, hpa, day=Day(waves, syncs=60, hpa=hpa))
    answer = item(recommend(tmp_path, "-o", "json"))
    assert answer["recommended"] is None
    assert "no recommendation: the recording has" in answer["evidence"][-2]


def test_good_settings_are_kept(tmp_path: Path) -> None:
    hpa = manifest("60")
    saved(tmp_path, hpa, day=Day(lambda _: 59.0, start=1, hpa=hpa))
    done = recommend(tmp_path, "--limit", "70")
    assert done.output.splitlines()[1].split()[4] == "keep"
    assert "no settings that were tried save 2 % of the GPU-hours" in done.output


def test_utilization_of_servers_is_answered_with_the_requests_that_run(tmp_path: Path) -> None:
    hpa = manifest("30")
    saved(tmp_path, hpa, day=ServerDay(waves, hpa=hpa))
    answer = item(recommend(tmp_path, "-o", "json"))
    assert answer["queue"]["syncs"] > 300
    assert 3 <= answer["queue"]["runningRequestsWithoutWaiting"] <= 8
    (metric,) = from_manifest(answer["recommended"]).metrics
    assert metric.name == "inference_requests_running"
    assert metric.target.milli == pytest.approx(
        800 * answer["queue"]["runningRequestsWithoutWaiting"], abs=100
    )
    text = recommend(tmp_path).output
    assert "inference_requests_running" in text.splitlines()[1]
    assert "Utilization says that a GPU works" in text


def test_requests_that_run_need_no_other_metric(tmp_path: Path) -> None:
    hpa = manifest("4")
    hpa["spec"]["metrics"][0]["pods"]["metric"]["name"] = "inference_requests_running"
    saved(tmp_path, hpa, day=replace(ServerDay(waves), hpa=manifest("30")))
    answer = item(recommend(tmp_path, "-o", "json"))
    assert "queue" not in answer
    assert answer["replay"]["metric"] == "inference_requests_running"


def test_all_hpas_of_the_namespace_are_read_from_the_cluster(folder: Path, tmp_path: Path) -> None:
    with api_server(tmp_path) as (server, file):
        server.answers[HPAS] = {"items": [manifest("30")], "metadata": {}}
        done = invoke(
            *("replay", "recommend", "-n", "ml", "--from", str(folder / "day.gma")),
            *("--sync-period", f"{PERIOD:g}s", "--kubeconfig", str(file)),
        )
        server.answers[HPAS] = {"items": [], "metadata": {}}
        empty = invoke(
            *("replay", "recommend", "-n", "ml", "--from", str(folder / "day.gma")),
            *("--kubeconfig", str(file)),
        )
    assert done.code == 0, done.output
    assert done.output.splitlines()[1].startswith("ml/llm")
    assert empty.code == 2
    assert "there is no HPA in namespace ml: name a namespace that has some" in empty.output


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("ml/none", (), "has no HPA ml/none: it has ml/"),
        ("ml/llm", ("-n", "chat"), "ml/llm and -n chat name two namespaces: remove one"),
        ("", ("-n", "chat"), "there is no HPA in namespace chat"),
        ("ml/embed", (), "the recording has no sync of HPA ml/embed: check the name"),
        ("ml/llm", ("--from", "none.gma"), "none.gma does not exist: name a recording or"),
        ("ml/llm", ("--limit", "0"), "'0': give a number from 0.001"),
    ],
)
def test_a_failure_names_the_thing_and_the_fix(
    folder: Path, name: str, arguments: tuple[str, ...], said: str
) -> None:
    done = recommend(folder, *arguments, name=name)
    assert done.code == 2
    assert said in done.output
    assert "Traceback" not in done.output
