"""When the live tables read the cluster again."""

from __future__ import annotations

import pytest

from adapter.tools.top.live import pause_after


@pytest.mark.parametrize(("took", "pause"), [(0.0, 5.0), (0.5, 5.0), (2.0, 20.0)])
def test_a_slow_round_is_followed_by_a_longer_pause(took: float, pause: float) -> None:
    assert pause_after(took, 5.0) == pause
