"""Any text that somebody writes as YAML gives values or one line, in bounded work."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiservice.runtime.yamltext import DEEPEST, YamlError, document, documents, nodes

WELL: dict[str, tuple[str | bytes, list[Any]]] = {
    "nothing": ("", []),
    "several documents": ("a: 1\n---\nb: 2\n", [{"a": 1}, {"b": 2}]),
    "JSON": (b'{"a": [1, null]}', [{"a": [1, None]}]),
    "several in JSON": ('{"a": 1}\n---\n{"b": 2}', [{"a": 1}, {"b": 2}]),
    "a time stays a text": ("a: 2026-01-31T12:00:00Z", [{"a": "2026-01-31T12:00:00Z"}]),
    "a day that is none": ("a: 2001-99-99", [{"a": "2001-99-99"}]),
    "an alias": ("a: &x [1]\nb: *x\n", [{"a": [1], "b": [1]}]),
    "a merge": (
        "a: &x {c: 1, d: 2}\nb: {<<: *x, d: 3}\n",
        [{"a": {"c": 1, "d": 2}, "b": {"c": 1, "d": 3}}],
    ),
}
BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join(['*' + before] * 10)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
BAD = {
    "an open bracket": ("a: [", "line 2: did not find expected node content"),
    "control characters": ("a: \x00", "control characters are not allowed"),
    "another encoding": (b"\xff\xfea", "'utf-8' codec"),
    "nested too deep": ("[" * 100_000, f"line 1: values are nested more than {DEEPEST} deep"),
    "nested too deep, in blocks": ("- " * 5_000, "line 1: values are nested more than"),
    "a number that is a book": ("a: " + "9" * 5_000, "a number has thousands of digits"),
    "a tag without a value": ("a: !!int ''", "a tag such as !!int does not fit its value"),
    "an object of Python": ("a: !!python/name:os.system", "could not determine a constructor"),
    "a key that is a list": ("? [a]\n: b", "line 1: found unhashable key"),
    "a value that contains itself": ("a: &x [*x]", "line 1: a value contains itself"),
    "aliases of aliases": (BOMB, "line 6: aliases stand for more than 1000000 values"),
}


@pytest.mark.parametrize(("text", "values"), WELL.values(), ids=WELL)
def test_a_text_gives_its_documents(text: str | bytes, values: list[Any]) -> None:
    assert documents(text) == values


@pytest.mark.parametrize(("text", "why"), BAD.values(), ids=BAD)
@pytest.mark.parametrize("unique", [False, True])
def test_what_cannot_be_used_is_one_line(text: str | bytes, why: str, unique: bool) -> None:
    with pytest.raises(YamlError) as caught:
        documents(text, unique=unique)
    assert why in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_a_key_that_stands_twice_is_refused_where_it_matters() -> None:
    assert document("a: 1\na: 2") == {"a": 2}
    with pytest.raises(YamlError, match="a stands twice, on lines 1 and 2: merge the two"):
        document("a: 1\na: 2", unique=True)


def test_one_document_is_one() -> None:
    assert document("") is None
    with pytest.raises(YamlError, match="it has 2 documents: write one"):
        document("a: 1\n---\na: 2")


_PIECES = st.sampled_from(
    (
        *("a", ": ", "- ", "\n", "  ", "[", "]", "{", "}", "&x ", "*x", "<<", "? ", "#", ",", "~"),
        *("!!int ", "!!set ", "'", '"', "|", ">", "---\n", "%YAML 1.2\n", "0x", "1:2", ".inf"),
        *("2001-99-99", "\t", "é"),
    )
)


@given(st.lists(_PIECES, max_size=30).map("".join) | st.binary(max_size=60))
def test_fuzz_any_text_gives_documents_or_one_line(text: str | bytes) -> None:
    message = ""
    try:
        documents(text, unique=True)
    except YamlError as error:
        message = str(error)
    assert "\n" not in message


MERGES = {
    "into a mapping": ("a: &x {c: 1, d: 2}\nb: {<<: *x, d: 3}\n", {"c": "1", "d": "3"}),
    "after its own keys": ("a: &x {c: 1, d: 2}\nb: {d: 3, <<: *x}\n", {"c": "1", "d": "3"}),
    "of several": (
        "a: [&x {c: 1}, &y {c: 2, d: 2}]\nb: {<<: [*x, *y]}\n",
        {"c": "1", "d": "2"},
    ),
    "of a merge": ("a: &x {c: 1}\ny: &y {<<: *x, d: 2}\nb: {<<: *y}\n", {"c": "1", "d": "2"}),
    "of no mapping": ("b: {<<: text, c: 1}\n", {"<<": "text", "c": "1"}),
}


@pytest.mark.parametrize(("text", "content"), MERGES.values(), ids=MERGES)
def test_nodes_have_the_keys_of_their_merges(text: str, content: dict[str, str]) -> None:
    (root,) = nodes(text)
    (node,) = [value for key, value in root.value if key.value == "b"]
    assert {key.value: value.value for key, value in node.value} == content
    assert len(node.value) == len(content)


@pytest.mark.parametrize(("text", "why"), BAD.values(), ids=BAD)
def test_nodes_are_bounded_like_documents(text: str | bytes, why: str) -> None:
    # A node may be what no value can be.
    message = why
    try:
        assert nodes(text)
    except YamlError as error:
        message = str(error)
    assert why in message
