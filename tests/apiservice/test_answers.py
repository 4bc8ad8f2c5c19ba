"""Prepared answers live as long as the data they were made from, and stay within bounds."""

from __future__ import annotations

from apiservice.answers import PreparedAnswers
from apiservice.identity import Attributes
from apiservice.metricroutes import Route, RouteCache
from apiservice.requeststats import Series

NEVER = float("inf")


def test_an_answer_is_two_messages_that_say_its_length() -> None:
    prepared = PreparedAnswers().put("key", 1, NEVER, b"{}")
    assert prepared.start == {
        "type": "http.response.start",
        "status": 200,
        "headers": [
            (b"content-type", b"application/json"),
            (b"cache-control", b"no-cache, private"),
            (b"content-length", b"2"),
        ],
    }
    assert prepared.body == {"type": "http.response.body", "body": b"{}"}


def test_an_answer_is_found_while_version_and_time_allow() -> None:
    answers = PreparedAnswers()
    prepared = answers.put("key", 1, 100.0, b"{}")
    assert answers.get("key", 1, 99.0) is prepared
    assert answers.get("key", 1, 100.0) is None
    assert answers.get("key", 2, 99.0) is None
    assert answers.get("other", 1, 99.0) is None


def test_a_new_version_lets_go_of_everything() -> None:
    answers = PreparedAnswers()
    answers.put("key", 1, NEVER, b"{}")
    answers.put("other", 2, NEVER, b"{}")
    assert answers.get("key", 2, 0) is None
    assert answers.get("other", 2, 0) is not None


def test_the_oldest_make_room() -> None:
    answers = PreparedAnswers(limit=10)
    for key in ("a", "b", "c"):
        answers.put(key, 1, NEVER, b"12345")
    assert answers.get("a", 1, 0) is None
    assert answers.get("b", 1, 0) is not None
    assert answers.get("c", 1, 0) is not None


def test_replacing_an_answer_takes_no_more_room() -> None:
    answers = PreparedAnswers(limit=10)
    answers.put("a", 1, NEVER, b"12345")
    for _ in range(5):
        answers.put("b", 1, NEVER, b"12345")
    assert answers.get("a", 1, 0) is not None


def test_an_answer_larger_than_the_bound_is_given_and_not_kept() -> None:
    answers = PreparedAnswers(limit=10)
    answers.put("a", 1, NEVER, b"12345")
    assert answers.put("b", 1, NEVER, b"12345678901").body["body"] == b"12345678901"
    assert answers.get("b", 1, 0) is None
    assert answers.get("a", 1, 0) is not None


def _route() -> Route:
    prepared = PreparedAnswers().put("key", 1, NEVER, b"{}")
    return Route(Attributes("get"), lambda _: prepared, Series())


def test_routes_are_bounded_in_number_and_length() -> None:
    routes = RouteCache(entries=2, longest=10)
    kept = _route()
    for path in ("/a", "/b", "/c"):
        routes.add((path, b""), kept)
    routes.add(("/long", b"123456"), kept)
    assert routes.get(("/a", b"")) is None
    assert routes.get(("/b", b"")) is kept
    assert routes.get(("/c", b"")) is kept
    assert routes.get(("/long", b"123456")) is None
