"""Discovery and OpenAPI of read-only resources."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from apiservice.documents.openapi import OpenApi
from apiservice.provider import MetricResource
from apiservice.view.resource import ServedResource, ViewGroup
from tests.apiservice.view.conftest import Served
from tests.apiservice.view.things import BASE, BOARDS, GROUP, LAMPS, VERSION, FakeViews
from tests.apiservice.world import POD

KIND = "x-kubernetes-group-version-kind"


async def test_the_resources_are_discovered(served: Served) -> None:
    answer = (await served.get("")).json()
    assert answer["groupVersion"] == f"{GROUP}/{VERSION}"
    assert answer["resources"] == [
        {
            "name": "boards",
            "singularName": "board",
            "namespaced": False,
            "kind": "Board",
            "verbs": ["get", "list"],
            "shortNames": [],
            "categories": ["hardware"],
        },
        {
            "name": "lamps",
            "singularName": "lamp",
            "namespaced": True,
            "kind": "Lamp",
            "verbs": ["get", "list"],
            "shortNames": ["lp"],
            "categories": [],
        },
    ]
    groups = (await served.world.get("/apis")).json()["groups"]
    assert [group["name"] for group in groups][-1] == GROUP
    group = (await served.world.get(f"/apis/{GROUP}")).json()
    assert group["preferredVersion"] == {"groupVersion": f"{GROUP}/{VERSION}", "version": VERSION}
    index = (await served.world.get("/")).json()["paths"]
    assert {f"/apis/{GROUP}", BASE, f"/openapi/v3{BASE}"} <= set(index)


def test_a_name_stands_for_one_thing() -> None:
    """kubectl refuses ``get board NAME`` if board is also a category."""
    views = FakeViews()
    category = replace(BOARDS, categories=("board",))
    short = replace(LAMPS, short_names=("board",))
    with pytest.raises(ValueError, match="several resources or categories: board"):
        ViewGroup(GROUP, VERSION, (ServedResource(category, views.boards),))
    with pytest.raises(ValueError, match="several resources or categories: board"):
        ViewGroup(
            GROUP,
            VERSION,
            (ServedResource(BOARDS, views.boards), ServedResource(short, views.lamps)),
        )


def references(node: Any) -> set[str]:
    if isinstance(node, dict):
        own = {node["$ref"]} if isinstance(node.get("$ref"), str) else set()
        return own.union(*map(references, node.values()))
    if isinstance(node, list):
        return set[str]().union(*map(references, node))
    return set()


def documents() -> tuple[Any, Any]:
    made = OpenApi([("custom.metrics.k8s.io", "v1beta2")], "0.1.0", [FakeViews().group])
    return msgspec.json.decode(made.v2.body), msgspec.json.decode(made.v3[BASE[1:]].body)


def test_the_documents_hold_every_definition_they_name() -> None:
    v2, v3 = documents()
    assert references(v2) <= {f"#/definitions/{name}" for name in v2["definitions"]}
    schemas = v3["components"]["schemas"]
    assert references(v3) <= {f"#/components/schemas/{name}" for name in schemas}


def test_a_kind_is_found_with_its_fields_and_words() -> None:
    for schemas in (documents()[0]["definitions"], documents()[1]["components"]["schemas"]):
        schema = schemas["com.example.view.v1alpha1.Lamp"]
        assert schema[KIND] == [{"group": GROUP, "version": VERSION, "kind": "Lamp"}]
        assert schema["description"] == "A lamp."
        assert list(schema["properties"]) == ["apiVersion", "kind", "metadata", "parts", "slots"]
        listed = schemas["com.example.view.v1alpha1.LampList"]
        assert listed[KIND] == [{"group": GROUP, "version": VERSION, "kind": "LampList"}]


def test_each_path_is_described() -> None:
    for document in documents():
        own = {path: item for path, item in document["paths"].items() if path.startswith(BASE)}
        assert {
            path.removeprefix(BASE): item["get"]["x-kubernetes-action"]
            for path, item in own.items()
        } == {
            "/boards": "list",
            "/boards/{name}": "get",
            "/lamps": "list",
            "/namespaces/{namespace}/lamps": "list",
            "/namespaces/{namespace}/lamps/{name}": "get",
        }
        names = [item["get"]["operationId"] for item in document["paths"].values()]
        assert len(set(names)) == len(names)


V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
V2BETA1 = V2.replace("v=v2", "v=v2beta1")


@pytest.mark.parametrize(
    ("accept", "version"),
    [
        (V2, "v2"),
        (f"{V2},{V2BETA1}", "v2"),
        (V2BETA1, "v2beta1"),
        (f"{V2},{V2BETA1},application/json", "v2"),
    ],
)
async def test_aggregated_discovery_lists_every_group(
    served: Served, accept: str, version: str
) -> None:
    answer = await served.world.get("/apis", accept=accept)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == V2.replace("v=v2", f"v={version}")
    document = answer.json()
    assert document["kind"] == "APIGroupDiscoveryList"
    assert document["apiVersion"] == f"apidiscovery.k8s.io/{version}"
    versions = {
        (item["metadata"]["name"], entry["version"]): entry["resources"]
        for item in document["items"]
        for entry in item["versions"]
    }
    assert list(versions) == [
        ("custom.metrics.k8s.io", "v1beta2"),
        ("custom.metrics.k8s.io", "v1beta1"),
        ("external.metrics.k8s.io", "v1beta1"),
        (GROUP, VERSION),
    ]
    assert versions[GROUP, VERSION][1] == {
        "resource": "lamps",
        "responseKind": {"group": GROUP, "version": VERSION, "kind": "Lamp"},
        "scope": "Namespaced",
        "singularResource": "lamp",
        "verbs": ["get", "list"],
        "shortNames": ["lp"],
        "categories": [],
    }
    (pods, *_) = versions["custom.metrics.k8s.io", "v1beta2"]
    kind = {"group": "custom.metrics.k8s.io", "version": "v1beta2", "kind": "MetricValueList"}
    assert pods == {
        "resource": "pods",
        "responseKind": {"group": "", "version": "", "kind": ""},
        "scope": "Namespaced",
        "singularResource": "",
        "verbs": [],
        "subresources": [
            {"subresource": "gpu_utilization", "responseKind": kind, "verbs": ["get"]}
        ],
    }


async def test_aggregated_discovery_is_cached_until_a_resource_changes(served: Served) -> None:
    first = await served.world.get("/apis", accept=V2)
    etag = first.headers["etag"]
    assert (await served.world.get("/apis", accept=V2, if_none_match=etag)).status_code == 304
    rows = served.world.custom.rows
    rows.append(MetricResource(POD, "gpu_memory", namespaced=True))
    changed = await served.world.get("/apis", accept=V2, if_none_match=etag)
    assert changed.status_code == 200
    assert "gpu_memory" in changed.text


@pytest.mark.parametrize("accept", ["application/json", "*/*", f"application/json,{V2}"])
async def test_plain_discovery_stays_for_those_who_prefer_it(served: Served, accept: str) -> None:
    answer = await served.world.get("/apis", accept=accept)
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["kind"] == "APIGroupList"


async def test_only_the_groups_have_an_aggregated_form(served: Served) -> None:
    for path in (f"/apis/{GROUP}", BASE, "/version"):
        assert (await served.world.get(path, accept=V2)).status_code == 406
