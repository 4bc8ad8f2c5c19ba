"""The simulated servers match published figures, and the sweeps are compared as they say."""

from __future__ import annotations

import pytest

from load.promiseplays import HOME, LARGE, LIMITS, OTHER, QUICK, SMALL
from load.promisepolicies import FAMILIES, OURS, RECIPE
from load.promisepool import Outcome, Play, play
from load.promises import Cost, Result, best_settings, missed_at, reference
from load.promiseserver import Model, Request, Served, Server


def token_time(model: Model, clients: int, prompt: int, answer: int) -> float:
    """Return mean milliseconds per token for clients that each ask again at once."""
    served: list[Served] = []
    server = Server(model, 0.0, served)
    now, asked = 0.0, 0
    while len(served) < 4 * clients:
        # Clients begin one after the other, as prompts of one second would also end together.
        due = min(clients, 1 + int(now / 0.5)) + len(served) - asked
        for _ in range(due):
            server.add(Request(now, prompt, answer))
            asked += 1
        now += 0.02
        server.advance(now)
    late = served[2 * clients :]
    return 1000 * sum(request.each for request in late) / len(late)


@pytest.mark.parametrize(
    ("model", "clients", "prompt", "answer", "published"),
    [
        (LARGE, 1, 5000, 500, 18.58),
        (LARGE, 5, 5000, 500, 21.83),
        (LARGE, 25, 5000, 500, 38.75),
        (LARGE, 50, 5000, 500, 59.73),
        (LARGE, 100, 5000, 500, 92.91),
        (SMALL, 1, 1024, 128, 13.3),
        (SMALL, 8, 1024, 128, 16.2),
        (QUICK, 1, 200, 200, 4.63),
        (QUICK, 100, 200, 200, 7.57),
        (OTHER, 1, 480, 300, 17.1),
        (OTHER, 32, 480, 300, 22.6),
        (OTHER, 64, 480, 300, 28.0),
        (OTHER, 128, 480, 300, 39.1),
        (HOME, 4, 256, 128, 19.0),
        (HOME, 16, 256, 128, 24.8),
        (HOME, 48, 256, 128, 40.3),
    ],
)
def test_a_token_takes_as_long_as_published(
    model: Model, clients: int, prompt: int, answer: int, published: float
) -> None:
    assert token_time(model, clients, prompt, answer) == pytest.approx(published, rel=0.2)


def test_requests_beyond_the_cache_wait() -> None:
    server = Server(LARGE, 0.0, [])
    for _ in range(100):
        server.add(Request(0.0, 5000, 500))
    server.advance(40.0)
    page = server.page()
    assert page.running == LARGE.cache // 5500
    assert page.waiting == 100 - page.running


def test_a_full_cache_still_serves_a_request_that_is_larger_than_it() -> None:
    served: list[Served] = []
    server = Server(HOME, 0.0, served)
    server.add(Request(0.0, HOME.cache + 1, 2))
    server.advance(60.0)
    assert len(served) == 1


def one(requests: int) -> Play:
    """Return a play of twenty minutes on one small server."""
    asked = [Request(1200 * at / requests, 500, 20) for at in range(requests)]
    return Play("one", SMALL, asked, 60.0, 1, 8.0)


@pytest.mark.parametrize("name", list(FAMILIES))
def test_every_signal_keeps_the_promise_of_a_server_with_little_to_do(name: str) -> None:
    what = one(1200)
    outcome = play(what, FAMILIES[name].policy(FAMILIES[name].values[0], what), LIMITS)
    assert isinstance(outcome, Outcome)
    assert outcome.missed == 0
    # At least one replica is billed for the five minutes that count.
    assert outcome.gpu_hours >= 290 / 3600


COSTS = {1.0: Cost(10, 8), 2.0: Cost(14, 4), 3.0: Cost(16, 6), 4.0: Cost(20, 1)}


def test_a_setting_counts_only_if_no_cheaper_one_is_better() -> None:
    assert best_settings(COSTS) == [Cost(10, 8), Cost(14, 4), Cost(20, 1)]


def test_between_two_settings_the_line_between_them_counts() -> None:
    assert missed_at(COSTS, 12) == 6
    assert missed_at(COSTS, 9) is None
    assert missed_at(COSTS, 99) == 1


@pytest.mark.parametrize(
    ("costs", "hours"),
    [
        (COSTS, 13),
        ({1.0: Cost(10, 4), 2.0: Cost(14, 1)}, 10),
        ({1.0: Cost(10, 40), 2.0: Cost(14, 11)}, 14),
    ],
    ids=["five percent", "cheapest keeps", "least missed"],
)
def test_signals_are_compared_where_the_recipe_misses_so_many(
    costs: dict[float, Cost], hours: float
) -> None:
    assert reference(Result("x", False, {RECIPE: costs, OURS: costs})) == hours
