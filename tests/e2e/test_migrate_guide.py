"""docs/migrate-from-prometheus-adapter.md, command by command, while HPAs and other clients ask."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import Page
from tests.e2e.cluster import HPAS
from tests.e2e.migration import PAGE
from tests.e2e.process import wait_until
from tests.e2e.shopstage import (
    GROUPS,
    OURS,
    SPACE,
    THEIRS,
    Shop,
    clients,
    failures,
    opened,
    peers,
    reads,
    refused,
    wait_scaling,
)
from tests.e2e.site import Site
from tests.e2e.traffic import Traffic

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(1200)]


@pytest.fixture
def shop(site: Site, tmp_path: Path) -> Iterator[Shop]:
    """The reader of the guide."""
    with opened(site, tmp_path, Page(PAGE)) as made:
        yield made


def test_the_guide_refuses_no_request_on_the_way_there_and_back(shop: Shop) -> None:
    site = shop.site
    rows = {f"v1beta1.{group}" for group in GROUPS}
    assert shop.owners() == dict.fromkeys(rows, THEIRS)
    complained = failures(site)
    with Traffic(clients(site)) as traffic:
        traffic.wait_more(10)
        report = shop.follow("First look")
        assert "3 rules taken over" in report
        shop.follow("Install beside prometheus-adapter")
        compared = shop.follow("Compare the values")
        assert compared.count(" equal") == 3, compared
        assert shop.owners() == dict.fromkeys(rows, THEIRS)

        shop.follow("Move the APIServices")
        moved = shop.owners()
        assert moved == dict.fromkeys({*rows, "v1beta2.custom.metrics.k8s.io"}, OURS)
        traffic.wait_more(10)
        shop.follow("Uninstall prometheus-adapter")
        assert shop.owners() == moved
        wait_until(lambda: not peers(site), "prometheus-adapter's pod is gone", 120)
        # Longer than the HPA controller remembers discovery.
        traffic.wait_more(150, "pods")
        assert "web-" in site.kubectl("top", "pods", f"--namespace={SPACE}").stdout
        assert "gpu-a" in site.kubectl("top", "nodes").stdout
        wait_scaling(site)

        install, back, afterwards = shop.section("Go back")
        shop.run(install)
        wait_until(lambda: reads(site), "prometheus-adapter has read its series", 120)
        shop.run(back)
        assert shop.owners() == dict.fromkeys(rows, THEIRS)
        traffic.wait_more(150, "pods")
        wait_scaling(site)
        assert refused(traffic) == []
        assert failures(site) == complained
    # prometheus-adapter's own upgrade, for which the guide promises nothing.
    shop.run(afterwards)
    assert shop.owners() == dict.fromkeys(rows, THEIRS)
    wait_scaling(site)
    assert site.admin.get(f"{HPAS.format(ns=SPACE)}/web")["status"]["currentReplicas"] == 2
