"""Any text that somebody writes as YAML gives values or one line, in bounded work."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiservice.runtime import yamltext
from apiservice.runtime.yamltext import DEEPEST, YamlError, document, documents, nodes

WELL: dict[str, tuple[str | bytes, list[Any]]] = {
    "nothing": ("", []),
    "several documents": ("a: 1\n---\nb: 2\n", [{"a": 1}, {"b": 2}]),
    "JSON": (b'{"a": [1, null]}', [{"a": [1, None]}]),
    "several in JSON": ('{"a": 1}\n---\n{"b": 2}', [{"a": 1}, {"b": 2}]),
    "a time stays a text": ("a: 2026-01-31T12:00:00Z", [{"a": "2026-01-31T12:00:00Z"}]),
    "a day that is none": ("a: 2001-99-99", [{"a": "2001-99-99"}]),
    "JSON values in lines": ('{"a": 1}\n{"a": 2}\n', [{"a": 1}, {"a": 2}]),
    "JSON values as jq writes them": (
        b'{\n  "a": "}"\n}\n{\n  "b": [1e3]\n}\n',
        [{"a": "}"}, {"b": [1e3]}],
    ),
    "JSON values beside each other": ('{"a": 1}{"a": 2}', [{"a": 1}, {"a": 2}]),
    "a number that is a book": ("a: " + "9" * 5_000, [{"a": "9" * 5_000}]),
    "a tag of another program": (
        "a: !reference [b, c]\nd: !vault e\nf: !env {g: 1}\nh: !number 5\n",
        [{"a": ["b", "c"], "d": "e", "f": {"g": 1}, "h": "5"}],
    ),
    "a tag of Python": ("a: !!python/name:os.system\n", [{"a": ""}]),
    "an object of Python": ("a: !!python/object/apply:os.system [ls]\n", [{"a": ["ls"]}]),
    "tags of YAML": (
        "a: !!set {b, c}\nd: !!omap [e: 1]\nf: !!binary aGk=\ng: !!float 5\nh: !!int '5'\n",
        [{"a": {"b": None, "c": None}, "d": [{"e": 1}], "f": "hi", "g": 5.0, "h": 5}],
    ),
    "an alias": ("a: &x [1]\nb: *x\n", [{"a": [1], "b": [1]}]),
    "a merge": (
        "a: &x {c: 1, d: 2}\nb: {<<: *x, d: 3}\n",
        [{"a": {"c": 1, "d": 2}, "b": {"c": 1, "d": 3}}],
    ),
}
JSON_LINES = b'{"a": 1}\n\n  {"a":\n2}\n{"a": 3}\n'
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
    "a number that is a book": (
        "a: !!int " + "9" * 5_000,
        "line 1: a tag such as !!int does not fit its value",
    ),
    "a tag without a value": ("a: !!int ''", "a tag such as !!int does not fit its value"),
    "a key that is a list": ("? [a]\n: b", "line 1: found unhashable key"),
    "a value that contains itself": ("a: &x [*x]", "line 1: a value contains itself"),
    "aliases of aliases": (BOMB, "line 6: aliases stand for more than 1000000 values"),
}


@pytest.mark.parametrize(("text", "values"), WELL.values(), ids=WELL)
def test_a_text_gives_its_documents(text: str | bytes, values: list[Any]) -> None:
    assert documents(text) == values


@pytest.mark.parametrize(("text", "why"), BAD.values(), ids=BAD)
@pytest.mark.parametrize("strict", [False, True])
def test_what_cannot_be_used_is_one_line(text: str | bytes, why: str, strict: bool) -> None:
    with pytest.raises(YamlError) as caught:
        documents(text, strict=strict)
    assert why in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


TAGS = ("!vault a", "!reference [a]", "!!python/name:os.system ''", "!env {a: b}")


@pytest.mark.parametrize("text", TAGS)
def test_a_strict_reader_refuses_unknown_tags(text: str) -> None:
    assert document(f"a: {text}")
    with pytest.raises(YamlError, match=r"^line 2: a value begins with an unknown tag: write the"):
        document(f"b: 1\na: {text}", strict=True)
    assert document("a: !!str 5", strict=True) == {"a": "5"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: {b: c", "line 2: did not find expected ',' or '}'"),
        ("a: [b\n", "line 2: did not find expected ',' or ']'"),
        ("a: b: c", "line 1: mapping values are not allowed in this context"),
    ],
)
def test_terms_of_the_parser_are_shown(text: str, message: str) -> None:
    with pytest.raises(YamlError) as caught:
        documents(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("expected ',' or '}', but got '<stream end>'", None),
        ("invalid literal: 'secret'", "invalid literal: '…'"),
        ("found 'a's secret' here", "found '…' here"),
        ("expected ',' after 'pw'", "expected ',' after '…'"),
    ],
)
def test_a_part_of_the_text_is_hidden(
    monkeypatch: pytest.MonkeyPatch, message: str, shown: str | None
) -> None:
    def fail(text: str, strict: bool) -> None:
        raise ValueError(message)

    monkeypatch.setattr(yamltext, "_documents", fail)
    with pytest.raises(YamlError) as caught:
        documents("a: b")
    assert str(caught.value) == (shown or message)


_TAB = "a tab stands where YAML takes spaces only: indent with spaces"
CHARACTERS = {
    "a tab before a key": ("a: 1\nb:\n\tc: 2\n", f"line 3: {_TAB}"),
    "a tab after spaces": ("a:\n  \tb: 1\n", f"line 2: {_TAB}"),
    "a tab after a value": ("a:\n  b: 1\n\tc: 2\n", f"line 3: {_TAB}"),
    "a tab in a list": ("a:\n- b\n\t- c\n", f"line 3: {_TAB}"),
    "a tab in a block": ("a: |\n\tb\n", f"line 2: {_TAB}"),
    "a value with @": ("a: @b\n", "line 1: a value begins with @: write it in quotes"),
    "a value with %": ("a: 1\nb: %c\n", "line 2: a value begins with %: write it in quotes"),
}


@pytest.mark.parametrize(("text", "message"), CHARACTERS.values(), ids=CHARACTERS)
def test_a_wrong_character_is_named(text: str, message: str) -> None:
    for read in (documents, nodes):
        for content in (text, text.encode()):
            with pytest.raises(YamlError) as caught:
                read(content)
            assert str(caught.value) == message


def test_a_key_that_stands_twice_is_refused_where_it_matters() -> None:
    assert document("a: 1\na: 2") == {"a": 2}
    with pytest.raises(YamlError, match="a stands twice, on lines 1 and 2: merge the two"):
        document("a: 1\na: 2", strict=True)


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
        documents(text, strict=True)
    except YamlError as error:
        message = str(error)
    assert "\n" not in message


def test_nodes_of_json_values_know_their_lines() -> None:
    assert [node.start_mark.line for node in nodes(JSON_LINES)] == [0, 2, 4]
    assert documents(JSON_LINES) == [{"a": 1}, {"a": 2}, {"a": 3}]


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
