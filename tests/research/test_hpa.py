"""The shortcut of the simulated HPA decides as the real one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from adapter.tools.replay.headroompolicies import FixedHeadroom, NoHeadroom, ShareOfPods
from adapter.tools.replay.nodeworld import HeadroomPolicy
from research.hpa import FastHpa, RealHpa
from research.world import simulate
from tests.examples import bounded

BEGIN = 1_700_000_040.0

loads = st.lists(
    st.one_of(
        st.floats(0, 900),
        st.integers(0, 12).map(lambda pods: pods * 70.0),
        st.integers(1, 12).map(lambda pods: pods * 77.0),  # at the edge of the tolerance
        st.integers(1, 12).map(lambda pods: pods * 63.0),
    ),
    min_size=2,
    max_size=90,
)


@bounded(40)
@given(loads, st.sampled_from([NoHeadroom(), FixedHeadroom(2), ShareOfPods(0.2)]))
def test_a_day_is_the_same_with_the_real_hpa(work: list[float], policy: HeadroomPolicy) -> None:
    assert simulate(work, BEGIN, policy) == simulate(work, BEGIN, policy, hpa=RealHpa)


syncs = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 30), st.floats(0, 5000)), min_size=1, max_size=40
)


@bounded(100)
@given(syncs, st.integers(1, 40))
def test_every_sync_decides_the_same(seen: list[tuple[int, int, float]], most: int) -> None:
    """With any pods, also of sizes that the HPA did not choose."""
    fast, real = FastHpa(most), RealHpa(most)
    for number, (bound, pending, load) in enumerate(seen):
        if 0 < bound + pending <= most:
            now = BEGIN + 15 * number
            assert fast.sync(bound, pending, load, now) == real.sync(bound, pending, load, now)
