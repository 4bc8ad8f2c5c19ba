"""A question for latencies makes the pages of the asked namespace larger, and no others."""

from __future__ import annotations

from adapter.pipeline.catalog import Catalog
from adapter.pipeline.catalog.seriesdemand import PATIENCE, SeriesDemand

CATALOG = Catalog()
METRIC = "inference_time_to_first_token_seconds_p90"
BUCKETS = "vllm:time_to_first_token_seconds_bucket"
NOW = 1_700_000_000.0


def reads(demand: SeriesDemand, namespace: str) -> bool:
    """Whether the histogram is read of the pods of a namespace."""
    return BUCKETS in demand.of(namespace)


def test_only_the_namespace_that_is_asked_for_is_read() -> None:
    demand = SeriesDemand(CATALOG)
    assert not reads(demand, "ml")
    demand.ask(METRIC, "ml", NOW)
    assert reads(demand, "ml")
    assert not reads(demand, "others")
    assert not reads(demand, ""), "an exporter of a node has no server"
    assert demand.since(METRIC, "ml") == NOW
    assert demand.since(METRIC, "others") is None
    assert BUCKETS in demand.series, "a store answers about all namespaces"


def test_what_one_namespace_no_longer_asks_for_is_read_for_the_other() -> None:
    demand = SeriesDemand(CATALOG)
    demand.ask(METRIC, "ml", NOW)
    demand.ask(METRIC, "others", NOW + PATIENCE)
    demand.forget(NOW + PATIENCE + 1)
    assert not reads(demand, "ml")
    assert reads(demand, "others")
    assert BUCKETS in demand.series
    demand.forget(NOW + 3 * PATIENCE)
    assert not reads(demand, "others")
    assert demand.series == set(CATALOG.series)
    assert demand.since(METRIC, "others") is None


def test_a_metric_at_rest_asks_for_nothing() -> None:
    demand = SeriesDemand(CATALOG)
    demand.ask("gpu_utilization", "ml", NOW)
    assert demand.of("ml") is demand.of("others")
