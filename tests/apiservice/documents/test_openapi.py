"""OpenAPI documents are static, complete in themselves, and cached by their hash."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from apiservice.documents.openapi import OpenApi
from tests.apiservice.world import World

SERVED = [
    ("custom.metrics.k8s.io", "v1beta2"),
    ("custom.metrics.k8s.io", "v1beta1"),
    ("external.metrics.k8s.io", "v1beta1"),
]
V3 = "/openapi/v3/apis/custom.metrics.k8s.io/v1beta2"


def _references(node: Any) -> set[str]:
    if isinstance(node, dict):
        own = {node["$ref"]} if isinstance(node.get("$ref"), str) else set()
        return own.union(*map(_references, node.values()))
    if isinstance(node, list):
        return set[str]().union(*map(_references, node))
    return set()


def test_the_swagger_document_holds_every_definition_it_names() -> None:
    document = msgspec.json.decode(OpenApi(SERVED, "0.1.0").v2.body)
    assert document["swagger"] == "2.0"
    names = {f"#/definitions/{name}" for name in document["definitions"]}
    assert _references(document) <= names
    assert set(document["paths"]) == {
        "/apis/custom.metrics.k8s.io/v1beta1/namespaces/{namespace}/metrics/{metric}",
        "/apis/custom.metrics.k8s.io/v1beta1/namespaces/{namespace}/{resource}/{name}/{metric}",
        "/apis/custom.metrics.k8s.io/v1beta1/{resource}/{name}/{metric}",
        "/apis/custom.metrics.k8s.io/v1beta2/namespaces/{namespace}/metrics/{metric}",
        "/apis/custom.metrics.k8s.io/v1beta2/namespaces/{namespace}/{resource}/{name}/{metric}",
        "/apis/custom.metrics.k8s.io/v1beta2/{resource}/{name}/{metric}",
        "/apis/external.metrics.k8s.io/v1beta1/namespaces/{namespace}/{metric}",
    }


def test_every_operation_has_a_name_of_its_own() -> None:
    document = msgspec.json.decode(OpenApi(SERVED, "0.1.0").v2.body)
    names = [path["get"]["operationId"] for path in document["paths"].values()]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("group", "version", "kind", "window"),
    [
        ("custom.metrics.k8s.io", "v1beta1", "MetricValue", "window"),
        ("custom.metrics.k8s.io", "v1beta2", "MetricValue", "windowSeconds"),
        ("external.metrics.k8s.io", "v1beta1", "ExternalMetricValue", "window"),
    ],
)
def test_a_group_versions_document_describes_its_values(
    group: str, version: str, kind: str, window: str
) -> None:
    document = msgspec.json.decode(OpenApi(SERVED, "0.1.0").v3[f"apis/{group}/{version}"].body)
    assert document["openapi"] == "3.0.0"
    schemas = document["components"]["schemas"]
    assert _references(document) <= {f"#/components/schemas/{name}" for name in schemas}
    package = f"io.k8s.metrics.pkg.apis.{group.split('.', maxsplit=1)[0]}_metrics.{version}"
    assert window in schemas[f"{package}.{kind}"]["properties"]
    assert schemas[f"{package}.{kind}List"]["x-kubernetes-group-version-kind"] == [
        {"group": group, "kind": f"{kind}List", "version": version}
    ]


async def test_v2_is_not_sent_again_to_who_has_it(world: World) -> None:
    first = await world.get("/openapi/v2", accept="application/json")
    etag = first.headers["etag"]
    assert first.status_code == 200
    for tag in (etag, f"W/{etag}", f'"other", {etag}', "*"):
        again = await world.get("/openapi/v2", if_none_match=tag)
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", etag)
    assert (await world.get("/openapi/v2", if_none_match='"other"')).status_code == 200


async def test_v3_root_leads_to_documents_named_by_their_hash(world: World) -> None:
    root = (await world.get("/openapi/v3")).json()
    assert set(root["paths"]) == {f"apis/{group}/{version}" for group, version in SERVED}
    for name, entry in root["paths"].items():
        assert entry["serverRelativeURL"].startswith(f"/openapi/v3/{name}?hash=")
        response = await world.get(entry["serverRelativeURL"])
        assert response.status_code == 200
        assert response.headers["cache-control"] == "public, immutable"
        assert response.headers["expires"] == "Sat, 02 Jan 2027 03:04:10 GMT"
        assert response.json()["openapi"] == "3.0.0"


async def test_a_wrong_hash_leads_to_the_right_one(world: World) -> None:
    response = await world.get(f"{V3}?hash=OLD")
    root = (await world.get("/openapi/v3")).json()
    right = root["paths"]["apis/custom.metrics.k8s.io/v1beta2"]["serverRelativeURL"]
    assert (response.status_code, response.headers["location"]) == (301, right)


async def test_without_a_hash_nothing_is_kept_for_ever(world: World) -> None:
    response = await world.get(V3)
    assert response.status_code == 200
    assert "immutable" not in response.headers["cache-control"]
    assert "expires" not in response.headers


def test_a_document_is_the_same_in_every_process() -> None:
    """Two replicas must agree on the hash, or the aggregator would fetch for ever."""
    assert OpenApi(SERVED, "0.1.0").v2.hash == OpenApi(SERVED, "0.1.0").v2.hash
    assert OpenApi(SERVED, "0.1.0").v2.hash != OpenApi(SERVED, "0.2.0").v2.hash
