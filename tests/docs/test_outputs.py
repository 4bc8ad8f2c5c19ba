"""The outputs that documents show are those of the tools; see tests/docs/outputs.py."""

from __future__ import annotations

import pytest

from adapter.answers.view.gpuhistories import GPUHISTORIES
from adapter.answers.view.gpunodes import GPUNODES
from adapter.answers.view.gpupods import GPUPODS
from adapter.answers.view.gpupools import GPUPOOLS
from adapter.answers.view.gpus import GPUS
from adapter.answers.view.gpuworkloads import GPUWORKLOADS
from tests.docs import outputs
from tests.docs.outputs import Shown
from tests.docs.pages import ROOT, Page, pages

SHOWN = outputs.shown()


@pytest.mark.parametrize("shown", SHOWN, ids=[f"{shown.page}: {shown.name}" for shown in SHOWN])
def test_an_output_is_what_the_tool_prints(shown: Shown) -> None:
    assert shown.text == outputs.output(shown.name), "run `python -m tests.docs.outputs`"


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_every_mark_has_a_block(page: Page) -> None:
    assert outputs.marked(page.text) == sum(shown.page == page.name for shown in SHOWN)


@pytest.mark.parametrize("name", ["troubleshooting", "explain", "idle", "replay", "top"])
def test_every_text_block_of_a_tools_page_is_an_output(name: str) -> None:
    page = Page(ROOT / "docs" / f"{name}.md")
    blocks = [block for block in page.blocks if block.language in ("text", "console")]
    assert len(blocks) == outputs.marked(page.text) > 0


def test_every_output_is_shown() -> None:
    assert set(outputs.OTHERS) <= {shown.name for shown in SHOWN}


def test_the_lines_about_a_check_end_with_the_next_check_or_section() -> None:
    text = outputs.doctor("GMA008")
    assert text.splitlines()[0].endswith("GMA008 expected: the API server reaches the metrics APIs")
    assert text.count("GMA0") == 1
    assert "$ kubectl -n gpu-metrics" in text


def test_the_list_of_columns_has_those_that_kubectl_prints() -> None:
    columns = [
        f"- {column.name.upper()}{' (wide)' if column.wide else ''}: {column.description}"
        for resource in (GPUS, GPUNODES, GPUPOOLS, GPUPODS, GPUWORKLOADS, GPUHISTORIES)
        for column in resource.columns
    ]
    page = (ROOT / "docs" / "view.md").read_text(encoding="utf-8").partition("\n## Columns\n")[2]
    assert [line for line in page.splitlines() if line.startswith("- ")] == columns
