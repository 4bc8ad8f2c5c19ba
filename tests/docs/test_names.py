"""What documents name exists: pages, headings, settings, values, variables, metrics."""

from __future__ import annotations

import pytest

from tests.docs import names
from tests.docs.pages import ROOT, Page, pages

every_page = pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)


@every_page
def test_every_link_leads_somewhere(page: Page) -> None:
    broken = []
    for link in page.links:
        path, _, anchor = link.partition("#")
        target = (page.path.parent / path).resolve() if path else page.path
        if not target.exists() or (anchor and anchor not in Page(target).anchors):
            broken.append(link)
    assert broken == []


@every_page
def test_every_name_in_backticks_exists(page: Page) -> None:
    assert names.unknown(page) == []


def test_every_page_can_be_found_from_the_index() -> None:
    """The recipes by their own one."""
    docs = ROOT / "docs"
    indexes = [Page(docs / "README.md"), Page(docs / "recipes" / "README.md")]
    linked = {
        (index.path.parent / link.partition("#")[0]).resolve()
        for index in indexes
        for link in index.links
    }
    here = {page.path for page in pages() if page.path.is_relative_to(docs)}
    assert here - linked - {indexes[0].path} == set()


@pytest.mark.parametrize(
    ("code", "exists"),
    [
        ("values.window", True),
        ("values.windows", False),
        ("source.prometheus.auth.kind", True),
        ("auth.kind", True),
        ("limits.quantile", True),
        ("limits.quantiles", False),
        ("sharing.rules", True),
        ("nodepool.priorityClass.create", True),
        ("config.values.window", True),
        ("spec.maxReplicas", True),
        ("external.metrics.k8s.io", True),
        ("GMA_VALUES__WINDOW", True),
        ("GMA_VALUES__WINDO", False),
        ("gma_rejects_total", True),
        ("gma_rejected_total", False),
        ("gma_scrape_duration_seconds_bucket", True),
        ("gpu_utilization", True),
        ("gpu_utilisation", False),
        ("DCGM_FI_DEV_GPU_UTIL", True),
        ("DCGM_FI_DEV_GPU_USE", False),
        ("DCGM_FI_PROF_*", True),
    ],
)
def test_the_inventory_knows(code: str, exists: bool) -> None:
    page = Page(ROOT / "README.md")
    page.__dict__["prose"] = f"`{code}`"
    assert (names.unknown(page) == []) is exists
