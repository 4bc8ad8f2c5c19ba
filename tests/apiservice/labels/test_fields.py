"""Field selectors parse as kube-apiserver's."""

from __future__ import annotations

import pytest

from apiservice.labels.fields import EVERY_FIELD, FieldRequirement, parse_fields
from apiservice.labels.selector import SelectorError


@pytest.mark.parametrize(
    ("text", "expected"),
    {
        "": [],
        ",": [],
        "a=b": [("a", "b", True)],
        "a==b": [("a", "b", True)],
        "a!=b": [("a", "b", False)],
        "a=": [("a", "", True)],
        "a=b,c!=d": [("a", "b", True), ("c", "d", False)],
        "a=b,": [("a", "b", True)],
        r"a=b\,c,d=e": [("a", "b,c", True), ("d", "e", True)],
        r"a=b\=c\\": [("a", "b=c\\", True)],
        "a=b c": [("a", "b c", True)],
    }.items(),
)
def test_a_selector_parses(text: str, expected: list[tuple[str, str, bool]]) -> None:
    assert list(parse_fields(text).requirements) == [FieldRequirement(*one) for one in expected]


@pytest.mark.parametrize("text", ["a", "a,b=c", "a=b=c", r"a=\x", "a=b\\", "a<b"])
def test_a_text_that_is_not_a_selector_is_refused(text: str) -> None:
    with pytest.raises(SelectorError):
        parse_fields(text)


def test_a_selector_is_bounded() -> None:
    parse_fields(",".join(["a=b"] * 64))
    with pytest.raises(SelectorError, match="more than 64 requirements"):
        parse_fields(",".join(["a=b"] * 65))
    with pytest.raises(SelectorError, match="at most 16384 are allowed"):
        parse_fields("a=" + "b" * 16_384)


def test_all_requirements_must_hold() -> None:
    selector = parse_fields("a=1,b!=2")
    assert selector.matches({"a": "1"})
    assert selector.matches({"a": "1", "b": "3"})
    assert not selector.matches({"a": "1", "b": "2"})
    assert not selector.matches({})
    assert EVERY_FIELD.matches({})


def test_the_exact_value_of_a_field_is_known() -> None:
    selector = parse_fields("a!=1,b==2")
    assert selector.exact("a") is None
    assert selector.exact("b") == "2"
