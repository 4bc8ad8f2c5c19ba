"""The source ``prometheus`` with Thanos: replicas, lost stores, several clusters and tenants."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.e2e.process import wait_until
from tests.e2e.tenantproxy import TenantProxy
from tests.e2e.thanosstage import AGE_LIMIT, Served, Thanos, ThanosStage
from tests.needs import THANOS, needed_by_fixture

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
@needed_by_fixture(THANOS)
def thanos(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThanosStage]:
    with ThanosStage(tmp_path_factory.mktemp("thanos")) as stage:
        yield stage


def seen(served: Served, seconds: float) -> set[str | None]:
    """Return every answer about the pod in a period."""
    until = time.monotonic() + seconds
    answers = set()
    while time.monotonic() < until:
        answers.add(served.value())
        time.sleep(0.1)
    return answers


def stop(*stores: Thanos) -> None:
    for store in stores:
        store.process.stop()


def test_values_through_a_querier_equal_those_of_direct_scraping(thanos: ThanosStage) -> None:
    with (
        thanos.direct("a") as direct,
        thanos.through(thanos.querier, matchers='cluster="a"') as ours,
    ):
        wait_until(lambda: direct.value() == "64", "a direct value")
        wait_until(lambda: ours.values() == direct.values(), "equal values of every metric")
        assert len(direct.values()) > 10
        assert ours.metric("gma_query_warnings_total") == 0


def test_replicas_that_are_not_deduplicated_give_the_same_values(thanos: ThanosStage) -> None:
    everything = {"matchers": 'cluster="a"', "params": {"dedup": "false"}}
    with thanos.direct("a") as direct, thanos.through(thanos.querier, **everything) as ours:
        wait_until(lambda: ours.values() == direct.values() != {}, "equal values of every metric")


def test_a_lost_replica_costs_no_value_and_is_seen(thanos: ThanosStage) -> None:
    store = thanos.sidecars["a", "0"]
    with thanos.through(thanos.querier, matchers='cluster="a"') as ours:
        wait_until(lambda: ours.value() == "64", "a value")
        stop(store)
        try:
            assert seen(ours, 2 * AGE_LIMIT) == {"64"}
            assert ours.metric("gma_query_warnings_total") > 0
            assert ours.metric("gma_query_groups_partial") > 0
            assert "query warnings" in ours.log()
        finally:
            store.start()
        wait_until(lambda: ours.metric("gma_query_groups_partial") == 0, "whole answers")
        assert ours.value() == "64"


def test_values_of_a_lost_cluster_end_by_age_and_come_back(thanos: ThanosStage) -> None:
    stores = [thanos.sidecars["a", replica] for replica in "01"]
    with thanos.through(thanos.querier, matchers='cluster="a"') as ours:
        wait_until(lambda: ours.value() == "64", "a value")
        stop(*stores)
        answers: set[str | None] = set()

        def value() -> str | None:
            answers.add(ours.value())
            return ours.value()

        try:
            wait_until(lambda: value() is None, "no value")
            assert seen(ours, 2.0) == {None}
            assert ours.metric("gma_query_warnings_total") > 0
        finally:
            for store in stores:
                store.start()
        wait_until(lambda: value() == "64", "a value")
        assert answers == {"64", None}


def test_partial_answers_can_be_refused(thanos: ThanosStage) -> None:
    store = thanos.sidecars["a", "0"]
    whole = {"matchers": 'cluster="a"', "params": {"partial_response": "false"}}
    with thanos.through(thanos.querier, **whole) as ours:
        wait_until(lambda: ours.value() == "64", "a value")
        stop(store)
        try:
            wait_until(lambda: ours.metric("gma_query_failures_total") > 0, "failed queries")
            wait_until(lambda: ours.value() is None, "no value past the age limit")
        finally:
            store.start()
        wait_until(lambda: ours.value() == "64", "a value")


def test_pods_of_one_name_in_two_clusters_are_never_mixed(thanos: ThanosStage) -> None:
    with (
        thanos.through(thanos.querier) as both,
        thanos.through(thanos.querier, matchers='cluster="a"') as a,
        thanos.through(thanos.querier, matchers='cluster="b"') as b,
    ):
        wait_until(lambda: a.value() == "64", "a's value")
        wait_until(lambda: b.value() == "37", "b's value")
        assert (seen(a, 3.0), seen(b, 3.0)) == ({"64"}, {"37"})
        assert seen(both, 3.0) == {None}
        assert both.metric('gma_absent_total{reason="several_clusters"}') > 0


def test_a_tenant_gets_no_value_of_another_tenant(thanos: ThanosStage) -> None:
    with (
        thanos.through(thanos.tenants, tenant="a") as a,
        thanos.through(thanos.tenants, tenant="b") as b,
        thanos.through(thanos.tenants, tenant="other") as other,
        thanos.through(thanos.tenants) as none,
    ):
        wait_until(lambda: a.value() == "64", "a's value")
        wait_until(lambda: b.value() == "37", "b's value")
        assert (seen(a, 3.0), seen(b, 3.0)) == ({"64"}, {"37"})
        assert (seen(other, 3.0), seen(none, 3.0)) == ({None}, {None})


@pytest.mark.parametrize("named", ["header", "path"])
def test_a_tenant_of_separate_engines_is_named_by_header_or_path(
    thanos: ThanosStage, named: str
) -> None:
    """The engines are real, the proxy in front of them is not Mimir's or vmselect's."""
    urls = {
        cluster: store.url for (cluster, replica), store in thanos.stores.items() if replica == "0"
    }
    proxy = TenantProxy(urls)

    def reads(tenant: str) -> Served:
        if named == "path":
            return thanos.through(f"{proxy.url}/select/{tenant}/prometheus")
        return thanos.through(proxy.url, tenant=tenant)

    try:
        with reads("a") as a, reads("b") as b, reads("other") as other:
            wait_until(lambda: a.value() == "64", "a's value")
            wait_until(lambda: b.value() == "37", "b's value")
            assert (seen(a, 2.0), seen(b, 2.0), seen(other, 2.0)) == ({"64"}, {"37"}, {None})
        with thanos.through(proxy.url) as none:
            wait_until(lambda: "no org id" in none.log(), "the proxy's refusal in the log")
            assert none.value() is None
    finally:
        proxy.stop()
