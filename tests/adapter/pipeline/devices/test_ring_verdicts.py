"""A ring gives the verdicts on devices that reading the samples gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.pipeline.attribution.values import CONFLICT
from adapter.pipeline.catalog import Catalog
from adapter.pipeline.catalog.layout import Layout, layout
from adapter.pipeline.devices.pagecheck import page_check
from adapter.pipeline.devices.pages import LastPages
from adapter.pipeline.devices.pageshape import PageNumbers, columns_of, field_set, page_numbers
from adapter.pipeline.devices.quickchecks import resting_bounds, working_bounds
from adapter.pipeline.devices.state import ExporterState
from tests.adapter.exporterstate import series_of
from tests.adapter.pipeline.devices.test_ring import EPOCH, NODE, ORIGIN, Both
from tests.adapter.world import make_pod, row
from tests.examples import bounded

FIELDS = (
    "DCGM_FI_DEV_GPU_UTIL",
    "DCGM_FI_DEV_MEM_COPY_UTIL",
    "DCGM_FI_DEV_POWER_USAGE",
    "DCGM_FI_DEV_FB_USED",
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
    "DCGM_FI_PROF_DRAM_ACTIVE",
    "DCGM_FI_PROF_PCIE_RX_BYTES",
    "gpu_gfx_activity",
    "gpu_umc_activity",
    "gpu_package_power",
)
NUMBERS = {
    "works": (
        (80, 12, 300, 9000, 0.7, 0.4, 5e9, 80, 30, 600),
        (3, 0, 90, 9000, 0.05, 0.02, 0, 3, 0, 150),
    ),
    "rests": ((0, 0, 60, 9000, 0, 0, 0, 0, 0, 140), (0, 0, 64, 500, 0.004, 0, 7, 0, 0, 0)),
    "odd": (
        (0, 0, 300, 9000, 0.6, 0.4, 0, 0, 60, 150),
        (97, 0, 61, 9000, 0, 0, 0, 0, 0, 650),
        (97, 40, 310, 9000, 0.8, 0, 0, 5, 0, 0),
        (2, 0, 70, 9000, 0.005, 0, 0, 0, 70, 120),
        (0, 0, 650, 9000, 0, 0, 0, 0, 0, 650),
    ),
    "invalid": (
        (200, 0, 60, 9000, 0, 0, 0, 200, 0, 60),
        (50, 0, "NaN", 9000, 0.5, 0.5, 0, 50, 0, "NaN"),
    ),
}
"""What a device does -> numbers of the fields that show it."""
EXPORTERS = (
    tuple(range(7)),
    (0, 1, 2, 3),  # without profiling counters
    (3, 4, 5),  # without GPU_UTIL and power
    (2, 3, 4, 5, 6),
    (0, 3),
    (0, 2),
    (7, 8, 9),  # AMD's
    (0, 2, 4, 7, 9),  # of two vendors
)
"""Which of the fields an exporter writes."""
MIG = 'GPU_I_PROFILE="1g.10gb",GPU_I_ID="7"'


class Page(NamedTuple):
    """The next page."""

    changes: dict[int, str]
    """Device -> what it does from now on."""
    drawn: int
    """Which of the numbers the devices show."""
    seconds: float
    looked: bool
    pod: str
    """A pod that is replaced; empty for none."""


PAGES = st.lists(
    st.builds(
        Page,
        st.dictionaries(st.integers(0, 2), st.sampled_from(tuple(NUMBERS)), max_size=1)
        | st.just({}),
        st.integers(0, 4),
        st.sampled_from((5.0, 5.0, 5.0, 5.0, 12.0, 0.0, -7.0, 100.0)),
        st.booleans(),
        st.sampled_from(("", "", "", "", "", "", "", "b")),
    ),
    min_size=4,
    max_size=24,
)


def page_of(
    devices: Sequence[str], drawn: int, fields: Sequence[int] = EXPORTERS[0], more: str = ""
) -> bytes:
    lines = [
        row(
            FIELDS[at],
            NUMBERS[does][drawn % len(NUMBERS[does])][at],
            pod,
            uuid=f"GPU-{number}",
            more=more,
        )
        for at in fields
        for number, (pod, does) in enumerate(zip("abc", devices, strict=False))
    ]
    return "".join(f"{line}\n" for line in lines).encode()


def seen(state: ExporterState | None) -> Any:
    assert state is not None
    its = [(key, series_of(series)) for key, series in state.all_series.items()]
    return its, dict(state.reported), state.idle._models, state.received


def kept(both: Both) -> tuple[ExporterState | None, ExporterState | None]:
    fast, full = (world.store._exporters.get(ORIGIN) for world in (both.fast, both.full))
    return fast, full


@settings(bounded(150), derandomize=True)
@given(
    pages=PAGES,
    fields=st.sampled_from(EXPORTERS),
    more=st.sampled_from(("", MIG)),
    number=st.integers(1, 3),
)
def test_states_are_those_that_reading_the_samples_gives(
    pages: list[Page], fields: Sequence[int], more: str, number: int
) -> None:
    """Also the states that a reader kept, and reads after later pages."""
    both = Both(*(make_pod(name, node=NODE) for name in "abc"))
    devices = ["works", "rests", "works"]
    earlier = []
    now = EPOCH
    for page in pages:
        now += page.seconds
        for device, does in page.changes.items():
            devices[device] = does  # of which the page has some
        if page.pod:
            for world in (both.fast, both.full):
                world.put(make_pod(page.pod, node=NODE, uid=str(now)))
        both.take(page_of(devices[:number], page.drawn, fields, more), now)
        earlier.append(kept(both))
        if page.looked:
            fast, full = both.states()
            assert fast == full
    fast, full = both.states()
    assert fast == full
    for before, expected in earlier:
        assert seen(before) == seen(expected)


@pytest.mark.parametrize("more", ["", MIG])
def test_counters_slightly_above_0_end_the_rest_of_a_device_without_gpu_util(more: str) -> None:
    """DCGM's own measurement causes such numbers."""
    both = Both(*(make_pod(name, node=NODE) for name in "abc"))
    for scrape in range(20):
        text = page_of(("rests",) * 3, 0, (3, 4, 5), more)
        text = text if scrape < 14 else text.replace(b"} 0\n", b"} 0.005\n")
        both.take(text, EPOCH + 5 * scrape)
    assert both.states()[0] == both.states()[1]


def test_only_numbers_of_devices_at_work_and_at_rest_are_taken_in() -> None:
    """Also of many devices, and of those whose numbers are judged."""
    both = Both(*(make_pod(name, node=NODE) for name in "abc"))
    for scrape in range(30):
        does = "odd" if scrape % 7 == 3 else "works"
        both.take(page_of((does, "rests", "works"), scrape), EPOCH + 5 * scrape)
    assert both.numbered == 29
    assert both.states()[0] == both.states()[1]
    state, _ = kept(both)
    assert state is not None
    assert isinstance(state.pages, LastPages)
    assert state.pages.judgement.pending == frozenset(), "no device is judged by each page"


def test_few_shapes_checks_and_bounds_are_kept() -> None:
    known = tuple(Catalog().spellings.values())
    fields, columns = layout(known[:2]), columns_of((0,), known[:1])
    for cached, arguments in (
        (columns_of, lambda n: ((n,), known[:1])),
        (page_numbers, lambda n: ((None,) * n,)),
        (field_set, lambda n: ((str(n),),)),
        (page_check, lambda n: (PageNumbers(known[:1]), (columns,), (False,))),
        (working_bounds, lambda n: (Layout(fields.columns),)),
        (resting_bounds, lambda n: (Layout(fields.columns),)),
    ):
        most = cached.cache_parameters()["maxsize"]
        first = arguments(0)
        cached(*first)
        for number in range(1, most + 1):
            cached(*arguments(number))
        assert cached.cache_info().currsize == most
        misses = cached.cache_info().misses
        cached(*first)
        assert cached.cache_info().misses == misses + 1


def usual(scrapes: int = 12) -> Both:
    both = Both(*(make_pod(name, node=NODE) for name in "abc"))
    for scrape in range(scrapes):
        both.take(page_of(("works",) * 3, scrape), EPOCH + 5 * scrape)
    return both


def test_the_samples_of_a_page_with_other_labels_are_read() -> None:
    both = usual()
    before = both.numbered
    both.take(page_of(("works",) * 3, 0, EXPORTERS[1]), EPOCH + 60)
    assert both.numbered == before
    assert both.states()[0] == both.states()[1]


def test_a_pod_that_came_to_the_node_is_seen_by_the_next_page() -> None:
    """It may share the devices: later pages are evidence of sharing."""
    both = usual()
    for world in (both.fast, both.full):
        world.put(make_pod("d", node=NODE))
    both.take(page_of(("works",) * 3, 0), EPOCH + 300)
    assert both.states()[0] == both.states()[1]


def test_a_device_that_another_exporter_reports_too_is_compared_by_each_page() -> None:
    both = usual()
    for world in (both.fast, both.full):
        text = page_of(("rests",) * 3, 0).decode()
        world.scrape(text, EPOCH + 60, origin="http://other", node=NODE)
    for scrape in range(3):
        both.take(page_of(("works",) * 3, 0), EPOCH + 61 + scrape)
        assert both.fast.store.rejects.totals == both.full.store.rejects.totals
    assert both.fast.store.rejects.totals[CONFLICT] > 3
