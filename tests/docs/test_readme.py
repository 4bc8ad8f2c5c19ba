"""README.md shows an HPA on metrics that are served, and the commands of the quick start."""

from __future__ import annotations

import yaml

from adapter.hpa import from_manifest
from adapter.pipeline.catalog import Catalog
from tests.docs.commands import commands
from tests.docs.pages import ROOT, Page

README = Page(ROOT / "README.md")


def test_the_manifest_is_an_hpa_on_metrics_that_are_served() -> None:
    manifest = yaml.safe_load(next(b.text for b in README.blocks if b.language == "yaml"))
    from_manifest(manifest)
    (metric,) = manifest["spec"]["metrics"]
    assert metric["pods"]["metric"]["name"] in Catalog().metrics
    assert "DCGM_FI_DEV_GPU_UTIL" in Catalog().metrics


def test_the_steps_for_a_test_cluster_are_those_of_the_quick_start() -> None:
    """tests/e2e/test_quickstart_kind.py runs those; the README leaves waiting and output out."""
    (block,) = (b for b in README.blocks if b.language == "sh" and "kind create" in b.text)
    page = [str(c) for c in commands(Page(ROOT / "docs" / "quickstart-kind.md"))]
    *steps, last = [str(c) for c in commands(README) if c.block == block]
    assert last == "kubectl get hpa inference --watch"
    places = [page.index(step) for step in steps]
    assert places == sorted(places)
    assert len(steps) == 8
