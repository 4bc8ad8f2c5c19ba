"""The demand history of the end-to-end tests expects the same at any time of the day."""

from __future__ import annotations

import pytest

from adapter.nodepool.model.history import DAY, SLOT
from adapter.server.ahead.expectation import Expectation
from adapter.server.ahead.workloadload import Present
from tests.e2e.learnedload import learned

MIDNIGHT = 1_764_288_000
TIMES = [MIDNIGHT + slot + into for slot in range(0, DAY, SLOT) for into in (1, SLOT - 20)]


@pytest.mark.parametrize("start", TIMES, ids=lambda at: f"{(at - MIDNIGHT) / 3600:.2f}h")
def test_the_rise_is_expected_from_the_start_on(start: int) -> None:
    load = learned(start, load=200.0, rise=200.0, target=50.0)
    for age in range(0, 181, 30):
        load.learn(Present(200.0, 4), start + age)
        load.compute(0.9, start + age)
        assert isinstance(load.expectation, Expectation)
        assert load.expectation.most == pytest.approx(400.0)
