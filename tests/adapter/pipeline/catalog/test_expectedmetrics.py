"""The metrics that say what another one will not exceed."""

from __future__ import annotations

import pytest

from adapter.pipeline.catalog import Catalog
from adapter.pipeline.catalog.divisible import divisible
from adapter.pipeline.catalog.expectedmetrics import SUFFIX
from adapter.pipeline.catalog.metric import LoadDirection, Scope

CATALOG = Catalog()


@pytest.mark.parametrize("name", sorted(CATALOG.expected))
def test_it_is_about_a_measured_metric_that_work_is_divided_into(name: str) -> None:
    expected = CATALOG.metrics[name]
    measured = CATALOG.metrics[expected.expects]
    assert name == measured.name + SUFFIX
    assert measured.load is LoadDirection.RISES
    assert not measured.expects
    assert divisible(measured.name, CATALOG.metrics) is not None
    assert (expected.unit, expected.over_pods, expected.high) == (
        measured.unit,
        measured.over_pods,
        measured.high,
    )


def test_running_requests_have_one_and_a_queue_has_none() -> None:
    assert "inference_requests_running" + SUFFIX in CATALOG.metrics
    queues = [
        name
        for name, metric in CATALOG.metrics.items()
        if metric.scope is Scope.SERVER and "waiting" in name
    ]
    assert queues
    assert not {name + SUFFIX for name in queues} & CATALOG.metrics.keys()


def test_an_expected_metric_is_not_a_load_to_expect_more_of() -> None:
    assert all(divisible(name, CATALOG.metrics) is None for name in CATALOG.expected)


def test_a_catalogue_of_measured_metrics_has_all_others() -> None:
    measured = CATALOG.without_expected()
    assert CATALOG.metrics.keys() - measured.metrics.keys() == CATALOG.expected.keys()
    assert not measured.expected
    assert not measured.extended(list(measured.fields.values())[:1], ()).expected
