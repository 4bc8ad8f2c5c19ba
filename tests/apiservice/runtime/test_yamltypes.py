"""Scalars are what kubectl 1.37 makes of them (``kubectl annotate --local -o json``)."""

from __future__ import annotations

import math
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from apiservice.runtime.yamltext import document, nodes, serialize
from apiservice.runtime.yamltypes import Dumper, read_scalar

TEXTS = (
    *("=", "1:30", "12:30:00", "190:20:30.15", "2001-01-01", "2001-01-01T12:00:00Z", "1.5.3"),
    *("tRUE", "oN", "nULL", "_1", "._5", ".", "+", "1e", "1d", ".e3", "0b", "0o", "0o_", "0x_"),
    *("0o8", "0b2", "0xg", "0x1.8p1", "1e400", "0xFFFFFFFFFFFFFFFFF", "-0xFFFFFFFFFFFFFFFF", "é"),
)
OTHERS: dict[str, Any] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "TRUE", "on", "On"), True),
    **dict.fromkeys(("n", "N", "no", "NO", "false", "False", "off", "OFF"), False),
    **dict.fromkeys(("~", "null", "Null", "NULL", ""), None),
    "0": 0,
    "00": 0,
    "-0": 0,
    "+12": 12,
    "-5": -5,
    "1_000": 1000,
    "1_": 1,
    "+_1": 1,
    "010": 8,
    "0o17": 15,
    "0O17": 15,
    "-0o17": -15,
    "0b11": 3,
    "0B11": 3,
    "-0b11": -3,
    "0x1F": 31,
    "0X1f": 31,
    "-0x1F": -31,
    "0x1e3": 483,
    "18446744073709551615": 2**64 - 1,
    "08": 8.0,
    "-08": -8.0,
    "0_8": 8.0,
    "09.5": 9.5,
    "1e3": 1000.0,
    "1E+3": 1000.0,
    "1e-3": 0.001,
    "12e03": 12000.0,
    "1234e56": 1.234e59,
    "1.": 1.0,
    "1.e2": 100.0,
    ".5": 0.5,
    ".5e1": 5.0,
    "-.5": -0.5,
    "+.5e3": 500.0,
    ".5_0": 0.5,
    "1_0.5": 10.5,
    "1e5_0": 1e50,
    "123456789012345678901234567890": 123456789012345678901234567890.0,
    "0777777777777777777777777": 7.777777777777778e23,
    ".inf": math.inf,
}


@pytest.mark.parametrize("text", TEXTS)
def test_a_scalar_that_is_a_text(text: str) -> None:
    assert document(f"a: {text}\n") == {"a": text}


@pytest.mark.parametrize("text", OTHERS)
def test_a_scalar_that_is_something_else(text: str) -> None:
    value, wanted = document(f"a: {text}\n")["a"], OTHERS[text]
    assert type(value) is type(wanted)
    assert value == wanted


@pytest.mark.parametrize("text", [*TEXTS, *OTHERS])
def test_quotes_make_a_text_of_each(text: str) -> None:
    assert document(f"a: '{text}'\n") == {"a": text}


_SCALARS = st.sampled_from([*TEXTS, *OTHERS]) | st.text("+-.0123456789_eExXoObB:", max_size=8)


_NUMBERS = st.booleans() | st.integers(-(1 << 63), (1 << 64) - 1) | st.floats(allow_nan=False)


@given(st.dictionaries(_SCALARS, _SCALARS | _NUMBERS))
def test_fuzz_what_is_written_is_read_again(content: dict[str, Any]) -> None:
    text = yaml.dump(content, Dumper=Dumper)
    assert document(text) == content
    (node,) = nodes(text)
    assert document(serialize(node)) == content


@given(_SCALARS)
def test_fuzz_any_scalar_has_a_tag(text: str) -> None:
    tag, value = read_scalar(text)
    kind = {"str": str, "int": int, "float": float, "bool": bool, "null": type(None), "merge": str}
    assert type(value) is kind[tag.rpartition(":")[2]]
