"""What the replay expects of the loads that the lab plays."""

from __future__ import annotations

from load.nodepoolexpected import TRIED, expected
from load.nodepoolplays import TARGET, LabLoad, LabPlay

FLAT, HIGH = [3.0 * TARGET] * 8, [6.0 * TARGET] * 40


def play(past: list[float], ticks: list[float], uncounted: int = 0) -> LabPlay:
    load = LabLoad("1", past, ticks)
    return LabPlay([load], 15, 60, 120, 300, 5, 300, uncounted)


def test_a_rise_waits_for_nodes_and_headroom_shortens_it() -> None:
    reactive, share, _ = expected(play([], [*FLAT, *HIGH]))
    # Three pods, until their nodes have booted.
    assert 3 * 120 <= reactive.wait_seconds <= 3 * (120 + 2 * 15)
    assert share.wait_seconds < reactive.wait_seconds
    assert share.node_minutes > reactive.node_minutes


def test_what_is_played_before_does_not_count() -> None:
    past = [3.0 * TARGET] * 60
    reactive, share, _ = expected(play(past, [*FLAT, *FLAT], uncounted=len(FLAT)))
    assert (reactive.wait_seconds, share.wait_seconds) == (0, 0)
    assert reactive.node_minutes == 3 * len(FLAT) * 15 / 60
    assert share.node_minutes == 4 * len(FLAT) * 15 / 60


def test_every_policy_of_the_lab_has_a_row() -> None:
    assert len(expected(play([], FLAT))) == len(TRIED) == 3
