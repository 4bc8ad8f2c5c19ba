"""The rate that an observer infers from requests, and headroom for pods without a node."""

from __future__ import annotations

import numpy as np
import pytest

from adapter.tools.replay.nodeworld import NodeMoment
from research.ablation import Targets
from research.rates import MOST, Prior, posterior

COUNTS = (3, 5, 2, 4, 40, 38, 44, 41) * 30


@pytest.fixture(scope="module")
def prior() -> Prior:
    """Of an hour with few requests, then one with many, again and again."""
    return Prior(COUNTS, 40, steps=50)


def mean(chances: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float:
    return float(chances @ np.arange(len(chances)))


def test_a_quarter_is_like_the_one_before(prior: Prior) -> None:
    busy, quiet = (prior.likelihoods(quarter) for quarter in (199, 195))
    assert busy.sum() == pytest.approx(1)
    assert len(busy) == MOST
    assert mean(busy) > 2 * mean(quiet)


def test_requests_decide_more_the_more_of_them_are_known(prior: Prior) -> None:
    before = prior.likelihoods(195)
    soon, later = posterior(before, 40, 1.0), posterior(before, 400, 10.0)
    assert mean(before) < mean(soon) < mean(later)
    assert 30 < mean(later) <= 40


def test_the_next_quarter_follows_from_the_assumed_one(prior: Prior) -> None:
    draw = np.random.default_rng(1)
    few, many = (prior.next(draw, 195, np.full(500, count)) for count in (1.0, 60.0))
    assert few.min() >= 0
    assert few.mean() < many.mean()


@pytest.mark.parametrize(("pending", "booting", "headroom"), [(1, 0, 0), (2, 0, 1), (2, 1, 0)])
def test_pods_without_a_node_get_headroom(pending: int, booting: int, headroom: int) -> None:
    """Beside one such pod the forecast is of 9 pods, beside two of 13."""
    policy = Targets(0.0, [9.0], [9.0], 0.0, [[9.0], [13.0]])
    seen = NodeMoment(0.0, None, None, 10, pending, 0, 10, booting)
    assert policy.headroom(seen) == headroom


def test_more_pods_without_a_node_than_there_are_forecasts_get_headroom() -> None:
    policy = Targets(0.0, [9.0], [9.0], 0.0, [[9.0], [9.0]])
    assert policy.headroom(NodeMoment(0.0, None, None, 10, 3, 0, 10, 0)) == 1
