"""docs/quickstart-kind.md, command by command: simulated GPUs, and a real HPA that scales."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import pytest

from tests.docs.pages import ROOT, Page
from tests.e2e.exporter import Health
from tests.e2e.process import FailedError, wait_until
from tests.e2e.site import Site

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1800)]

PAGE = Page(ROOT / "docs" / "quickstart-kind.md")
MACHINE = ("docker ", "kind ")
"""Programs that make a cluster and bring our image onto it: the site is one that has it."""


@pytest.fixture
def bare(site: Site) -> Iterator[Site]:
    """The site, whose own exporters say nothing."""
    for exporter in site.exporters.values():
        exporter.health = Health.EMPTY
    yield site
    for exporter in site.exporters.values():
        exporter.health = Health.WELL


def test_every_command_gives_the_documented_output(bare: Site) -> None:
    """Commands run as they stand; what a page shows comes, but for times and ages."""
    shown = 0
    for block in PAGE.blocks:
        if block.language == "sh":
            lines = [line for line in block.text.splitlines() if not line.startswith(MACHINE)]
            bare.shell("\n".join(lines))
        elif block.language == "console":
            prompt, _, output = block.text.partition("\n")
            _wait_output(bare, prompt.removeprefix("$ "), output)
            shown += 1
    assert shown == 3


def _wait_output(site: Site, command: str, output: str) -> None:
    last = ""

    def same() -> bool:
        nonlocal last
        try:
            last = site.shell(command)
        except FailedError as error:  # not yet: a pod without a value is 404
            last = str(error)
        return _timeless(last) == _timeless(output)

    try:
        wait_until(same, f"`{command}` says what the page says", 400, every=1.0)
    except AssertionError as error:
        raise AssertionError(f"{error}; it said {shlex.quote(last)}") from None


def _timeless(text: str) -> str:
    """A text without timestamps, ages (the last column) and the blanks of columns."""
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:]+Z", "TIME", text)
    text = re.sub(r"(?<= )(?:\d+[dhms])+$", "AGE", text, flags=re.MULTILINE)
    return re.sub(r"[ \n]+", " ", text).strip()
