"""Each settings key has an effect: code reads it, or a validator obeys it."""

from __future__ import annotations

import ast
import inspect
import textwrap
from typing import Final

import pytest
from pydantic import BaseModel

from tests.adapter.config.settings.reads import Finder, classes, fields, reads

OBEYED: Final = {
    ("PrometheusSettings", "plain_http"): "permits credentials that a validator refuses without it",
    ("DelegationSettings", "own_service"): "names the Service that a validator refuses",
}
"""Keys that only a validator reads, and what for."""


def test_every_key_is_read_by_code_outside_the_validators() -> None:
    assert set(fields(classes())) - reads() == OBEYED.keys()


@pytest.mark.parametrize(("owner", "key"), OBEYED)
def test_a_key_that_only_a_validator_reads_is_read_there(owner: str, key: str) -> None:
    source = inspect.getsource(classes()[owner])
    read = {node.attr for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute)}
    assert key in read


class Inner(BaseModel):
    interval: float = 1.0
    unread: float = 1.0


class Outer(BaseModel):
    inner: Inner = Inner()
    several: tuple[Inner, ...] = ()

    @property
    def first(self) -> Inner:
        return self.several[0]


READING: Final = {
    "def f(x: Outer): return x.inner.interval": {"inner", "interval"},
    "def f(x: Outer):\n own, y = x.inner, 1\n return own.interval": {"inner", "interval"},
    "def f(x: Outer): return [y.interval for y in x.several]": {"several", "interval"},
    "def f(x: Outer): return x.first.interval": {"interval"},
    "class A:\n def __init__(self, x: Inner):\n  self.y = x\n def f(self): self.y.interval": {
        "interval"
    },
    "def f(x: Outer): return g(**x.inner.model_dump())": {"inner", "interval", "unread"},
    "def f(x): return x.interval": set[str](),
    "def f(x: Other): return x.interval": set[str](),
}


@pytest.mark.parametrize("code", READING)
def test_reading_is_known_by_type_and_not_by_name(code: str) -> None:
    finder = Finder({"Inner": Inner, "Outer": Outer})
    module = ast.parse(textwrap.dedent(code))
    finder.learn(module)
    finder.read(module)
    assert {name for _, name in finder.found} == READING[code]
