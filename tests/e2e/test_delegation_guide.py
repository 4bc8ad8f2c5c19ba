"""docs/delegation.md, command by command, while HPAs and other clients ask."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs.blocks import Kind, kind
from tests.docs.pages import ROOT, Page
from tests.e2e.apiservice import NAMESPACE, ensure_namespace
from tests.e2e.controlplane import ControlPlane
from tests.e2e.shopstage import (
    GROUPS,
    OURS,
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

PAGE = Page(ROOT / "docs" / "delegation.md")
MOVED = "v1beta1.custom.metrics.k8s.io"


@pytest.fixture
def shop(site: Site, tmp_path: Path) -> Iterator[Shop]:
    """The reader of the guide, with the values of the page, and a KEDA that does not answer."""
    with opened(site, tmp_path, PAGE) as made:
        (tmp_path / "values.yaml").write_text(yaml.safe_dump(_values(site)))
        # The page mounts the CA of KEDA's server.
        ensure_namespace(site.admin, NAMESPACE)
        meta = {"name": "keda-ca", "namespace": NAMESPACE}
        data = {"ca.crt": _pem(site.plane)}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": data}
        site.admin.create(secret)
        yield made


def _values(site: Site) -> dict[str, Any]:
    """The page's values, and the addresses: the site has no DNS."""
    (block,) = [
        block for block in PAGE.blocks if block.language == "yaml" and kind(block) is Kind.VALUES
    ]
    chart_values: dict[str, Any] = yaml.safe_load(block.text)
    (peer,) = peers(site)
    theirs, keda = chart_values["config"]["delegation"]["delegates"]
    theirs["address"] = f"{peer.address}:6443"
    keda["address"] = f"{peer.address}:1"
    return chart_values


def _pem(plane: ControlPlane) -> str:
    return Path(plane.ca.cert).read_text()


def test_hpas_keep_their_metrics_while_their_server_becomes_a_delegate_and_back(shop: Shop) -> None:
    site = shop.site
    complained = failures(site)
    install, look, point, back = shop.section("Move an APIService, and back")
    shop.run(install)
    before = yaml.safe_load(shop.run(look))
    assert before["service"]["name"] == "prometheus-adapter"
    asking = clients(site)
    with Traffic(asking) as traffic:
        traffic.wait_more(10)
        shop.run(point)
        assert shop.owners()[MOVED] == OURS
        traffic.wait_more(100)
        wait_scaling(site)
        # Ours has no such metric: the delegate answered.
        listed = site.admin.get("/apis/custom.metrics.k8s.io/v1beta1")["resources"]
        names = {row["name"] for row in listed}
        assert {"pods/gpu_utilization", "pods/http_requests_per_second"} <= names
        shop.run(back)
        assert shop.owners() == {f"v1beta1.{group}": THEIRS for group in GROUPS}
        traffic.wait_more(50)
        assert reads(site)
        assert refused(traffic) == []
        assert failures(site) == complained
    after = yaml.safe_load(shop.run(look))
    assert {key: text for key, text in after.items() if key != "caBundle"} == before
