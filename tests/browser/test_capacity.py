"""The capacity of each pool: what is free, and the largest pod that fits."""

from __future__ import annotations

import pytest

from tests.browser.conftest import Opener


def test_each_pool_says_what_is_free_and_what_fits(serve: Opener) -> None:
    page = serve("fresh").open("#/?map=pools")
    page.wait("document.querySelectorAll('#fleet-body tbody tr:not(.pad)').length === 4")
    assert page.text("#fleet-count") == "4 pools"
    rows = {row[0].split("\n")[0]: row for row in page.rows("fleet")}
    spare = [cell.split("\n") for cell in rows["l4-spare"]]
    assert spare[0][1] == "4 GPUs on 2 nodes, 1 busy without a pod"
    assert spare[1:4] == [["0", "busy"], ["0", "idle"], ["3", "free"]]
    assert spare[4] == ["2 gpu", "of 3 gpu left, 33% fragmented"]
    assert rows["h100-serving"][4].split("\n") == ["–", "no GPU is left for a pod"]
    held = rows["h100-serving"][5].split("\n")
    assert held[0] == "2 pods"
    assert held[1].startswith("Deployment/llm has 4 pods of 8: load for at most 5.8 pods")
    assert spare[5] == ["0 pods"]
    assert "(1 closed)" in rows["a100-batch"][0]


def test_the_filter_of_the_pool_narrows_the_capacity(serve: Opener) -> None:
    page = serve("fresh").open("#/?map=pools&pool=mig-lab")
    page.wait("document.querySelectorAll('#fleet-body tbody tr:not(.pad)').length === 1")
    assert page.text("#fleet-count") == "1 of 4 pools"


def test_the_button_opens_the_capacity_and_the_map_again(serve: Opener) -> None:
    page = serve("fresh").open()
    page.find("#fleet-tools button[data-value='pools']").click()
    page.wait("document.querySelector('#fleet-body table.pools')")
    assert page.js("location.hash") == "#/?map=pools"
    page.find("#fleet-tools button[data-value='']").click()
    page.wait("document.querySelector('#fleet-body canvas')")


@pytest.mark.parametrize("width", [1280, 360])
def test_nothing_is_wider_than_the_page(serve: Opener, width: int) -> None:
    page = serve("fresh").open("#/?map=pools", width=width)
    page.wait("document.querySelector('#fleet-body table.pools')")
    assert page.js("document.documentElement.scrollWidth") <= width
