"""The simulated nodes."""

from __future__ import annotations

import json

import pytest
from prometheus_client.parser import text_string_to_metric_families

from load.fleet import Fleet, manifest, nodes, pages, pod_list, slots, status
from load.page import FIELDS, UTIL


def values(page: bytes, metric: str) -> dict[str, float]:
    """Pod -> value of one metric, by the reference parser."""
    return {
        sample.labels["pod"]: sample.value
        for family in text_string_to_metric_families(page.decode())
        for sample in family.samples
        if sample.name.removesuffix("_total") == metric
    }


def test_a_page_has_every_field_of_every_gpu_with_its_pod() -> None:
    page = pages(20)["node-00002"].render(0)
    for field in FIELDS:
        assert list(values(page, field.name)) == [f"svc-000-{index:05d}" for index in range(16, 20)]


def test_values_stay_inside_their_range_and_change_with_the_tick() -> None:
    page = pages(8)["node-00000"]
    seen = [values(page.render(tick), UTIL) for tick in range(3)]
    assert seen[0] != seen[1] != seen[2]
    assert all(0 <= value <= 100 for row in seen for value in row.values())


def test_of_eight_devices_four_change_each_second_three_each_minute_and_one_is_idle() -> None:
    page = pages(8)["node-00000"]
    first, next_second, next_minute = (values(page.render(tick), UTIL) for tick in (0, 1, 60))
    pods = list(first)
    assert [pod for pod in pods if first[pod] != next_second[pod]] == pods[:4]
    assert [pod for pod in pods if first[pod] != next_minute[pod]] == pods[:7]
    for field in ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_PROF_SM_ACTIVE", UTIL):
        assert values(page.render(1), field)[pods[7]] == 0, "an idle device has no active engine"


def test_a_set_utilisation_applies_to_one_page_only() -> None:
    fleet = Fleet(pages(16))
    code, body = fleet.answer("/control/util/node-00001/85")
    assert code == 200
    assert json.loads(body)["at"] > 0
    assert set(values(fleet.answer("/node-00001/metrics")[1], UTIL).values()) == {85.0}
    assert set(values(fleet.answer("/node-00000/metrics")[1], UTIL).values()) != {85.0}


def test_only_pages_are_counted() -> None:
    fleet = Fleet(pages(8))
    fleet.answer("/node-00000/metrics")
    assert fleet.answer("/node-00009/metrics")[0] == 404
    assert json.loads(fleet.answer("/control/count")[1]) == {"pages": 1}


@pytest.mark.parametrize(("pods", "count"), [(1, 1), (8, 1), (9, 2), (100, 13), (10_000, 1_250)])
def test_eight_pods_share_a_node(pods: int, count: int) -> None:
    assert len(nodes(pods)) == count


def test_a_selector_matches_a_hundred_pods() -> None:
    labels = [manifest(slot)["metadata"]["labels"]["app"] for slot in slots(250)]
    assert [labels.count(f"svc-{number:03d}") for number in range(3)] == [100, 100, 50]


def test_pods_of_a_smaller_fleet_are_the_first_of_a_larger() -> None:
    assert list(slots(1000))[:100] == list(slots(100))


def test_the_pods_file_lists_running_pods_with_one_gpu() -> None:
    [pod] = pod_list(1)["items"]
    assert pod["status"]["phase"] == "Running"
    assert pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "1"


def test_pod_addresses_differ() -> None:
    addresses = {status(slot)["podIP"] for slot in slots(10_000)}
    assert len(addresses) == 10_000
