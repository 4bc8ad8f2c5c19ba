"""Discovery and OpenAPI of read-only resources."""

from __future__ import annotations

from typing import Any

import msgspec

from apiservice.documents.openapi import OpenApi
from tests.apiservice.view.conftest import Served
from tests.apiservice.view.things import BASE, GROUP, VERSION, FakeViews

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


def references(node: Any) -> set[str]:
    if isinstance(node, dict):
        own = {node["$ref"]} if isinstance(node.get("$ref"), str) else set()
        return own.union(*map(references, node.values()))
    if isinstance(node, list):
        return set[str]().union(*map(references, node))
    return set()


def documents() -> tuple[Any, Any]:
    made = OpenApi([("custom.metrics.k8s.io", "v1beta2")], "0.1.0", FakeViews().group)
    return msgspec.json.decode(made.v2.body), msgspec.json.decode(made.v3[BASE[1:]].body)


def test_the_documents_hold_every_definition_they_name() -> None:
    v2, v3 = documents()
    assert references(v2) <= {f"#/definitions/{name}" for name in v2["definitions"]}
    schemas = v3["components"]["schemas"]
    assert references(v3) <= {f"#/components/schemas/{name}" for name in schemas}


def test_a_kind_is_found_with_its_fields_and_words() -> None:
    for schemas in (documents()[0]["definitions"], documents()[1]["components"]["schemas"]):
        found = schemas["com.example.view.v1alpha1.Lamp"]
        assert found[KIND] == [{"group": GROUP, "version": VERSION, "kind": "Lamp"}]
        assert found["description"] == "A lamp."
        assert list(found["properties"]) == ["apiVersion", "kind", "metadata", "parts", "slots"]
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
