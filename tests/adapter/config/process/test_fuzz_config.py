"""Any settings file gives settings or one line for each mistake, and never a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from adapter.config.process.config import ConfigError, load
from tests.adapter.fuzzing import bent

GOOD = b"""\
source:
  kind: prometheus
  prometheus:
    url: http://prometheus:9090
    headers: {X-Scope-OrgID: "a"}
    interval: 15s
values: {window: 30s, age_limit: 75}
rules: {file: /etc/rules/config.yaml, prefer: catalogue}
sharing:
  policy: equal
metrics:
- {name: gpu_busiest, series: DCGM_FI_DEV_GPU_UTIL, unit: percent, kind: mean, combine: max}
"""
ODD = (
    b"!!int ''",
    b"9" * 5_000,
    b"!!float x",
    b"2001-99-99",
    b"<<: a",
    b"&a [*a]",
    b"!!set {a}",
    b"x" * 5_000,
)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("settings") / "config.yaml"


def mistakes(file: Path, content: bytes) -> list[str]:
    file.write_bytes(content)
    try:
        load(file, environ={})
    except ConfigError as error:
        return error.problems
    return []


def test_the_file_is_good(file: Path) -> None:
    assert mistakes(file, GOOD) == []


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_value_at_any_place_is_a_line(odd: bytes, file: Path) -> None:
    lines = GOOD.splitlines(keepends=True)
    for place, line in enumerate(lines):
        key = line.partition(b":")[0]
        texts = mistakes(
            file, b"".join([*lines[:place], key, b": ", odd, b"\n", *lines[place + 1 :]])
        )
        assert all("\n" not in text and len(text) < 1000 for text in texts)
        assert texts


def test_every_prefix_is_settings_or_lines(file: Path) -> None:
    for end in range(len(GOOD)):
        assert all("\n" not in text for text in mistakes(file, GOOD[:end]))


@given(content=bent([GOOD]))
def test_a_bent_file_is_settings_or_lines(file: Path, content: bytes) -> None:
    assert all("\n" not in text for text in mistakes(file, content))
