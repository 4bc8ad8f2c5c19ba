"""``replay recommend`` on a latency promise: servers of which everything is known."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from adapter.hpa import from_manifest
from adapter.pipeline.catalog import built_in
from adapter.pipeline.catalog.promise import SLO_RATIO, parse_promise
from adapter.pipeline.catalog.seriesdemand import SeriesDemand
from adapter.pipeline.catalog.servermeasures import OF_PROMISES
from tests.adapter.commandline import Ended, invoke
from tests.adapter.tools.replay.day import START, Day, manifest, waves, write
from tests.adapter.tools.replay.servedday import CAPACITY, SYNC, ServedDay, hpa
from tests.adapter.tools.replay.storedcluster import StoredCluster
from tests.adapter.tools.replay.test_savedpages import saved
from tests.needs import PROMETHEUS, PROMTOOL, needs

PROMISE = ("--ttft", "1s")


def recorded(folder: Path, day: ServedDay) -> ServedDay:
    write(folder / "day.gma", day)
    (folder / "hpa.yaml").write_text(yaml.safe_dump(day.hpa))
    return day


def recommend(folder: Path, *arguments: str, source: str = "day.gma") -> Ended:
    files = ("--from", str(folder / source), "-f", str(folder / "hpa.yaml"))
    return invoke("replay", "recommend", "ml/llm", *files, *arguments)


def item(done: Ended) -> dict[str, Any]:
    assert done.code == 0, done.output
    answer: dict[str, Any] = json.loads(done.output)["items"][0]
    return answer


def said(done: Ended) -> str:
    assert done.code == 0, done.output
    return " ".join(done.output.split())


def slo(target: str = "500m", **labels: str) -> dict[str, Any]:
    promise = labels or {"ttft_p90": "1s"}
    return hpa(target, high=20, name=SLO_RATIO, selector={"matchLabels": promise})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tides of an HPA whose maximum is too low, and the truth about its servers."""
    folder = tmp_path_factory.mktemp("promise")
    day = recorded(folder, ServedDay())
    (folder / "truth.json").write_text(json.dumps([day.requests, day.late]))
    return folder


def truth(folder: Path) -> tuple[float, float]:
    requests, late = json.loads((folder / "truth.json").read_text())
    return requests, late


def test_the_kept_latencies_come_first_with_all_their_requests(folder: Path) -> None:
    done = recommend(folder)
    requests, _ = truth(folder)
    first, second = item(recommend(folder, "-o", "json"))["promise"]["latencies"]
    assert (first["latency"], second["latency"]) == ("ttft", "itl")
    assert first["values"] == pytest.approx(requests)
    assert second["values"] == pytest.approx(10 * requests)
    assert 2.5 == first["low"] < first["value"] < first["high"] == 5.0
    assert first["value"] < first["worst"]["value"] < 5.0
    assert first["worst"]["values"] < first["values"]
    assert (second["low"], second["high"]) == (0.01, 0.025)
    lines = done.output.splitlines()
    assert lines[4].startswith("- the recorded replicas kept ttft_p90 3.")
    of_all = f"s (between 2.5s and 5s), of {requests:.0f} requests; in the worst 15 min, from 2026-"
    assert of_all in said(done)


def test_the_advice_is_a_command_that_works(folder: Path) -> None:
    text = said(recommend(folder))
    assert "(between 10ms and 25ms), of 1150078 times between tokens, also in the worst 15" in text
    assert "add --ttft 5s --itl 25ms to this command to see what an HPA on this promise" in text
    command = re.search(r"write one with `gpu-metrics-adapter (.*?)`", text)
    assert command is not None
    made = invoke(*shlex.split(command[1]))
    assert made.code == 0, made.output
    (metric,) = from_manifest(yaml.safe_load(made.output)).metrics
    assert metric.selector == {"matchLabels": {"ttft_p90": "5s", "itl_p90": "25ms"}}
    spec = from_manifest(yaml.safe_load(made.output))
    assert (spec.namespace, spec.name, spec.max_replicas) == ("ml", "llm", 5)


def test_the_capacity_and_the_share_of_late_requests_are_those_of_the_servers(
    folder: Path,
) -> None:
    answer = item(recommend(folder, *PROMISE, "-o", "json"))["promise"]
    requests, late = truth(folder)
    (missed,) = answer["missed"]
    assert (missed["late"], missed["values"]) == (pytest.approx(late), pytest.approx(requests))
    assert missed["share"] == pytest.approx(late / requests)
    assert (missed["exact"], missed["tolerance"]) == (True, 0.1)
    (capacity,) = answer["capacities"]
    assert capacity["gpu"] == "opal"
    assert capacity["load"] == pytest.approx(CAPACITY, rel=0.12)
    assert capacity["seenToBreak"]
    assert capacity["requests"] == pytest.approx(requests, rel=0.02)
    assert answer["promised"]["overCapacitySeconds"] < answer["recorded"]["overCapacitySeconds"]


def test_gpu_hours_follow_from_the_load_and_the_target(folder: Path) -> None:
    answer = item(recommend(folder, *PROMISE, "-o", "json"))["promise"]
    # Each replica has half of its capacity to do on average, up to twice the maximum of 5.
    hours = 960 * SYNC / 3600
    assert answer["promised"]["gpuHours"] == pytest.approx(hours * 40 / (0.5 * CAPACITY), rel=0.15)
    assert answer["promised"]["highestReplicas"] == 10
    assert answer["recorded"]["highestReplicas"] == 5
    assert answer["recorded"]["gpuHours"] == pytest.approx(hours * 3.8, rel=0.1)


def test_the_manifest_states_the_promise_and_is_accepted(folder: Path, tmp_path: Path) -> None:
    done = recommend(folder, *PROMISE, "--itl", "50ms")
    assert done.code == 0, done.output
    row = done.output.splitlines()[1]
    assert "inference_requests_running 9, 1-5" in row
    assert "inference_slo_ratio 0.5, max 10" in row
    text = said(done)
    assert "17% of" in text
    assert "with maxReplicas 5, the load would be above the capacity for longer than 10m" in text
    assert "itl_p90 50ms: 0% of" in text
    assert "where it was seen to break" in text
    assert "this is an estimate" in text
    assert "is not simulated" in text
    made = yaml.safe_load(done.output.partition("# apply this manifest, or commit it:\n")[2])
    (metric,) = from_manifest(made).metrics
    assert (metric.name, metric.target.milli) == (SLO_RATIO, 500)
    assert metric.selector == {"matchLabels": {"ttft_p90": "1s", "itl_p90": "50ms"}}
    assert parse_promise(metric.selector["matchLabels"])
    file = tmp_path / "made.yaml"
    file.write_text(yaml.safe_dump(made))
    checked = invoke("doctor", "-f", str(file))
    assert checked.code == 0, checked.output


def test_an_hpa_on_a_promise_is_replayed_on_it(tmp_path: Path) -> None:
    tight = slo()
    tight["spec"]["maxReplicas"] = 5
    for hpa_manifest, keeps in ((slo(), True), (slo("2"), True), (tight, False)):
        (tmp_path / "day.gma").unlink(missing_ok=True)
        recorded(tmp_path, ServedDay(hpa=hpa_manifest, syncs=480))
        done = recommend(tmp_path)
        assert ("  keep  " in done.output.splitlines()[1]) == keeps, done.output
        answer = item(recommend(tmp_path, "-o", "json"))
        assert answer["promise"]["promise"] == {"ttft_p90": "1s"}
        assert (answer["recommended"] is None) == keeps


def test_a_bound_between_two_of_the_histogram_is_missed_at_least_so_often(folder: Path) -> None:
    text = said(recommend(folder, "--ttft", "3s"))
    assert re.search(r"ttft_p90 3s: at least 0% of \d+ requests were later, and 10% may be", text)
    assert "; the histogram has no bound there" in text


def test_a_latency_above_the_last_bound_is_named(tmp_path: Path) -> None:
    recorded(tmp_path, ServedDay(lateness=30.0, syncs=480))
    text = said(recommend(tmp_path))
    assert "kept ttft_p90 above 5s, the last bound of the histogram, of " in text
    assert "add --itl 25ms to this command" in text


def test_a_promise_that_was_never_broken_is_an_estimate(tmp_path: Path) -> None:
    recorded(tmp_path, ServedDay(hpa=hpa("6", high=20), load="6", syncs=480))
    text = said(recommend(tmp_path, *PROMISE))
    assert "an estimate: no load was seen to break it" in text
    assert "the recorded replicas kept the promise with fewer GPU-hours" in text


def test_a_promise_that_every_load_broke_is_an_estimate(tmp_path: Path) -> None:
    recorded(tmp_path, ServedDay(demand=lambda _: 90.0, syncs=240))
    text = said(recommend(tmp_path, "--ttft", "200ms"))
    assert "an estimate: every load that was seen broke it" in text
    assert "maxReplicas 5 is too low for the load" in text


def test_too_little_evidence_gives_no_recommendation(tmp_path: Path) -> None:
    recorded(tmp_path, ServedDay(syncs=9))
    answer = item(recommend(tmp_path, *PROMISE, "-o", "json"))
    assert answer["recommended"] is None
    assert answer["evidence"][-2].startswith(
        "no recommendation: the capacity at ttft_p90 1s is not known yet ("
    )
    (tmp_path / "day.gma").unlink()
    recorded(tmp_path, ServedDay(syncs=9, demand=lambda _: 0.3))
    text = said(recommend(tmp_path, *PROMISE))
    assert "ttft: 7 requests are too few for a p90 (values.min_requests is 10)" in text


def test_pages_without_histograms_say_nothing_of_latencies(tmp_path: Path) -> None:
    recorded(tmp_path, ServedDay(histograms=False, syncs=240))
    text = said(recommend(tmp_path, *PROMISE))
    assert "no recommendation: no recorded page of its servers counts ttft in a histogram" in text
    assert "Traceback" not in text
    plain = item(recommend(tmp_path, "-o", "json"))
    assert plain["promise"] == {"latencies": []}
    assert plain["replay"]["metric"] == "inference_requests_running"


def test_an_exporters_recording_says_nothing_of_promises(tmp_path: Path) -> None:
    write(tmp_path / "day.gma", Day(waves, syncs=60, hpa=manifest("30")))
    (tmp_path / "hpa.yaml").write_text(yaml.safe_dump(manifest("30")))
    answer = item(recommend(tmp_path, "--sync-period", "240s", "-o", "json"))
    assert "promise" not in answer


def test_an_hpa_that_cannot_be_replayed_still_learns_what_its_servers_keep(tmp_path: Path) -> None:
    recorded(tmp_path, ServedDay(hpa=hpa("4", name="inference_requests_waiting"), syncs=240))
    text = said(recommend(tmp_path))
    assert "the recorded replicas kept ttft_p90" in text
    assert "has no metric of type Pods that work is divided into" in text
    assert said(recommend(tmp_path, *PROMISE)).count("inference_slo_ratio 0.5") == 1


def test_metrics_of_other_types_stay(tmp_path: Path) -> None:
    manifest = hpa()
    queue = {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "4"}}
    manifest["spec"]["metrics"].append({"type": "External", "external": queue})
    recorded(tmp_path, ServedDay(hpa=manifest, syncs=240))
    answer = item(recommend(tmp_path, *PROMISE, "-o", "json"))
    assert [row["type"] for row in answer["recommended"]["spec"]["metrics"]] == ["Pods", "External"]
    assert "External queue stays in the manifest, and is not replayed" in answer["evidence"]


@pytest.mark.parametrize(
    ("day", "arguments", "text"),
    [
        (ServedDay(syncs=9), ("--ttft", "soon"), "--ttft: 'soon' is not a duration"),
        (ServedDay(syncs=9), ("--itl", "50"), "--itl: '50' has no unit: write 50s or"),
        (ServedDay(syncs=9, hpa=slo(ttft_p90="soon")), (), "HPA ml/llm: promise ttft_p90: 'soon'"),
        (
            ServedDay(syncs=9, hpa=hpa("1", name=SLO_RATIO)),
            (),
            "ml/llm: inference_slo_ratio has no",
        ),
    ],
)
def test_a_wrong_promise_is_one_line(
    tmp_path: Path, day: ServedDay, arguments: tuple[str, ...], text: str
) -> None:
    recorded(tmp_path, day)
    done = recommend(tmp_path, *arguments)
    assert done.code == 2
    assert text in done.output.splitlines()[-1]
    assert "Traceback" not in done.output


def test_saved_pages_of_servers_say_the_same(tmp_path: Path) -> None:
    day = recorded(tmp_path, ServedDay(syncs=240))
    saved(tmp_path / "pages", day.events())
    whole = item(recommend(tmp_path, *PROMISE, "-o", "json"))["promise"]
    pages = item(recommend(tmp_path, *PROMISE, "-o", "json", source="pages"))["promise"]
    assert pages["missed"][0]["share"] == pytest.approx(whole["missed"][0]["share"], rel=0.05)
    assert pages["capacities"][0]["load"] == pytest.approx(whole["capacities"][0]["load"], rel=0.1)


@needs(PROMETHEUS, PROMTOOL)
def test_a_store_says_the_same(tmp_path: Path) -> None:
    day = recorded(tmp_path, ServedDay(syncs=480))
    whole = item(recommend(tmp_path, *PROMISE, "-o", "json"))["promise"]
    with StoredCluster().scrape(day.events()).prometheus(tmp_path / "prometheus") as url:
        stored = ("--from-prometheus", url, "--since", "3h", "--until", "2026-09-21T17:00")
        done = invoke(
            *("replay", "recommend", "ml/llm", "-f", str(tmp_path / "hpa.yaml"), *stored),
            *(*PROMISE, "-o", "json"),
        )
    answer = item(done)["promise"]
    assert answer["missed"][0]["share"] == pytest.approx(whole["missed"][0]["share"], rel=0.05)
    assert answer["capacities"][0]["load"] == pytest.approx(whole["capacities"][0]["load"], rel=0.1)


def test_a_recording_has_what_promises_need_though_nobody_asks() -> None:
    demand = SeriesDemand(built_in())
    bucket = "vllm:time_to_first_token_seconds_bucket"
    assert bucket not in demand.of("ml")
    demand.always(OF_PROMISES)
    assert bucket in demand.of("ml")
    assert bucket in demand.series
    demand.forget(START)
    assert bucket in demand.series
