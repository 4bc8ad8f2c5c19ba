"""Options that are one number."""

from __future__ import annotations

import click
import pytest

from adapter.tools.client.amount import Amount
from tests.adapter.commandline import invoke


@pytest.mark.parametrize(("text", "number"), [("1", 1.0), ("2.5", 2.5), ("1e2", 100.0)])
def test_a_number_within_the_bounds_is_taken(text: str, number: float) -> None:
    assert Amount(1, 100).convert(text, None, None) == number


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "0.99", "101", "1e999", "", "x"])
def test_other_texts_name_the_bounds(text: str) -> None:
    with pytest.raises(click.BadParameter) as raised:
        Amount(1, 100).convert(text, None, None)
    assert raised.value.message == f"{text!r}: give a number from 1 to 100"


@pytest.mark.parametrize(
    ("command", "option"),
    [
        (("top", "pods"), "--interval"),
        (("migrate", "prometheus-adapter"), "--tolerance"),
        (("maintain", "certificates"), "--settle"),
    ],
)
def test_commands_refuse_nan(command: tuple[str, ...], option: str) -> None:
    done = invoke(*command, option, "nan")
    assert done.code == 2
    assert f"Invalid value for '{option}': 'nan': give a number from" in done.output
