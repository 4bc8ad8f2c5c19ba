"""Histories of samples: what is kept, and how a reading uses it."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from adapter.pipeline.catalog import Catalog
from adapter.pipeline.catalog.metric import Kind
from adapter.pipeline.devices.history import Frame, History, history

CATALOG = Catalog()
UTIL = CATALOG.spellings["DCGM_FI_DEV_GPU_UTIL"]
USED = CATALOG.spellings["DCGM_FI_DEV_FB_USED"]
RATIO = CATALOG.spellings["DCGM_FI_DEV_GPU_UTIL_RATIO"]
WINDOW, LIMIT = 30.0, 65.0


def grown(*frames: tuple[float, Frame]) -> History:
    past = history({}, WINDOW, LIMIT)
    for time, frame in frames:
        past = past.with_frames({time: frame}, WINDOW, LIMIT)
    return past


def mean(found: History, field: str = UTIL.name) -> float | None:
    sample = found.value_of(field, Kind.MEAN, WINDOW)
    return sample.value if sample else None


def test_the_mean_is_over_the_window_up_to_the_newest_sample() -> None:
    past = grown(*((float(t), {UTIL: float(t)}) for t in range(0, 61, 5)))
    assert mean(past) == (35 + 40 + 45 + 50 + 55 + 60) / 6


def test_samples_beyond_the_window_are_dropped() -> None:
    past = grown(*((float(t), {UTIL: 1.0, USED: 2.0}) for t in range(0, 600, 5)))
    assert list(past.times) == [570.0, 575.0, 580.0, 585.0, 590.0, 595.0]


def test_a_sample_with_a_known_time_is_not_counted_twice() -> None:
    past = grown((0, {UTIL: 10.0}), (5, {UTIL: 20.0}), (5, {UTIL: 20.0}), (0, {UTIL: 10.0}))
    assert mean(past) == 15.0


def test_one_scrape_may_arrive_in_parts() -> None:
    past = grown((0, {UTIL: 10.0}), (0, {USED: 5.0}), (5, {USED: 6.0}), (5, {UTIL: 20.0}))
    assert mean(past) == 15.0
    assert list(past.times) == [0.0, 5.0]


def test_a_late_sample_is_inserted_in_order() -> None:
    past = grown((10, {UTIL: 30.0}), (0, {UTIL: 10.0}), (5, {UTIL: 20.0}))
    assert list(past.times) == [0.0, 5.0, 10.0]
    assert mean(past) == 20.0


def test_a_field_without_new_samples_keeps_its_time_and_mean() -> None:
    frames: list[tuple[float, Frame]] = [(t, {UTIL: 40.0, USED: 1.0}) for t in (0.0, 5.0)]
    past = grown(*frames, *((float(t), {USED: 1.0}) for t in range(10, 60, 5)))
    sample = past.value_of(UTIL.name, Kind.MEAN, WINDOW)
    assert sample is not None
    assert (sample.value, sample.time) == (40.0, 5.0)


def test_a_field_without_samples_for_the_age_limit_is_dropped() -> None:
    past = grown((0, {UTIL: 1.0}), *((float(t), {USED: 1.0}) for t in range(5, 200, 5)))
    assert mean(past) is None
    assert past.layout.columns == (USED,)
    past = past.with_frames({200.0: {USED: 1.0}}, WINDOW, LIMIT)
    assert len(past.times) == 6


def test_of_two_spellings_the_newer_sample_counts() -> None:
    past = grown((0, {RATIO: 10.0}), (5, {UTIL: 20.0}))
    sample = past.value_of(UTIL.name, Kind.LAST, WINDOW)
    assert sample is not None
    assert (sample.value, sample.series) == (20.0, UTIL.name)


def test_a_history_is_immutable() -> None:
    before = grown((0, {UTIL: 10.0}))
    before.with_frames({5.0: {UTIL: 20.0}}, WINDOW, LIMIT)
    before.with_frames({0.0: {USED: 20.0}}, WINDOW, LIMIT)
    assert (list(before.times), before.row(0)) == ([0.0], [10.0])


FRAMES = st.dictionaries(
    st.integers(0, 25).map(float),
    st.dictionaries(st.sampled_from([UTIL, USED]), st.floats(0, 100), min_size=1),
    min_size=1,
    max_size=8,
)


@given(FRAMES, st.randoms())
def test_the_order_of_arrival_does_not_matter(frames: dict[float, Frame], random: Random) -> None:
    items = list(frames.items())
    random.shuffle(items)
    once = history(frames, WINDOW, LIMIT)
    bit_by_bit = grown(*items)
    for field in (UTIL.name, USED.name):
        for kind in Kind:
            assert bit_by_bit.value_of(field, kind, WINDOW) == once.value_of(field, kind, WINDOW)


def test_without_drops_only_the_samples_of_one_field_up_to_a_time() -> None:
    past = grown((1.0, {RATIO: 0.0}), (2.0, {RATIO: 0.0, USED: 7.0}), (3.0, {RATIO: 50.0}))
    cut = past.without(UTIL.name, 2.0)
    assert dict(cut.frames()) == {2.0: {USED: 7.0}, 3.0: {RATIO: 50.0}}
    assert past.without("another field", 2.0) is past
    assert past.without(UTIL.name, 0.5) is past
    assert not past.without(UTIL.name, 3.0).value_of(UTIL.name, Kind.MEAN, WINDOW)
