"""Prepared answers live as long as the data they were made from, and stay within bounds."""

from __future__ import annotations

from apiservice.wire.answers import ENTRY, Key, PreparedAnswers

NEVER = float("inf")


ROOM_FOR_TWO = 2 * (ENTRY + len("a") + len("12345"))


def key(path: str) -> Key:
    return (path, b"")


KEY = key("key")


def test_an_answer_is_two_messages_that_say_its_length() -> None:
    prepared = PreparedAnswers().put(KEY, 1, NEVER, b"{}")
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
    prepared = answers.put(KEY, 1, 100.0, b"{}")
    assert answers.get(KEY, 1, 99.0) is prepared
    assert answers.get(KEY, 1, 100.0) is None
    assert answers.get(KEY, 2, 99.0) is None
    assert answers.get(key("other"), 1, 99.0) is None


def test_a_new_version_lets_go_of_everything() -> None:
    answers = PreparedAnswers()
    answers.put(KEY, 1, NEVER, b"{}")
    answers.put(key("other"), 2, NEVER, b"{}")
    assert answers.get(KEY, 2, 0) is None
    assert answers.get(key("other"), 2, 0) is not None


def test_the_oldest_make_room() -> None:
    answers = PreparedAnswers(limit=ROOM_FOR_TWO)
    for path in ("a", "b", "c"):
        answers.put(key(path), 1, NEVER, b"12345")
    assert answers.get(key("a"), 1, 0) is None
    assert answers.get(key("b"), 1, 0) is not None
    assert answers.get(key("c"), 1, 0) is not None


def test_replacing_an_answer_takes_no_more_room() -> None:
    answers = PreparedAnswers(limit=ROOM_FOR_TWO)
    answers.put(key("a"), 1, NEVER, b"12345")
    for _ in range(5):
        answers.put(key("b"), 1, NEVER, b"12345")
    assert answers.get(key("a"), 1, 0) is not None


def test_an_answer_larger_than_the_bound_is_given_and_not_kept() -> None:
    answers = PreparedAnswers(limit=ROOM_FOR_TWO)
    answers.put(key("a"), 1, NEVER, b"12345")
    large = b"1" * ROOM_FOR_TWO
    assert answers.put(key("b"), 1, NEVER, large).body["body"] == large
    assert answers.get(key("b"), 1, 0) is None
    assert answers.get(key("a"), 1, 0) is not None


def test_small_answers_to_long_requests_are_bounded_too() -> None:
    """A client that varies its query without end fills no memory, though nothing changes."""
    answers = PreparedAnswers(limit=100 * (ENTRY + 1000))
    asked = [("/p", b"%0998d" % number) for number in range(300)]
    for request in asked:
        answers.put(request, 1, NEVER, b"")
    assert [answers.get(request, 1, 0) is not None for request in asked] == (
        [False] * 200 + [True] * 100
    )


def test_a_path_is_measured_in_bytes() -> None:
    answers = PreparedAnswers(limit=100_000)
    for number in range(60):
        answers.put(("/" + "\U0001f642" * 1000 + str(number), b""), 1, NEVER, b"")

    kept = [
        number
        for number in range(60)
        if answers.get(("/" + "\U0001f642" * 1000 + str(number), b""), 1, 0)
    ]
    assert kept == list(range(40, 60))[-len(kept) :]
    assert len(kept) < 22
