"""What README.md shows first is an HPA on metrics that are served."""

from __future__ import annotations

import yaml

from adapter.catalog import Catalog
from adapter.hpa import from_manifest
from tests.docs.pages import ROOT, Page

README = Page(ROOT / "README.md")


def test_the_manifest_is_an_hpa_on_metrics_that_are_served() -> None:
    manifest = yaml.safe_load(next(b.text for b in README.blocks if b.language == "yaml"))
    from_manifest(manifest)
    (metric,) = manifest["spec"]["metrics"]
    assert metric["pods"]["metric"]["name"] in Catalog().metrics
    assert "DCGM_FI_DEV_GPU_UTIL" in Catalog().metrics
