"""Texts of a page as valid label values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.pipeline.catalog import labelvalue
from adapter.pipeline.catalog.labelvalue import label_value
from apiservice.labels.selector import parse

CASES = {
    "NVIDIA H100 80GB HBM3": "NVIDIA-H100-80GB-HBM3",
    "Tesla T4": "Tesla-T4",
    "Aqua Vanjaram [Instinct MI325X VF]": "Aqua-Vanjaram-Instinct-MI325X-VF",
    "Intel(R) Data Center GPU Flex 140": "IntelR-Data-Center-GPU-Flex-140",
    "1g.5gb": "1g.5gb",
    "1g.10gb+me": "1g.10gb.me",
    "GPU-473571f2-fb37-ef7e-50fe-9885b74a23cd/8": "GPU-473571f2-fb37-ef7e-50fe-9885b74a23cd.8",
    "GPU-a4f34abc-7715-3560-dcea-7238b9611a45/MIG-24c6a0e5-fe28-53ac-9537-c4e23104f30f": (
        "MIG-24c6a0e5-fe28-53ac-9537-c4e23104f30f"
    ),
    "Qwen/Qwen2.5-0.5B-Instruct": "Qwen.Qwen2.5-0.5B-Instruct",
    "": "",
    "(!)": "",
}


@pytest.mark.parametrize(("text", "value"), CASES.items(), ids=CASES)
def test_a_text_becomes_a_valid_label_value(text: str, value: str) -> None:
    assert label_value(text) == value


@given(st.text())
def test_every_text_can_be_selected_and_a_valid_value_is_unchanged(text: str) -> None:
    value = label_value(text)
    assert parse(f"model={value}").matches({"model": value})
    assert label_value(value) == value


def test_only_short_texts_are_cached() -> None:
    before = labelvalue._remembered.cache_info().currsize
    label_value("x" * 10_000)
    assert labelvalue._remembered.cache_info().currsize == before
    for number in range(5000):
        label_value(f"GPU-{number}")
    assert labelvalue._remembered.cache_info().currsize <= 4096
