"""A limit of labels holds for the labels that are read: the others cost no value."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.pipeline.attribution.reading import Reading
from adapter.pipeline.devices.identity import NO_DEVICE
from adapter.pipeline.exposition.line import MAX_LABELS, MAX_TEXT
from adapter.pipeline.exposition.page import LabelMemo, parse
from adapter.pipeline.exposition.samples import ScrapeResult
from tests.adapter.world import CATALOG, World, make_pod, row
from tests.examples import bounded

NOW = 1_700_000_000.0
LONG = ",".join(str(number) for number in range(100_000, 100_400))
"""The processes of a device, as AMD's device-metrics-exporter 1.4 lists them."""
PAGES = {
    "nvidia": ('DCGM_FI_DEV_GPU_UTIL{UUID="GPU-1",gpu="0",pod="p",namespace="ml"@} 87', 87),
    "nvidia, old names": (
        'DCGM_FI_DEV_GPU_UTIL{UUID="GPU-1",pod_name="p",pod_namespace="ml"@} 87',
        87,
    ),
    "amd": (
        'gpu_gfx_activity{gpu_id="0",gpu_uuid="u1",pod="p",namespace="ml"@} 64',
        64,
    ),
    "intel": (
        'xpum_engine_ratio{dev_file="card0",uuid="x1",pod="p",namespace="ml"@} 0.21',
        21,
    ),
    "hami": (
        'Device_utilization_desc_of_container{deviceuuid="u",podname="p",podnamespace="ml"@} 40',
        40,
    ),
}
"""Vendor -> a line in which ``@`` is the place of further labels, and the pod's utilization."""


def world(page: str) -> World:
    """After three reads of the page: new, with known labels, and with a known layout."""
    made, memo = World(make_pod("p", node="n")), LabelMemo()
    for now in (NOW, NOW + 5, NOW + 10):
        read = parse(page.encode(), time=now, memo=memo, wanted=CATALOG.series)
        result = ScrapeResult("http://e", "n", read.samples, now, read.rejects, ("gpu", "dcgm"))
        made.store.ingest(result)
    return made


def told(made: World) -> Mapping[str, object]:
    """What the API has of the pod, and why samples were left out."""
    value = made.value("p", "gpu_utilization", NOW + 10)
    return {"value": value, "rejects": dict(made.store.rejects.totals)}


@pytest.mark.parametrize("vendor", PAGES)
@bounded(12)
@given(st.integers(1, 12_000))
def test_a_label_that_nobody_reads_changes_nothing(vendor: str, length: int) -> None:
    line, value = PAGES[vendor]
    plain = told(world(line.replace("@", "") + "\n"))
    more = f',kfd_process_id="{(LONG * 5)[:length]}"'
    assert told(world(line.replace("@", more) + "\n")) == plain
    assert plain["value"] == value


def test_many_labels_that_nobody_reads_change_nothing() -> None:
    more = ",".join(f'label_{number}="x"' for number in range(3 * MAX_LABELS))
    page = row("DCGM_FI_DEV_GPU_UTIL", 87, "p", more=more)
    assert told(world(page)) == {"value": 87, "rejects": {}}


@pytest.mark.parametrize("name", ["UUID", "pod", "namespace"])
def test_a_label_that_is_read_and_too_long_costs_the_sample(name: str) -> None:
    labels = {"UUID": "GPU-1", "gpu": "0", "pod": "p", "namespace": "ml", name: "x" * 1025}
    written = ",".join(f'{label}="{text}"' for label, text in labels.items())
    made = world(f"DCGM_FI_DEV_GPU_UTIL{{{written}}} 87\n")
    assert made.count("label_too_long") == 3
    assert made.count(NO_DEVICE) == 0
    assert not isinstance(made.read("p", "gpu_utilization", NOW + 10), Reading)


def test_a_label_between_too_many_costs_the_sample_if_it_is_read() -> None:
    more = [f'label_{number}="x"' for number in range(3 * MAX_LABELS)]
    more.insert(len(more) // 2, 'pod="p",namespace="ml"')
    made = world(f'DCGM_FI_DEV_GPU_UTIL{{{",".join(more)},UUID="u"}} 87\n')
    assert made.count("too_many_labels") == 3


def test_the_part_of_a_server_is_not_found_by_a_label_that_is_left_out() -> None:
    long = "x" * (MAX_TEXT + 1)
    page = f'vllm:num_requests_waiting{{engine="0",model_name="m",z="{long}"}} 3\n'
    made = World(make_pod("p", node="n"))
    made.scrape(page, NOW, pod=("ml", "p"), serves=True)
    assert made.value("p", "inference_requests_waiting", NOW) == 3
    made = World(make_pod("p", node="n"))
    page = f'vllm:num_requests_waiting{{engine="{long}",model_name="m"}} 3\n'
    made.scrape(page, NOW, pod=("ml", "p"), serves=True)
    assert made.count("label_too_long") == 1
    assert made.value("p", "inference_requests_waiting", NOW) != 3
