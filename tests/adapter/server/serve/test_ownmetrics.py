"""User-defined metrics: how they are computed, and which are refused."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
import yaml

from adapter.config.process.config import ConfigError, load
from adapter.config.settings import Settings
from adapter.config.settings.metrics import MetricSettings
from adapter.pipeline.catalog import Catalog
from adapter.pipeline.catalog.metric import Scope
from adapter.pipeline.exposition.samples import Sample, ScrapeResult
from adapter.pipeline.sources.prometheus.labelsets import SeriesMemo
from adapter.pipeline.sources.prometheus.querygroup import QueryGroup
from adapter.pipeline.sources.prometheus.reader import decode
from adapter.server.serve.ownmetrics import problems, queries, rows
from tests.adapter.world import CATALOG, World, make_pod, reading, row

UTIL = "DCGM_FI_DEV_GPU_UTIL"
EVERY_5_S = range(100, 161, 5)


def extended(*wanted: dict[str, object]) -> Catalog:
    parsed = [MetricSettings.model_validate(row) for row in wanted]
    return CATALOG.extended(*rows(parsed, CATALOG))


def world(*wanted: dict[str, object], gpus: int = 1) -> World:
    return World(make_pod("p", gpus={"nvidia.com/gpu": gpus}), catalog=extended(*wanted))


def test_an_exporter_series_becomes_a_metric_with_its_unit() -> None:
    at = world({"name": "fan", "series": "my_fan", "scale": 100, "unit": "percent"})
    at.scrape(row("my_fan", 0.4, "p"), 100.0)
    assert at.value("p", "fan", 101.0) == 40.0


def test_the_name_is_served_in_lower_case_too() -> None:
    at = world({"name": "My_Fan", "series": "fan"})
    at.scrape(row("fan", 4, "p"), 100.0)
    assert (at.value("p", "My_Fan", 101.0), at.value("p", "my_fan", 101.0)) == (4.0, 4.0)


def test_a_value_outside_its_unit_is_left_out_and_counted() -> None:
    at = world({"name": "fan", "series": "my_fan", "unit": "percent"})
    at.scrape(row("my_fan", 101, "p"), 100.0)
    assert at.value("p", "fan", 101.0) == "no_value"
    assert at.count("out_of_range") == 1


@pytest.mark.parametrize(
    ("how", "expected"), [("mean", 40.0), ("max", 60.0), ("min", 20.0), ("sum", 80.0)]
)
def test_devices_are_combined_as_configured(how: str, expected: float) -> None:
    at = world({"name": "fan", "series": "my_fan", "combine": how}, gpus=2)
    page = row("my_fan", 20, "p", uuid="GPU-0") + row("my_fan", 60, "p", uuid="GPU-1")
    at.scrape(page, 100.0)
    assert at.value("p", "fan", 101.0) == expected


def test_pods_may_be_combined_differently_from_devices() -> None:
    metric = extended({"name": "fan", "series": "f", "combine": "max", "over_pods": "sum"}).metrics[
        "fan"
    ]
    assert (metric.over_devices.value, metric.over_pods.value) == ("max", "sum")


def test_labels_select_the_series() -> None:
    at = world({"name": "hot", "series": "my_temp", "labels": {"place": "hot"}})
    at.scrape(
        row("my_temp", 20, "p", more='place="cold"') + row("my_temp", 90, "p", more='place="hot"'),
        100.0,
    )
    assert at.value("p", "hot", 101.0) == 90.0


def test_a_metric_of_a_catalogue_series_keeps_its_checks() -> None:
    at = world({"name": "busy", "series": "DCGM_FI_DEV_GPU_UTIL_RATIO", "scale": 100})
    at.scrape(row("DCGM_FI_DEV_GPU_UTIL_RATIO", 0.4, "p"), 100.0)
    assert at.value("p", "busy", 101.0) == 40.0
    assert at.value("p", UTIL, 101.0) == 40.0


def test_a_label_condition_on_a_catalogue_series_does_not_change_the_catalogue() -> None:
    at = world({"name": "first", "series": UTIL, "labels": {"gpu": "0"}})
    at.scrape(row(UTIL, 40, "p"), 100.0)
    assert (at.value("p", "first", 101.0), at.value("p", UTIL, 101.0)) == (40.0, 40.0)


def test_a_metric_may_have_a_longer_window_than_the_others() -> None:
    at = world({"name": "calm", "series": UTIL, "kind": "mean", "window": "10m"})
    for time in range(100, 701, 5):
        at.scrape(row(UTIL, 100 if time < 400 else 0, "p"), float(time))
    answer = reading(at.read("p", "calm", 701.0))
    assert answer.value == pytest.approx(100 * 59 / 120)  # (100, 700] has 59 at work of 120
    assert answer.window == 600
    assert at.value("p", UTIL, 701.0) == 0.0


def test_a_percentile_is_over_the_window() -> None:
    at = world({"name": "p50", "series": "lag", "kind": "mean", "window": "1m", "percentile": 50})
    for index, time in enumerate(EVERY_5_S):
        at.scrape(row("lag", index, "p"), float(time))
    assert at.value("p", "p50", 161.0) == 6.5  # 1 to 12: the window is open at its far end


def test_a_rate_is_computed_from_a_counter() -> None:
    at = world({"name": "tokens", "series": "tokens_total", "kind": "rate"})
    for time in EVERY_5_S:
        at.scrape(row("tokens_total", 7 * time, "p"), float(time))
    answer = reading(at.read("p", "tokens", 161.0))
    assert (answer.value, answer.window) == (7.0, 30)


def test_a_query_describes_the_pod_in_its_answer_with_or_without_a_gpu() -> None:
    catalog = extended({"name": "lag", "query": "sum by (namespace, pod) (lag)", "scale": 0.5})
    at = World(make_pod("p", gpus={}), catalog=catalog)
    labels = {"namespace": "ml", "pod": "p"}
    at.store.ingest(ScrapeResult("prometheus", None, [Sample("lag", labels, 8.0, 100.0)], 100.0))
    assert at.value("p", "lag", 101.0) == 4.0
    assert catalog.metrics["lag"].scope is Scope.SERVER


def test_each_query_is_a_group_and_all_series_are_one_group() -> None:
    wanted: list[dict[str, object]] = [
        {"name": "a", "series": "a_total"},
        {"name": "b", "series": "b_total"},
        {"name": "lag", "query": "lag"},
    ]
    groups = extended(*wanted).groups
    assert groups["metrics"] == ("a_total", "b_total")
    assert groups["metrics.lag"] == ("lag",)
    assert queries([MetricSettings.model_validate(row) for row in wanted]) == {"metrics.lag": "lag"}


def test_the_answer_to_a_query_belongs_to_its_metric_regardless_of_its_name() -> None:
    metric = {"__name__": "queue", "namespace": "ml", "pod": "p"}
    result = [{"metric": metric, "value": [100, "8"]}]
    body = msgspec.json.encode(
        {"status": "success", "data": {"resultType": "vector", "result": result}}
    )
    group = QueryGroup("metrics.lag", ("lag",), "queue")
    (samples,) = decode(body, SeriesMemo(), group).samples.values()
    assert samples == [Sample("lag", {"namespace": "ml", "pod": "p"}, 8.0, 100.0)]


def test_a_catalogue_without_user_metrics_is_unchanged() -> None:
    assert extended() is CATALOG


REFUSED = {
    "neither": ({"name": "a"}, "metrics.0: needs either series or query"),
    "both": ({"name": "a", "series": "b", "query": "c"}, "metrics.0: needs either series or"),
    "no path segment": ({"name": "a/b", "series": "b"}, "metrics.0.name: must be letters"),
    "the catalogue's name": (
        {"name": "GPU_utilization", "series": "b"},
        "metrics.0.name: is a name of the catalogue: choose another (got 'GPU_utilization')",
    ),
    "series with labels": (
        {"name": "a", "series": 'b{c="d"}'},
        "metrics.0.series: must be the name of a series only; write labels into labels",
    ),
    "labels of a query": (
        {"name": "a", "query": "b", "labels": {"c": "d"}},
        "metrics.0: labels go with series: write them into query",
    ),
    "percentile without window": (
        {"name": "a", "series": "b", "kind": "mean", "percentile": 95},
        "metrics.0: percentile needs window and kind: mean",
    ),
    "percentile of nothing": (
        {"name": "a", "series": "b", "kind": "mean", "window": "1m", "percentile": 101},
        "metrics.0.percentile: Input should be less than or equal to 100",
    ),
    "window of a last value": (
        {"name": "a", "series": "b", "window": "1m"},
        "metrics.0: window goes with kind: mean or rate",
    ),
    "window of a day": (
        {"name": "a", "series": "b", "kind": "mean", "window": "24h"},
        "metrics.0.window: Input should be less than or equal to 3600",
    ),
    "bounds of a rate": (
        {"name": "a", "series": "b", "kind": "rate", "high": 5},
        "metrics.0: low and high bound samples, not a rate",
    ),
    "bounds crossed": (
        {"name": "a", "series": "b", "low": 5, "high": 5},
        "metrics.0: low must be below high",
    ),
    "unknown unit": ({"name": "a", "series": "b", "unit": "miles"}, "metrics.0.unit: Input should"),
    "unknown key": ({"name": "a", "serie": "b"}, "metrics.0.serie: Extra inputs are not"),
    "template": (
        {"name": "a", "query": 'lag{pod=~"{pods}"}'},
        "metrics.0.query: contains the template '{pods}': one query runs for all pods",
    ),
    "adapter template": (
        {"name": "a", "query": "sum(<<.Series>>) by (<<.GroupBy>>)"},
        "metrics.0.query: contains the template '<<'",
    ),
    "bracket": ({"name": "a", "query": "sum(lag"}, "metrics.0.query: has a ( that is not closed"),
    "closing": (
        {"name": "a", "query": "lag)"},
        "metrics.0.query: has a ) without its opening bracket",
    ),
    "quote": ({"name": "a", "query": 'lag{a="b}'}, "metrics.0.query: has a quote that is not"),
    "number": ({"name": "a", "query": "5"}, "metrics.0.query: is a number"),
    "empty": ({"name": "a", "query": " "}, "metrics.0.query: is empty"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_error_about_an_entry_names_the_key_and_the_fix(name: str, tmp_path: Path) -> None:
    wanted, expected = REFUSED[name]
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump({"metrics": [wanted]}), encoding="utf-8")
    with pytest.raises(ConfigError) as refusal:
        load(file, environ={})
    assert expected in str(refusal.value)


def test_all_invalid_metrics_are_reported_together(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    wanted = [{"name": "gpu_count", "series": "a"}, {"name": "b"}, {"name": "c", "query": "sum("}]
    file.write_text(yaml.safe_dump({"metrics": wanted}), encoding="utf-8")
    with pytest.raises(ConfigError) as refusal:
        load(file, environ={})
    keys = [problem.split(": ")[1] for problem in refusal.value.problems]
    assert keys == ["metrics.0.name", "metrics.1", "metrics.2.query"]


def complaints(*wanted: dict[str, object], prometheus: bool = False) -> list[str]:
    settings = Settings.model_validate({"metrics": wanted})
    return list(problems(settings.metrics, CATALOG, prometheus=prometheus))


def test_conflicts_with_other_metrics_and_the_catalogue_are_reported_together() -> None:
    assert complaints(
        {"name": "mine", "series": "a"},
        {"name": "MINE", "series": "a"},
        {"name": "lag", "query": "lag"},
        {"name": "busy", "series": UTIL, "high": 50},
        {"name": "busier", "series": UTIL, "scope": "server"},
        {"name": "share", "series": UTIL, "unit": "ratio"},
    ) == [
        "metrics.1.name: metrics.0 already has the name mine: choose another",
        "metrics.2.query: needs source.kind prometheus; for scraped pages, set series",
        f"metrics.3: the catalogue bounds {UTIL} to 0-100: remove low and high",
        f"metrics.4.scope: {UTIL} is about a device: remove scope",
        (
            f"metrics.5.scale: {UTIL} has values up to 100, a ratio up to 1: "
            "set scale to 0.01, or another unit"
        ),
    ]


@pytest.mark.parametrize(
    ("series", "unit", "scale"),
    [
        (UTIL, "ratio", 0.01),
        (f"{UTIL}_RATIO", "percent", 100),
        ("xpum_engine_ratio", "percent", 100),
    ],
)
def test_a_known_series_is_accepted_in_a_unit_that_holds_all_of_it(
    series: str, unit: str, scale: float
) -> None:
    assert complaints({"name": "share", "series": series, "unit": unit, "scale": scale}) == []


def test_a_query_is_accepted_where_there_is_a_query_api() -> None:
    braces = 'max by (namespace, pod) (lag{zone=~"a{2}"})[1m:]'
    assert complaints({"name": "lag", "query": braces}, prometheus=True) == []
