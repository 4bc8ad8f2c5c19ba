"""A field with a wrong type is named, with the type that it must have, and not its value."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from adapter.pipeline.cluster.fieldtypes import type_faults


class Part(msgspec.Struct):
    count: int = 0
    texts: dict[str, str] = {}


class Whole(msgspec.Struct):
    part: Part = msgspec.field(default_factory=Part)
    parts: list[Part] = []
    either: int | str = 0
    on: bool = False
    maybe: int | None = None


FAULTS: dict[str, tuple[Any, list[str]]] = {
    "none": ({"part": {"count": 1, "texts": {"a": "b"}}, "either": "25%", "maybe": None}, []),
    "a null is missing": ({"part": None, "parts": [None, {"count": None}]}, []),
    "a string for a number": (
        {"part": {"count": "secret"}},
        ["part.count is a string, and must be a whole number: write it without quotes"],
    ),
    "a number for a string": (
        {"part": {"texts": {"a": "b", "c": 4711}}},
        ["part.texts.c is a whole number, and must be a string: write it in quotes"],
    ),
    "a key that is not a word": (
        {"part": {"texts": {"a.b/c": True}}},
        ["part.texts[a.b/c] is true or false, and must be a string: write it in quotes"],
    ),
    "a string for a boolean": (
        {"on": "true"},
        ["on is a string, and must be true or false: write it without quotes"],
    ),
    "in a list": (
        {"parts": [{"count": 1}, {"texts": []}]},
        ["parts[1].texts is a list, and must be a mapping: correct it"],
    ),
    "of two types": (
        {"either": {}},
        ["either is a mapping, and must be a whole number or a string: correct it"],
    ),
    "several": (
        {"part": {"count": 1.5, "texts": {"a": 1, "b": 2}}, "maybe": "3"},
        [
            "part.count is a number, and must be a whole number: correct it",
            "part.texts.a is a whole number, and must be a string: write it in quotes",
            "part.texts.b is a whole number, and must be a string: write it in quotes",
            "maybe is a string, and must be a whole number: write it without quotes",
        ],
    ),
    "the object itself": ([], ["the object is a list, and must be a mapping: correct it"]),
}


@pytest.mark.parametrize(("content", "faults"), FAULTS.values(), ids=FAULTS)
def test_fields_with_a_wrong_type_are_named(content: Any, faults: list[str]) -> None:
    texts = [str(fault) for fault in type_faults(content, Whole)]
    assert texts == faults
    assert not any(value in text for text in texts for value in ("secret", "4711"))


def test_the_faults_of_one_object_are_bounded() -> None:
    texts = {f"key-{number}": number for number in range(500)}
    assert len(type_faults({"part": {"texts": texts}}, Whole)) == 20
