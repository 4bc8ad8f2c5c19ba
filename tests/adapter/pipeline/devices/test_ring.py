"""A page of which only the numbers changed gives the state that reading its samples gives."""

from __future__ import annotations

import re
import sys
from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.pipeline.cluster.pod import PodRef
from adapter.pipeline.devices.options import MAX_SAMPLES
from adapter.pipeline.devices.pages import LastPages
from adapter.pipeline.devices.rows import NumberRows
from adapter.pipeline.devices.state import Contents
from adapter.pipeline.exposition.page import LabelMemo, parse
from adapter.pipeline.exposition.pagelayout import LayoutSamples
from adapter.pipeline.exposition.samples import ScrapeResult
from tests.adapter.exporterstate import state_of
from tests.adapter.promise import pods_named
from tests.adapter.world import CATALOG, World, every_page, make_pod, row
from tests.examples import bounded

ORIGIN, NODE, EPOCH = "http://exporter", "n", 1_700_000_000.0
FIELDS = (
    "DCGM_FI_DEV_GPU_UTIL",
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
    "DCGM_FI_DEV_FB_USED",
    "DCGM_FI_DEV_POWER_USAGE",
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
)
MIG = 'GPU_I_PROFILE="1g.10gb",GPU_I_ID="7"'
DEVICES = (("p", "GPU-0", ""), ("q", "GPU-1", MIG), ("r", "GPU-2", ""), ("", "GPU-3", ""))
LINES = tuple(
    row(field, 1, pod, uuid=uuid, more=more).rpartition(" ")[0]
    for field in FIELDS
    for pod, uuid, more in DEVICES
)
MORE = (
    *(row(FIELDS[0], 1, pod, uuid="GPU-0").rpartition(" ")[0] for pod in ("q", "elsewhere")),
    row("DCGM_FI_DEV_GPU_UTIL_RATIO", 1, "p", uuid="GPU-0").rpartition(" ")[0],
    row(FIELDS[0], 1, "r", uuid="GPU-2", more='vgpu="1"').rpartition(" ")[0],
    row(FIELDS[0], 1, "", uuid="GPU-2").rpartition(" ")[0],
    row(FIELDS[0], 1, "p", uuid="GPU-0", more='GPU_I_ID="9"').rpartition(" ")[0],
    'not_in_the_catalogue{a="} 5"}',
    "without_labels",
)
"""Lines that may join: another pod, a ratio, a replica, the device itself, another kind."""
NUMBERS = (
    *("0", "1", "1.000000", "37", "99.5", "0.25", "5e4"),
    *("NaN", "+Inf", "-4", "250", "9223372036854775794", "1_0", "x", "5 1700000000000"),
)


class Change(NamedTuple):
    """What is different about the next page."""

    numbers: Sequence[str]
    lines: frozenset[int]
    """Lines that are added or taken away; beyond LINES, those of MORE."""
    pod: tuple[str, str] | None
    """What happens to a pod."""
    seconds: float
    looked: bool
    """Somebody reads the device series."""


def _mostly(usual: st.SearchStrategy[Any], other: st.SearchStrategy[Any]) -> Any:
    """Usually the one, so that most pages have the text of the page before."""
    return st.integers(0, 9).flatmap(lambda chance: other if chance == 9 else usual)


CHANGED: Final[Mapping[str, Mapping[str, Any]]] = {
    "uid": {"uid": "another"},
    "no_gpu": {"gpus": {}},
    "label": {"labels": {"GPU_I_ID": "9", "UUID": "GPU-0"}},
    "unready": {"ready": False},
    "pending": {"phase": "Pending"},
    "finished": {"phase": "Succeeded"},
    "moved": {"node": "elsewhere"},
    "deleting": {"deleting": True},
}
"""What may become of a pod -> the fields that differ then."""

_SOUND, _INVALID, _ODD = NUMBERS[:7], NUMBERS[7:12], NUMBERS[12:]
CHANGES = st.builds(
    Change,
    _mostly(
        st.lists(st.sampled_from(_SOUND), min_size=1, max_size=9)
        | st.lists(st.sampled_from((*_SOUND, *_INVALID)), min_size=1, max_size=9),
        st.lists(st.sampled_from((*_SOUND, *_ODD)), min_size=1, max_size=9),
    ),
    _mostly(
        st.just(frozenset()),
        st.frozensets(st.integers(0, len(LINES) + len(MORE) - 1), max_size=2),
    ),
    _mostly(
        st.none(),
        st.tuples(st.sampled_from("pqr"), st.sampled_from(("gone", *CHANGED))),
    ),
    _mostly(st.just(5.0), st.sampled_from((0.0, -20.0, 70.0))),
    st.booleans(),
)


def shape_of(world: World) -> Contents | None:
    """What the exporter's pages are about, if its store needs only the numbers of the next one."""
    state = world.store._exporters.get(ORIGIN)
    return None if state is None or state.pages is None else state.outline


class Both:
    """Two stores that take in the same pages: one knows the layouts of pages, one reads each."""

    def __init__(self, *pods: Any) -> None:
        self.fast, self.full = World(*pods), World(*pods)
        self._memo = LabelMemo()
        self.numbered = 0
        """Pages of which the first store took in only the numbers."""

    def take(self, page: bytes, time: float) -> None:
        before = shape_of(self.fast)
        for world, memo in ((self.fast, self._memo), (self.full, LabelMemo())):
            read = parse(page, time=time, memo=memo, wanted=CATALOG.series)
            result = ScrapeResult(ORIGIN, NODE, read.samples, time + 0.01, read.rejects)
            world.store.ingest(result)
        self.numbered += before is not None and shape_of(self.fast) is before

    def states(self) -> list[Any]:
        return [state_of(world, ORIGIN) for world in (self.fast, self.full)]


def page_of(lines: Sequence[str], numbers: Sequence[str]) -> bytes:
    written = [f"{text} {numbers[at % len(numbers)]}\n" for at, text in enumerate(lines)]
    return ("# HELP x y\n" + "".join(written)).encode()


def changed(both: Both, pod: tuple[str, str]) -> None:
    name, what = pod
    for world in (both.fast, both.full):
        if what == "gone":
            if PodRef("ml", name) in world.pods:
                world.remove(name)
        else:
            world.put(make_pod(name, **{"node": NODE, **CHANGED[what]}))


@settings(bounded(150), derandomize=True)
@given(changes=st.lists(CHANGES, min_size=4, max_size=16))
def test_a_ring_gives_the_state_that_reading_the_samples_gives(changes: list[Change]) -> None:
    both = Both(*(make_pod(name, node=NODE) for name in "pqr"))
    every = (*LINES, *MORE)
    shown = set(range(len(LINES)))
    now = EPOCH
    for change in changes:
        now += change.seconds
        shown ^= change.lines
        if change.pod is not None:
            changed(both, change.pod)
        both.take(page_of([every[at] for at in sorted(shown)], change.numbers), now)
        if change.looked:
            fast, full = both.states()
            assert fast == full
    fast, full = both.states()
    assert fast == full


_NUMBER = re.compile(rb"(?m)(\} )([0-9.]+)$")


def _scaled(page: bytes, factor: float) -> bytes:
    def scaled(found: re.Match[bytes]) -> bytes:
        return b"%s%g" % (found[1], float(found[2]) * factor)

    return _NUMBER.sub(scaled, page)


@pytest.mark.parametrize("path", every_page(), ids=lambda path: path.stem)
def test_pages_of_exporters_with_other_numbers_give_the_same_state(path: Path) -> None:
    page = path.read_bytes()
    both = Both(*pods_named(parse(page, time=EPOCH, wanted=CATALOG.series).samples))
    for scrape in range(6):
        factor = (1.0, 1.0, 0.5, 0.0, 0.75, 3.0)[scrape]
        both.take(_scaled(page, factor), EPOCH + 5 * scrape)
        fast, full = both.states()
        assert fast == full


def test_only_the_numbers_of_a_usual_page_are_taken_in() -> None:
    """From the second page on: most exporters never change their text."""
    both = Both(*(make_pod(name, node=NODE) for name in "pqr"))
    for scrape in range(8):
        both.take(page_of(LINES, [str(scrape), "0.5", "7"]), EPOCH + 5 * scrape)
    assert both.numbered == 7
    assert both.states()[0] == both.states()[1]


def test_samples_of_a_known_layout_are_made_when_they_are_asked_for() -> None:
    memo = LabelMemo()
    for _ in range(3):
        read = parse(page_of(LINES, ["1.000000", "3"]), time=EPOCH, memo=memo)
    plain = parse(page_of(LINES, ["1.000000", "3"]), time=EPOCH)
    assert isinstance(read.samples, LayoutSamples)
    assert isinstance(plain.samples, list)
    assert read.samples[:3] == plain.samples[:3]
    assert read.samples == plain.samples
    assert type(read.samples[0].value) is type(plain.samples[0].value)


def test_only_the_numbers_are_taken_in_beside_device_series_of_earlier_pages() -> None:
    """A device that is no longer on the page keeps its samples until the age limit."""
    both = Both(*(make_pod(name, node=NODE) for name in "pqr"))
    fewer = [line for line in LINES if "GPU-2" not in line]
    for scrape in range(4):
        both.take(page_of(LINES, ["37", "0.5"]), EPOCH + 5 * scrape)
    for scrape in range(4, 12):
        both.take(page_of(fewer, [str(scrape), "0.5"]), EPOCH + 5 * scrape)
        assert both.states()[0] == both.states()[1]
    assert both.numbered == 3 + 6
    assert "GPU-2" in both.fast.store._exporters[ORIGIN].devices
    for scrape in range(12, 40):
        both.take(page_of(fewer, [str(scrape), "0.5"]), EPOCH + 5 * scrape)
        assert both.states()[0] == both.states()[1]
    assert "GPU-2" not in both.fast.store._exporters[ORIGIN].devices
    assert both.numbered == 7 + 30 - 1


def test_a_field_that_only_a_device_that_left_had_is_reported_up_to_the_age_limit() -> None:
    """A formula that stands in for it has no value until then."""
    both = Both(make_pod("p", node=NODE))
    left = row(FIELDS[1], 1, uuid="GPU-1").rpartition(" ")[0]
    stays = row(FIELDS[0], 1, "p").rpartition(" ")[0]
    for scrape in range(2):
        both.take(page_of([stays, left], ["1"]), EPOCH + 5 * scrape)
    for scrape in range(2, 6):
        both.take(page_of([stays], ["1"]), EPOCH + 5 * scrape)
    assert both.numbered == 3
    shape = shape_of(both.fast)
    assert shape is not None
    assert dict(shape.reported) == {FIELDS[1]: EPOCH + 5.01}
    fast, full = (world.store._exporters[ORIGIN].reported for world in (both.fast, both.full))
    assert dict(fast) == dict(full) == {FIELDS[0]: EPOCH + 25.01, FIELDS[1]: EPOCH + 5.01}


def test_a_sentinel_within_the_bounds_of_its_field_is_rejected() -> None:
    """2147483632 bytes a second are possible, and DCGM's sign for "no value"."""
    both = Both(make_pod("p", node=NODE))
    lines = [row("DCGM_FI_PROF_PCIE_TX_BYTES", 1, "p").rpartition(" ")[0]]
    for scrape in range(6):
        number = "2147483632" if scrape == 4 else "2147483000"
        both.take(page_of(lines, [number]), EPOCH + 5 * scrape)
    assert both.numbered == 4
    for world in (both.fast, both.full):
        assert world.store.rejects.totals == {"sentinel": 1}
    assert both.states()[0] == both.states()[1]


def test_a_number_that_is_never_valid_costs_no_reading_of_samples() -> None:
    both = Both(*(make_pod(name, node=NODE) for name in "pqr"))
    for scrape in range(30):
        numbers = [str(scrape), "0.5", "9", "80", "2147483634"]
        text = page_of(LINES, ["37"]).decode().splitlines(keepends=True)
        sentinel = [line.replace(" 37", " 2147483634") for line in text if FIELDS[3] in line]
        rest = [line.replace(" 37", f" {numbers[0]}") for line in text if FIELDS[3] not in line]
        both.take("".join((*rest, *sentinel)).encode(), EPOCH + 5 * scrape)
        assert both.states()[0] == both.states()[1]
    assert both.numbered == 29


def test_pages_whose_devices_have_other_times_make_no_rows() -> None:
    """A pod chooses the times on its page: a row for each of them would be mostly empty."""
    both = Both()
    lines = [row(FIELDS[2], 37, uuid=f"GPU-{number}").rstrip() for number in range(40)]
    timed = [f"{line} {int(EPOCH * 1000) - at * 10}\n" for at, line in enumerate(lines)]
    both.take("".join(timed).encode(), EPOCH)
    plain = "".join(f"{line}\n" for line in lines).encode()
    made = []
    for scrape in range(1, 12):
        both.take(plain, EPOCH + 5 * scrape)
        made.append(shape_of(both.fast) is not None)
        assert both.states()[0] == both.states()[1]
    assert made == [False] * 5 + [True] * 6


def test_the_samples_of_a_page_about_one_device_keep_their_fields() -> None:
    """A row then has no other numbers, but the page's order."""
    both = Both(make_pod("p", node=NODE))
    text = "".join(
        row(field, (at + 1) / 10, "p", uuid="GPU-0") for at, field in enumerate(FIELDS[::-1])
    )
    for scrape in range(4):
        both.take(text.encode(), EPOCH + 5 * scrape)
    assert both.numbered == 3
    changed(both, ("p", "no_gpu"))  # the samples of the next page are read
    both.take(text.encode(), EPOCH + 20)
    assert both.numbered == 3
    assert both.states()[0] == both.states()[1]


@pytest.mark.parametrize(
    ("what", "read"),
    [(what, what in ("finished", "label", "no_gpu")) for what in CHANGED] + [("gone", True)],
)
def test_samples_are_read_again_if_labels_mean_something_else(what: str, *, read: bool) -> None:
    """A pod that became ready, or was replaced, changes what is said of it, but not the page."""
    both = Both(make_pod("p", node=NODE))
    text = row(FIELDS[2], 37, "p").encode()
    for scrape in range(4):
        both.take(text, EPOCH + 5 * scrape)
    changed(both, ("p", what))
    both.take(text, EPOCH + 20)
    assert both.numbered == 4 - read
    assert both.states()[0] == both.states()[1]


def test_an_exporter_whose_pages_differ_only_in_numbers_keeps_little() -> None:
    """No label set and what it names, one object for a pod's only device, and no spare room."""
    both = Both(*(make_pod(name, node=NODE) for name in "pqr"))
    for scrape in range(4):
        both.take(page_of(LINES, [str(scrape), "0.5"]), EPOCH + 5 * scrape)
    fast = both.fast.store._exporters[ORIGIN]
    assert (len(fast.beliefs), len(both._memo)) == (0, 0)
    outline = fast.outline
    assert outline.pods[PodRef("ml", "p")] is outline.devices["GPU-0"]
    assert both.fast.store._holders.of(PodRef("ml", "p")) is both.fast.store._holders.of(
        PodRef("ml", "q")
    )
    assert isinstance(fast.pages, LastPages)
    numbers = fast.pages.rows.numbers
    assert sys.getsizeof(numbers) == sys.getsizeof(numbers[:])


def test_a_device_series_is_made_when_it_is_read() -> None:
    both = Both(*(make_pod(name, node=NODE) for name in "pqr"))
    for scrape in range(4):
        both.take(page_of(LINES, [str(scrape), "0.5"]), EPOCH + 5 * scrape)
    state = both.fast.store._exporters[ORIGIN]
    (series,) = state.pods[PodRef("ml", "p")]
    assert state.all_series[series.key] is series
    assert state.devices["GPU-0"] == (series,)
    assert "GPU-9" not in state.devices
    assert len(state.all_series) == 4


@pytest.mark.parametrize("rows", [MAX_SAMPLES, MAX_SAMPLES + 1, MAX_SAMPLES + 5])
def test_a_ring_keeps_the_newest_rows_up_to_its_bound(rows: int) -> None:
    ring = NumberRows(array("d"), array("d"), 2)
    for time in range(rows):
        ring = ring.with_row(time, array("d", (time, -time)), window=2.0 * rows)
    kept = range(rows - MAX_SAMPLES, rows)
    assert list(ring.times) == list(kept)
    assert list(ring.column(1)) == [-time for time in kept]
