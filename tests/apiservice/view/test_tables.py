"""Tables, as kubectl asks for them, and the metadata alone."""

from __future__ import annotations

import pytest

from apiservice.errors import NotAcceptable
from apiservice.view.negotiation import negotiate
from apiservice.wire.accept import PLAIN, Form
from tests.apiservice.view.conftest import Served
from tests.apiservice.view.things import GROUP, VERSION

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
BETA = "application/json;as=Table;v=v1beta1;g=meta.k8s.io"
KUBECTL = f"{TABLE},{BETA},application/json"
INFORMER = (
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,"
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
)


@pytest.mark.parametrize(
    ("accept", "form"),
    {
        "": PLAIN,
        "*/*": PLAIN,
        "application/json": PLAIN,
        "application/vnd.kubernetes.protobuf, */*": PLAIN,
        KUBECTL: Form("Table", "v1", "meta.k8s.io"),
        BETA: Form("Table", "v1beta1", "meta.k8s.io"),
        "application/json;as=Table;v=v2;g=meta.k8s.io,application/json": PLAIN,
        "application/json;as=Table;v=v1;g=example.com,application/json": PLAIN,
        "application/json;as=Chair;v=v1;g=meta.k8s.io,application/json": PLAIN,
        f"application/json;q=0.5,{TABLE};q=0.9": Form("Table", "v1", "meta.k8s.io"),
        f"{TABLE};q=0,application/json": PLAIN,
        f"text/html,{TABLE}": Form("Table", "v1", "meta.k8s.io"),
        "APPLICATION/JSON;AS=Table;V=v1;G=meta.k8s.io": Form("Table", "v1", "meta.k8s.io"),
        INFORMER: Form("PartialObjectMetadataList", "v1", "meta.k8s.io"),
    }.items(),
)
def test_the_first_clause_that_can_be_served_decides(accept: str, form: Form) -> None:
    assert negotiate(accept.encode()) == form
    assert negotiate((accept + " " * 600).encode()) == form, "a long header is not cached"


@pytest.mark.parametrize("accept", ["text/html", "application/json;as=Table;v=v9;g=meta.k8s.io"])
def test_what_cannot_be_served_is_not_acceptable(accept: str) -> None:
    with pytest.raises(NotAcceptable):
        negotiate(accept.encode())


async def test_kubectl_gets_a_table(served: Served) -> None:
    answer = await served.get("boards", accept=KUBECTL)
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": "1767323050000"},
        "columnDefinitions": [
            {
                "name": "Name",
                "type": "string",
                "format": "name",
                "description": "The name of the object; it is unique in its namespace.",
                "priority": 0,
            },
            {
                "name": "Slots",
                "type": "integer",
                "format": "",
                "description": "The slots of the board.",
                "priority": 0,
            },
            {
                "name": "Serial",
                "type": "string",
                "format": "",
                "description": "The serial number.",
                "priority": 1,
            },
        ],
        "rows": [
            {
                "cells": ["b0", 4, "s-b0"],
                "object": {
                    "kind": "PartialObjectMetadata",
                    "apiVersion": "meta.k8s.io/v1",
                    "metadata": {"name": "b0", "labels": {"site": "east"}},
                },
            },
            {
                "cells": ["b1", "<none>", "s-b1"],
                "object": {
                    "kind": "PartialObjectMetadata",
                    "apiVersion": "meta.k8s.io/v1",
                    "metadata": {"name": "b1", "labels": {"site": "west"}},
                },
            },
        ],
    }


async def test_a_table_has_the_version_that_was_asked_for(served: Served) -> None:
    answer = (await served.get("boards", accept=BETA)).json()
    assert answer["apiVersion"] == "meta.k8s.io/v1beta1"
    assert answer["rows"][0]["object"]["apiVersion"] == "meta.k8s.io/v1beta1"


async def test_one_object_is_a_table_of_one_row(served: Served) -> None:
    answer = (await served.get("namespaces/ns/lamps/desk", accept=KUBECTL)).json()
    assert [row["cells"] for row in answer["rows"]] == [["desk", 1, "s-desk"]]
    assert answer["rows"][0]["object"]["metadata"]["namespace"] == "ns"


async def test_a_row_includes_the_object_where_it_is_asked_for(served: Served) -> None:
    answer = (await served.get("boards?includeObject=Object", accept=KUBECTL)).json()
    assert answer["rows"][0]["object"] == {
        "kind": "Board",
        "apiVersion": f"{GROUP}/{VERSION}",
        "metadata": {"name": "b0", "uid": "uid-b0", "labels": {"site": "east"}},
        "slots": 4,
    }
    answer = (await served.get("boards?includeObject=None", accept=KUBECTL)).json()
    assert answer["rows"][0]["object"] is None


async def test_an_error_is_a_status_and_not_a_table(served: Served) -> None:
    answer = await served.get("boards/none", accept=KUBECTL)
    assert answer.json()["kind"] == "Status"


async def test_metadata_can_be_asked_for_alone(served: Served) -> None:
    answer = (await served.get("boards", accept=INFORMER)).json()
    assert (answer["kind"], answer["apiVersion"]) == ("PartialObjectMetadataList", "meta.k8s.io/v1")
    assert answer["items"][0] == {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"name": "b0", "uid": "uid-b0", "labels": {"site": "east"}},
    }
    one = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    assert (await served.get("boards/b0", accept=one)).json() == answer["items"][0]


@pytest.mark.parametrize(
    ("path", "kind"),
    [("boards", "PartialObjectMetadata"), ("boards/b0", "PartialObjectMetadataList")],
)
async def test_metadata_of_the_other_kind_is_not_acceptable(
    served: Served, path: str, kind: str
) -> None:
    accept = f"application/json;as={kind};g=meta.k8s.io;v=v1"
    assert (await served.get(path, accept=accept)).status_code == 406
