"""Objects of a read-only resource: lists, single objects, and what is refused."""

from __future__ import annotations

import pytest

from apiservice.errors import Unavailable
from apiservice.identity import AccessDecision, Attributes, User
from apiservice.view.resource import Key
from tests.apiservice.view.conftest import Served
from tests.apiservice.view.things import BASE, GROUP, VERSION, Thing

USER = User("hpa", groups=("system:authenticated",))


def lamp(namespace: str, name: str, slots: int, app: str) -> dict[str, object]:
    return {
        "kind": "Lamp",
        "apiVersion": f"{GROUP}/{VERSION}",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{name}",
            "labels": {"app": app},
        },
        "slots": slots,
    }


async def test_a_list_has_the_objects_of_all_namespaces_sorted(served: Served) -> None:
    answer = await served.get("lamps")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == {
        "kind": "LampList",
        "apiVersion": f"{GROUP}/{VERSION}",
        "metadata": {"resourceVersion": "1767323050000"},
        "items": [
            lamp("ns", "desk", 1, "work"),
            lamp("ns", "floor", 2, "rest"),
            lamp("other", "desk", 3, "work"),
        ],
    }


async def test_a_list_of_one_namespace_shows_no_other(served: Served) -> None:
    answer = await served.get("namespaces/ns/lamps")
    assert [item["metadata"]["namespace"] for item in answer.json()["items"]] == ["ns", "ns"]
    assert (await served.get("namespaces/none/lamps")).json()["items"] == []


async def test_one_object_is_answered_without_a_list(served: Served) -> None:
    assert (await served.get("namespaces/ns/lamps/desk")).json() == lamp("ns", "desk", 1, "work")
    board = (await served.get("boards/b1")).json()
    assert board["metadata"]["labels"] == {"site": "west"}
    assert "slots" not in board, "a missing value is absent"


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("boards", Attributes("list", GROUP, VERSION, "boards")),
        ("boards?watch=true", Attributes("watch", GROUP, VERSION, "boards")),
        ("boards/b0", Attributes("get", GROUP, VERSION, "boards", name="b0")),
        ("lamps", Attributes("list", GROUP, VERSION, "lamps")),
        ("namespaces/ns/lamps", Attributes("list", GROUP, VERSION, "lamps", namespace="ns")),
        (
            "namespaces/ns/lamps/desk",
            Attributes("get", GROUP, VERSION, "lamps", name="desk", namespace="ns"),
        ),
        (
            "boards?fieldSelector=metadata.name%3Db0",
            Attributes("list", GROUP, VERSION, "boards", name="b0"),
        ),
        (
            "boards?fieldSelector=metadata.name!%3Db0",
            Attributes("list", GROUP, VERSION, "boards"),
        ),
        (
            "boards?fieldSelector=metadata.name%3Da%2Fb",
            Attributes("list", GROUP, VERSION, "boards"),
        ),
    ],
)
async def test_a_request_is_authorized_as_the_cluster_does(
    served: Served, path: str, wanted: Attributes
) -> None:
    await served.get(path)
    assert served.world.authorizer.asked == [(USER, wanted)]


async def test_who_may_not_read_does_not_learn_what_exists(served: Served) -> None:
    known = await served.get("namespaces/ns/lamps/desk", x_user="u")
    unknown = await served.get("namespaces/ns/lamps/none", x_user="u")
    assert known.status_code == unknown.status_code == 403
    assert known.json()["message"] == (
        f'lamps.{GROUP} "desk" is forbidden: User "u" cannot get resource "lamps" in API group '
        f'"{GROUP}" in the namespace "ns"'
    )
    assert not served.lamps.prepared


async def test_an_unknown_name_is_answered_with_the_nearest(served: Served) -> None:
    answer = await served.get("boards/b01")
    assert answer.status_code == 404
    assert answer.json() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f'boards.{GROUP} "b01" not found: did you mean "b0", "b1"?',
        "reason": "NotFound",
        "details": {"name": "b01", "group": GROUP, "kind": "boards"},
        "code": 404,
    }


async def test_only_names_next_to_an_unknown_one_are_compared_with_it(served: Served) -> None:
    served.boards.things = {Key("", f"a{number:03}"): Thing(1) for number in range(250)}
    served.boards.things |= {Key("", "Board-east"): Thing(1), Key("", "zz"): Thing(1)}
    answer = await served.get("boards/board-east")
    assert answer.json()["message"] == f'boards.{GROUP} "board-east" not found'
    del served.boards.things[Key("", "a249")]
    answer = await served.get("boards/board-east")
    assert answer.json()["message"].endswith('did you mean "Board-east"?')


async def test_the_nearest_names_are_of_the_same_namespace(served: Served) -> None:
    served.lamps.things[Key("other", "porch")] = Thing()
    answer = await served.get("namespaces/ns/lamps/porches")
    assert answer.json()["message"] == f'lamps.{GROUP} "porches" not found'
    answer = await served.get("namespaces/other/lamps/porches")
    assert answer.json()["message"].endswith('not found: did you mean "porch"?')


async def test_the_nearest_names_are_for_those_who_may_list(served: Served) -> None:
    listing = Attributes("list", GROUP, VERSION, "boards")
    served.world.authorizer.known[USER, listing] = AccessDecision(False)
    answer = await served.get("boards/b01")
    assert answer.json()["message"] == f'boards.{GROUP} "b01" not found'


async def test_an_object_that_goes_meanwhile_is_left_out(served: Served) -> None:
    served.boards.gone.add(Key("", "b0"))
    items = (await served.get("boards")).json()["items"]
    assert [item["metadata"]["name"] for item in items] == ["b1"]
    assert (await served.get("boards/b0")).status_code == 404


@pytest.mark.parametrize(
    "path",
    [
        "shelves",
        "shelves/x",
        "boards/b0/status",
        "namespaces/ns/boards",
        "namespaces/ns/boards/b0",
        "lamps/desk",
        "namespaces",
        "namespaces/ns",
        "namespaces//lamps",
    ],
)
async def test_a_path_of_no_resource_is_not_found(served: Served, path: str) -> None:
    answer = await served.get(path)
    assert answer.status_code == 404
    assert answer.json()["message"] == "the server could not find the requested resource"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "HEAD"])
async def test_nothing_but_get_is_allowed(served: Served, method: str) -> None:
    answer = await served.world.client.request(method, f"{BASE}/boards/b0")
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET"


async def test_a_watch_is_refused_with_what_to_do_instead(served: Served) -> None:
    answer = await served.get("lamps?watch=true&resourceVersion=1767323050000")
    assert answer.status_code == 405
    assert answer.json()["reason"] == "MethodNotAllowed"
    assert answer.json()["message"] == (
        f"watch is not supported on lamps.{GROUP}: its objects are computed when they are "
        'requested; repeat the list instead, as with "watch -n 5 kubectl get lamps"'
    )
    assert (await served.get("lamps?watch=false")).status_code == 200


async def test_data_that_was_never_read_is_unavailable(served: Served) -> None:
    served.boards.failure = Unavailable("the pods have not been listed yet")
    answer = await served.get("boards")
    assert answer.status_code == 503
    assert answer.json()["message"] == "the pods have not been listed yet"


@pytest.mark.parametrize("path", ["boards", "boards/b0"])
@pytest.mark.parametrize("query", ["pretty=true", "timeoutSeconds=5", "resourceVersion=0"])
async def test_options_without_effect_are_accepted(served: Served, path: str, query: str) -> None:
    assert (await served.get(f"{path}?{query}")).content == (await served.get(path)).content


@pytest.mark.parametrize(
    "query", ["pretty=x", "timeoutSeconds=x", "resourceVersion=x", "limit=x", "includeObject=x"]
)
async def test_options_that_do_not_parse_are_refused(served: Served, query: str) -> None:
    for path in ("boards", "boards/b0"):
        answer = await served.get(f"{path}?{query}")
        assert answer.status_code == 400, path
        assert query.partition("=")[0] in answer.json()["message"]


async def test_requests_are_counted_as_views(served: Served) -> None:
    await served.get("boards")
    await served.get("boards/none")
    text = (await served.world.client.get("/metrics")).text
    assert f'gma_http_requests_total{{code="200",route="view",version="{VERSION}"}} 1.0' in text
    assert f'gma_http_requests_total{{code="404",route="view",version="{VERSION}"}} 1.0' in text
