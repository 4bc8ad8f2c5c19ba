"""Bytes of a terminal as keys, however they are split."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.tools.top.keys import KeyReader

KEYS = {
    b"j": ["j"],
    b"\x1b[A\x1b[B\x1bOA": ["up", "down", "up"],
    b"\x1b[5~\x1b[6~": ["pageup", "pagedown"],
    b"\x1b[H\x1b[F\x1b[1~\x1b[4~": ["home", "end", "home", "end"],
    b"\r\n": ["enter", "enter"],
    b"\x7f\x08\x15": ["backspace", "backspace", "clear"],
    b"\x0c\x04": ["redraw", "quit"],
    "ü中".encode(): ["ü", "中"],
    b"\x1b[15~x": ["x"],
    b"\x1b[1;5Ax": ["x"],
    b"\x00\x01\xffx": ["x"],
    b"\x1bj": ["esc", "j"],
    b"\x1b\x1b[A": ["esc", "up"],
}


@pytest.mark.parametrize("data", KEYS)
def test_bytes_are_keys_and_unknown_sequences_do_nothing(data: bytes) -> None:
    assert KeyReader().feed(data) == KEYS[data]


@pytest.mark.parametrize(
    "data", [data for data in KEYS if data[:1] != b"\x1b" or data[1:2] == b"["]
)
def test_keys_do_not_depend_on_how_bytes_arrive(data: bytes) -> None:
    reader = KeyReader()
    keys = [key for index in range(len(data)) for key in reader.feed(data[index : index + 1])]
    assert keys == KEYS[data]
    assert not reader.pending


def test_escape_alone_is_a_key_after_a_moment_only() -> None:
    reader = KeyReader()
    assert reader.feed(b"\x1b") == []
    assert reader.pending
    assert reader.flush() == ["esc"]
    assert reader.flush() == []
    assert reader.feed(b"\x1b[") == []
    assert reader.flush() == []
    assert reader.feed(b"A") == ["A"]


@given(st.lists(st.binary(max_size=70), max_size=4))
def test_any_bytes_leave_at_most_one_short_sequence_behind(parts: list[bytes]) -> None:
    reader = KeyReader()
    for part in parts:
        for key in reader.feed(part):
            assert key.isprintable()
    assert len(reader.flush()) <= 1
