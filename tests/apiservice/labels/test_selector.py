"""Label selectors accept, refuse and match as k8s.io/apimachinery/pkg/labels does."""

from __future__ import annotations

import tracemalloc
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiservice.labels.selector import EVERYTHING, Selector, SelectorError, parse
from apiservice.runtime.bytecache import ByteCache

MATCHES: dict[str, tuple[str, dict[str, str], bool]] = {
    "empty matches everything": ("", {"x": "y"}, True),
    "blank matches everything": (" \t\r\n", {}, True),
    "equal": ("x=y", {"x": "y"}, True),
    "equal, absent": ("x=y", {}, False),
    "double equal": ("x==y", {"x": "y"}, True),
    "equal to empty": ("x=", {"x": ""}, True),
    "equal to empty, absent": ("x=", {}, False),
    "both": ("x=y,z=w", {"x": "y", "z": "w"}, True),
    "one of both": ("x=y,z=w", {"x": "w", "z": "w"}, False),
    "not equal": ("x!=y", {"x": "z"}, True),
    "not equal, absent": ("x!=y", {}, True),
    "not equal, equal": ("x!=y", {"x": "y"}, False),
    "in": ("x in (a, b)", {"x": "b"}, True),
    "in, absent": ("x in (a,b)", {}, False),
    "in with an empty value": ("x in (,a)", {"x": ""}, True),
    "in with an empty value, absent": ("x in (,a)", {}, False),
    "in nothing means empty": ("x in ()", {"x": ""}, True),
    "notin": ("x notin (a,b)", {"x": "c"}, True),
    "notin, absent": ("x notin (a,b)", {}, True),
    "notin, in": ("x notin (a,b)", {"x": "a"}, False),
    "exists": ("x", {"x": ""}, True),
    "exists, absent": ("x", {"y": ""}, False),
    "absent": ("!x", {"y": ""}, True),
    "absent, exists": ("! x", {"x": ""}, False),
    "greater": ("x>1", {"x": "2"}, True),
    "greater, equal": ("x>1", {"x": "1"}, False),
    "less": ("x<1", {"x": "0"}, True),
    "less, absent": ("x<1", {}, False),
    "less, no integer": ("x<1", {"x": "a"}, False),
    "less, negative": ("x<1", {"x": "-7"}, True),
    "numbers, not texts": ("x>9", {"x": "10"}, True),
    "beyond 64 bits": ("x>1", {"x": "9223372036854775808"}, False),
    "keywords are keys and values": ("notin=in", {"notin": "in"}, True),
    "keywords in a set": ("in in (in,notin)", {"in": "notin"}, True),
    "prefixed key": ("app.kubernetes.io/name=inf", {"app.kubernetes.io/name": "inf"}, True),
}


@pytest.mark.parametrize(("text", "labels", "expected"), MATCHES.values(), ids=MATCHES)
def test_labels_match(text: str, labels: dict[str, str], expected: bool) -> None:
    assert parse(text).matches(labels) is expected


ERRORS = {
    "trailing comma": ("a,", "found '' at character 2, expected: identifier after ','"),
    "no key": ("=b", "found '=' at character 0, expected: !, identifier, or 'end of string'"),
    "two operators": ("a=b=c", "found '=' at character 3, expected: ',' or 'end of string'"),
    "negated equality": ("!a=b", "found '=' at character 2, expected: ',' or 'end of string'"),
    "nothing negated": ("!", "found '' at character 1, expected: identifier"),
    "no operator": ("a b", "found 'b' at character 2, expected: in, notin, =, ==, !=, >, <"),
    "set without parenthesis": ("a in b", "found 'b' at character 5, expected: '('"),
    "open set": ("a in (b", "found '' at character 7, expected: ',' or ')'"),
    "operator in a set": ("a in (=)", "found '=' at character 6, expected: identifier"),
    "value that is an operator": ("a=!", "found '!' at character 2, expected: identifier"),
    "no integer": ("a>b", "'b' at character 2: the value of '>' and '<' must be an integer"),
    "no number": ("a<", "'' at character 1: the value of '>' and '<' must be an integer"),
    "value": (
        "a=-b",
        (
            "'-b' at character 2: a valid label must be an empty string or consist of alphanumeric "
            "characters, '-', '_' or '.', and must start and end with an alphanumeric character"
        ),
    ),
    "long value": (f"a={'v' * 64}", f"'{'v' * 64}' at character 2: must be no more than 63 bytes"),
    "key": (
        "-a=b",
        (
            "'-a' at character 0: name part must consist of alphanumeric characters, '-', '_' "
            "or '.', and must start and end with an alphanumeric character"
        ),
    ),
    "long key": (
        f"{'k' * 64}=b",
        f"'{'k' * 64}' at character 0: name part must be no more than 63 bytes",
    ),
    "key without a name": ("a/=b", "'a/' at character 0: name part must be non-empty"),
    "key without a prefix": ("/a=b", "'/a' at character 0: prefix part must be non-empty"),
    "two slashes": (
        "a/b/c=d",
        (
            "'a/b/c' at character 0: prefix part must be a lowercase RFC 1123 subdomain such as "
            "'example.com'"
        ),
    ),
    "upper-case prefix": (
        "A.b/c=d",
        (
            "'A.b/c' at character 0: prefix part must be a lowercase RFC 1123 subdomain such as "
            "'example.com'"
        ),
    ),
    "long prefix": (
        f"{'a.' * 127}b/c=d",
        f"'{'a.' * 40}…' at character 0: prefix part must be no more than 253 bytes",
    ),
    "NUL": (
        "a\x00=b",
        (
            "'a\x00' at character 0: name part must consist of alphanumeric characters, '-', '_' "
            "or '.', and must start and end with an alphanumeric character"
        ),
    ),
}


@pytest.mark.parametrize(("text", "message"), ERRORS.values(), ids=ERRORS)
def test_a_fault_is_named_with_its_place(text: str, message: str) -> None:
    with pytest.raises(SelectorError) as caught:
        parse(text)
    assert str(caught.value) == message


CANONICAL: dict[str, tuple[str, str, dict[str, Any] | None]] = {
    "empty": ("", "", None),
    "labels": ("z=1, a==2", "a==2,z=1", {"matchLabels": {"a": "2", "z": "1"}}),
    "set": (
        "a in (c, b,c)",
        "a in (b,c)",
        {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b", "c"]}]},
    ),
    "not equal": (
        "a!=b",
        "a!=b",
        {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b"]}]},
    ),
    "exists and not": (
        "!b,a",
        "a,!b",
        {
            "matchExpressions": [
                {"key": "a", "operator": "Exists"},
                {"key": "b", "operator": "DoesNotExist"},
            ]
        },
    ),
    "two values of one label": (
        "a=1,a=2",
        "a=1,a=2",
        {
            "matchLabels": {"a": "1"},
            "matchExpressions": [{"key": "a", "operator": "In", "values": ["2"]}],
        },
    ),
    "a comparison has no LabelSelector": ("a>5,b=c", "a>5,b=c", None),
}


@pytest.mark.parametrize(("text", "canonical", "form"), CANONICAL.values(), ids=CANONICAL)
def test_a_selector_has_a_canonical_text_and_a_label_selector(
    text: str, canonical: str, form: dict[str, Any] | None
) -> None:
    selector = parse(text)
    assert str(selector) == canonical
    assert selector.match_labels() == form


def test_only_the_selector_without_requirements_is_empty() -> None:
    assert EVERYTHING.empty
    assert not parse("a").empty


def test_selectors_are_equal_by_what_they_require() -> None:
    assert parse("b=1,a=2") == parse("a=2 , b=1")
    assert hash(parse("b=1,a=2")) == hash(parse("a=2 , b=1"))
    assert parse("a=2") != parse("a!=2")


def test_a_selector_too_long_to_keep_is_still_right() -> None:
    text = f"a in ({','.join(f'v{number}' for number in range(512))})"
    assert parse(text).matches({"a": "v511"})
    assert not parse(text).matches({"a": "v512"})


def test_a_requirement_that_is_repeated_counts_once() -> None:
    once = parse("a,b=1,c in (x,y)")

    assert parse(",".join(["a,b=1,c in (y,x)"] * 500)) == once
    assert parse(",".join(["a"] * 8000)).bytes == parse("a").bytes


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (",".join(f"k{number}" for number in range(65)), "more than 64 requirements"),
        (f"k in ({','.join(f'v{n}' for n in range(513))})", "more than 512 values"),
        (
            ",".join(f"k{n} in ({','.join(f'v{m}' for m in range(100))})" for n in range(6)),
            "more than 512 values",
        ),
        ("a" * 16_385, "16385 characters: at most 16384"),
    ],
)
def test_a_selector_beyond_its_bounds_is_refused_with_the_bound(text: str, fault: str) -> None:
    with pytest.raises(SelectorError, match=fault):
        parse(text)


def test_selectors_that_vary_without_end_are_remembered_within_a_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("apiservice.labels.selector._cache", ByteCache[str, Selector](1 << 20))
    tracemalloc.start()
    try:
        for seed in range(150):  # 3 MiB, were all of them kept
            parse(",".join(f"k{seed:x}{number:x}" for number in range(60)))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert held < 2 << 20


Condition = tuple[str, str, list[str]]
"""Key, operator, values."""

_KEYS = st.sampled_from(["a", "b", "in", "x.io/y"])
_VALUES = st.sampled_from(["", "1", "2", "10", "v", "notin"])
_NUMBERS = st.sampled_from(["0", "1", "5", "10"])
_BLANK = st.sampled_from(["", " ", "\t "])
_CONDITIONS: st.SearchStrategy[Condition] = st.one_of(
    st.tuples(_KEYS, st.sampled_from(["=", "==", "!="]), st.lists(_VALUES, min_size=1, max_size=1)),
    st.tuples(_KEYS, st.sampled_from(["in", "notin"]), st.lists(_VALUES, min_size=1, max_size=4)),
    st.tuples(_KEYS, st.sampled_from([">", "<"]), st.lists(_NUMBERS, min_size=1, max_size=1)),
    st.tuples(_KEYS, st.sampled_from(["exists", "!"]), st.just([])),
)


def _written(condition: Condition, blank: str) -> str:
    key, op, values = condition
    match op:
        case "exists":
            return f"{blank}{key}"
        case "!":
            return f"!{blank}{key}"
        case "in" | "notin":
            return f"{key} {op}{blank}({blank}{f',{blank}'.join(values)}{blank})"
        case _:
            return f"{blank}{key}{blank}{op}{blank}{values[0]}{blank}"


def _holds(condition: Condition, labels: Mapping[str, str]) -> bool:
    key, op, values = condition
    present = key in labels
    match op:
        case "exists":
            return present
        case "!":
            return not present
        case "=" | "==" | "in":
            return present and labels[key] in values
        case "!=" | "notin":
            return not (present and labels[key] in values)
        case _:
            if not present or not labels[key].isdigit():
                return False
            one, other = int(labels[key]), int(values[0])
            return one > other if op == ">" else one < other


@given(
    st.lists(_CONDITIONS, max_size=4),
    st.dictionaries(_KEYS, _VALUES),
    _BLANK,
)
def test_a_compiled_selector_agrees_with_brute_force(
    conditions: list[Condition], labels: dict[str, str], blank: str
) -> None:
    selector = parse(",".join(_written(condition, blank) for condition in conditions))
    assert selector.matches(labels) == all(_holds(condition, labels) for condition in conditions)


@given(st.lists(_CONDITIONS, max_size=4), _BLANK)
def test_the_canonical_text_parses_to_an_equal_selector(
    conditions: list[Condition], blank: str
) -> None:
    selector = parse(",".join(_written(condition, blank) for condition in conditions))
    assert parse(str(selector)) == selector


@given(st.text(alphabet="ab1,=!()<>in \t-_./é\x00'\"", max_size=40))
def test_any_text_is_a_selector_or_a_selector_error(text: str) -> None:
    try:
        selector = parse(text)
    except SelectorError:
        return
    assert parse(str(selector)) == selector
