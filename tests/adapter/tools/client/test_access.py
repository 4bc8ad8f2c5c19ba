"""The tools' access to a cluster: lists in pages, names, and one-line failures."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from adapter.tools.client.access import Api, cluster
from adapter.tools.client.errors import VIEW, ClientError, MissingRight, grant, missing_right
from adapter.tools.client.naming import read_named, read_named_in_cluster
from tests.adapter.clientapi import ApiServer, api_server, forbidden, status_of, table_row
from tests.apiservice.kubeapi import kubeconfig, write

PODS = f"{VIEW}/namespaces/chat/gpupods"


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[tuple[ApiServer, Path]]:
    with api_server(tmp_path) as server_and_file:
        yield server_and_file


def rows(count: int, namespace: str = "chat") -> list[dict[str, Any]]:
    return [{"metadata": {"name": f"llm-{i}", "namespace": namespace}} for i in range(count)]


async def failure(path: Path, request: Any) -> ClientError:
    async with cluster(path) as api:
        with pytest.raises(ClientError) as caught:
            await request(api)
    assert "\n" not in str(caught.value)
    return caught.value


async def test_a_list_is_read_in_pages_of_500(lab: tuple[ApiServer, Path]) -> None:
    server, file = lab
    server.answers[PODS] = rows(1201)
    async with cluster(file) as api:
        pods = await api.list(PODS, labels="", fields="")
    assert [row["metadata"]["name"] for row in pods] == [f"llm-{i}" for i in range(1201)]
    assert [line.partition("?")[2] for line in server.asked] == [
        "limit=500",
        "limit=500&continue=500",
        "limit=500&continue=1000",
    ]


async def test_a_list_that_never_ends_is_left(lab: tuple[ApiServer, Path]) -> None:
    server, file = lab
    server.answers[PODS] = (200, {"metadata": {"continue": "x"}, "items": []})
    error = await failure(file, lambda api: api.list(PODS))
    assert "the list does not end after 0 objects" in str(error)
    assert len(server.asked) == 1


async def test_a_list_of_too_many_objects_is_left(
    lab: tuple[ApiServer, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apiservice.kube.pages._MOST_OBJECTS", 10)
    monkeypatch.setattr("adapter.tools.client.access._PAGE", 4)
    server, file = lab
    server.answers[PODS] = rows(100)
    error = await failure(file, lambda api: api.list(PODS))
    assert "the list does not end after 12 objects" in str(error)
    assert len(server.asked) == 3


async def test_a_server_that_does_not_answer_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adapter.tools.client.access.TIMEOUT", 0.2)
    writers: list[asyncio.StreamWriter] = []
    silent = await asyncio.start_server(lambda _, writer: writers.append(writer), "127.0.0.1", 0)
    url = f"http://127.0.0.1:{silent.sockets[0].getsockname()[1]}"
    async with silent:
        error = await failure(write(tmp_path, kubeconfig(url)), lambda api: api.list(PODS))
        for writer in writers:
            writer.close()
    assert url in str(error)
    assert "no answer in time" in str(error)


async def test_selectors_are_sent(lab: tuple[ApiServer, Path]) -> None:
    server, file = lab
    server.answers[PODS] = rows(1)
    async with cluster(file) as api:
        await api.list(PODS, labels="app=llm,tier in (a, b)", fields="node=n1")
    assert server.asked == [
        f"GET {PODS}?limit=500&labelSelector=app=llm,tier+in+(a,+b)&fieldSelector=node=n1"
    ]


async def test_a_malformed_selector_is_to_be_corrected(lab: tuple[ApiServer, Path]) -> None:
    server, file = lab
    text = "unable to parse requirement: found '', expected: identifier after ("
    server.always = (400, status_of(400, text, "BadRequest"))
    error = await failure(file, lambda api: api.table("/api/v1/pods", labels="app in ("))
    assert "expected: identifier after (" in str(error)
    assert "; correct the label selector 'app in ('," in str(error)
    assert "try again later" not in str(error)


async def test_the_namespace_is_the_contexts_unless_one_is_named(
    lab: tuple[ApiServer, Path],
) -> None:
    _, file = lab
    async with cluster(file) as api:
        assert api.namespace == "chat"
    async with cluster(file, namespace="prod") as api:
        assert api.namespace == "prod"


APPLY = "--dry-run=client -o yaml | kubectl apply -f -"


async def test_a_missing_right_names_the_right_the_user_and_the_grant(
    lab: tuple[ApiServer, Path],
) -> None:
    server, file = lab
    server.answers[PODS] = forbidden("jane@example.com", "list", "gpupods", VIEW[6:-9], "chat")
    error = await failure(file, lambda api: api.list(PODS))
    assert error.status == 403
    assert error.brief == (
        "jane@example.com may not list gpupods.view.gpu-metrics-adapter.io in namespace chat; an "
        "administrator grants it with `kubectl create role "
        "get-list-gpupods.view.gpu-metrics-adapter.io -n chat --verb=get,list "
        "--resource=gpupods.view.gpu-metrics-adapter.io --dry-run=client -o yaml | kubectl apply "
        "-f - && kubectl create rolebinding "
        "get-list-gpupods.view.gpu-metrics-adapter.io-jane-example.com -n chat "
        "--role=get-list-gpupods.view.gpu-metrics-adapter.io --user=jane@example.com "
        "--dry-run=client -o yaml | kubectl apply -f -`"
    )
    all_rights = "docs/rights.md lists the rights of each command"
    place = f"; server: {server.url} (kubeconfig {file}, context lab); {all_rights}"
    assert str(error).endswith(place)


@pytest.mark.parametrize(
    ("user", "resource", "group", "namespace", "command"),
    [
        (
            "system:serviceaccount:ops:tool",
            "nodes",
            "",
            "",
            (
                "kubectl create clusterrole get-list-nodes --verb=get,list --resource=nodes "
                f"{APPLY} && kubectl create clusterrolebinding "
                "get-list-nodes-system-serviceaccount-ops-tool --clusterrole=get-list-nodes "
                f"--serviceaccount=ops:tool {APPLY}"
            ),
        ),
        (
            "jane's; rm -rf /",  # prose: ignore
            "events",
            "",
            "chat",
            (
                "kubectl create role get-list-events -n chat --verb=get,list --resource=events "
                f"{APPLY} && kubectl create rolebinding get-list-events-jane-s-rm--rf -n chat "
                f"--role=get-list-events --user='jane'\"'\"'s; rm -rf /' {APPLY}"
            ),
        ),
    ],
)
def test_the_grant_can_be_pasted(
    user: str, resource: str, group: str, namespace: str, command: str
) -> None:
    _, answer = forbidden(user, "list", resource, group, namespace)
    right = missing_right(answer["message"])
    assert right is not None
    assert grant(right) == command


@pytest.mark.parametrize(
    ("user", "namespace", "kind", "subject"),
    [
        ("jane's", "chat", "Role", {"kind": "User", "name": "jane's"}),  # prose: ignore
        (
            "system:serviceaccount:ops:tool",
            "",
            "ClusterRole",
            {"kind": "ServiceAccount", "name": "tool", "namespace": "ops"},
        ),
    ],
)
def test_the_grant_of_a_metric_is_a_manifest(
    user: str, namespace: str, kind: str, subject: dict[str, str]
) -> None:
    """kubectl create role refuses resources that discovery lists only with their metrics."""
    right = MissingRight(user, "get", "pods/gpu", "custom.metrics.k8s.io", namespace)
    echo, manifest, *rest = shlex.split(grant(right))
    assert (echo, rest) == ("echo", ["|", "kubectl", "apply", "-f", "-"])
    role, binding = json.loads(manifest)["items"]
    assert [role["kind"], binding["kind"]] == [kind, f"{kind}Binding"]
    assert role["rules"][0]["resources"] == ["pods/gpu"]
    assert binding["subjects"][0].items() >= subject.items()
    assert role["metadata"].get("namespace", "") == namespace


async def test_a_403_that_is_not_of_rbac_keeps_its_text(lab: tuple[ApiServer, Path]) -> None:
    server, file = lab
    server.answers[PODS] = (403, status_of(403, "blocked by the proxy"))
    error = await failure(file, lambda api: api.list(PODS))
    assert "403 blocked by the proxy; server: " in str(error)
    assert "RBAC" in str(error)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (404, status_of(404, "the server could not find the requested resource", "NotFound")),
        (404, b"404 page not found\n"),
    ],
)
async def test_a_missing_view_api_names_the_next_step(
    status: int, body: Any, lab: tuple[ApiServer, Path]
) -> None:
    server, file = lab
    server.answers[PODS] = (status, body)
    error = await failure(file, lambda api: api.list(PODS))
    assert error.status == status
    assert str(error).startswith(
        f"the cluster does not serve view.gpu-metrics-adapter.io ({status} "
    )
    assert "kubectl get apiservice v1alpha1.view.gpu-metrics-adapter.io" in str(error)


@pytest.mark.parametrize("status", [502, 503, 504])
async def test_a_view_api_that_does_not_answer_is_not_missing(
    status: int, lab: tuple[ApiServer, Path]
) -> None:
    server, file = lab
    server.answers[PODS] = (status, b"service unavailable\n")
    error = await failure(file, lambda api: api.list(PODS))
    assert str(error).startswith(
        f"view.gpu-metrics-adapter.io is registered and does not answer ({status} "
    )
    assert "not installed" not in str(error)


async def test_an_answer_that_is_not_an_object_is_not_from_an_api_server(
    lab: tuple[ApiServer, Path],
) -> None:
    server, file = lab
    for body in (b"<html>", [1], b"\xff"):
        server.answers[PODS] = (200, body)
        error = await failure(file, lambda api: api.get(PODS))
        assert "not a response of a Kubernetes API server" in str(error)
    server.answers[PODS] = (200, {"items": "x"})
    assert "got `str` - at `$.items`" in str(await failure(file, lambda api: api.list(PODS)))


async def test_rights_and_the_user_are_reviewed(lab: tuple[ApiServer, Path]) -> None:
    server, file = lab
    reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    server.answers[reviews] = (201, {"status": {"allowed": True}})
    server.answers["/apis/authentication.k8s.io/v1/selfsubjectreviews"] = (
        201,
        {"status": {"userInfo": {"username": "jane"}}},
    )
    async with cluster(file) as api:
        assert await api.can("list", "", "pods", "chat")
        assert await api.user() == "jane"
        server.answers[reviews] = (201, {"status": {}})
        assert not await api.can("list", "", "pods")


HPAS = "/apis/autoscaling/v2"
LIST = f"{HPAS}/namespaces/chat/horizontalpodautoscalers"


async def _hpa(api: Api, name: str) -> Any:
    return await read_named(api, "HPA", HPAS, "horizontalpodautoscalers", name)


async def test_a_name_that_exists_is_returned(lab: tuple[ApiServer, Path]) -> None:
    server, file = lab
    server.answers[LIST] = rows(3)
    async with cluster(file) as api:
        assert (await _hpa(api, "llm-2"))["metadata"]["name"] == "llm-2"
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("name", "here", "elsewhere", "text"),
    [
        ("lmm-1", 3, 0, "no HPA 'lmm-1' in namespace chat: did you mean llm-1 or llm-0 or llm-2?"),
        ("zzz", 7, 0, "known names are llm-0, llm-1, llm-2, llm-3, llm-4 and 2 more"),
        (
            "zzz",
            0,
            0,
            "no HPA 'zzz' in namespace chat: the namespace has no HPA, or it does not exist",
        ),
        ("llm-1", 0, 2, "it exists in namespace prod; add -n prod"),
    ],
)
async def test_an_unknown_name_leads_to_the_nearest_or_the_right_namespace(
    name: str, here: int, elsewhere: int, text: str, lab: tuple[ApiServer, Path]
) -> None:
    server, file = lab
    server.answers[LIST] = rows(here)
    server.answers[f"{HPAS}/horizontalpodautoscalers"] = rows(here) + rows(elsewhere, "prod")
    assert text in str(await failure(file, lambda api: _hpa(api, name)))


async def test_other_namespaces_that_may_not_be_listed_are_left_out(
    lab: tuple[ApiServer, Path],
) -> None:
    server, file = lab
    server.answers[LIST] = rows(1)
    server.answers[f"{HPAS}/horizontalpodautoscalers"] = forbidden("u", "list", "x", "y", "")
    assert "did you mean llm-0?" in str(await failure(file, lambda api: _hpa(api, "llm")))


async def test_a_node_is_named_in_the_whole_cluster(lab: tuple[ApiServer, Path]) -> None:
    server, file = lab
    server.answers["/api/v1/nodes"] = [{"metadata": {"name": "gpu-node-1"}}]
    error = await failure(
        file, lambda api: read_named_in_cluster(api, "node", "/api/v1/nodes", "gpu-nod-1")
    )
    assert str(error) == "no node 'gpu-nod-1' in the cluster: did you mean gpu-node-1?"


GPUS = f"{VIEW}/gpus"


async def test_a_table_has_columns_cells_labels_and_none_for_a_missing_value(
    lab: tuple[ApiServer, Path],
) -> None:
    server, file = lab
    rows = [
        table_row("llm-0", ["87%", None, 3], "chat", {"app": "<b>"}),
        table_row("llm-1", [None, "2s", 0], "chat"),
    ]
    server.tables[PODS] = (("Name", "Util", "Age", "Pods"), rows)
    async with cluster(file) as api:
        table = await api.table(PODS)
    assert table.columns == ("Name", "Util", "Age", "Pods")
    assert [msgspec.structs.astuple(row) for row in table.rows] == [
        ("llm-0", "chat", {"app": "<b>"}, ("llm-0", "87%", None, 3)),
        ("llm-1", "chat", {}, ("llm-1", None, "2s", 0)),
    ]


async def test_a_table_is_read_in_pages_without_the_objects(lab: tuple[ApiServer, Path]) -> None:
    server, file = lab
    server.tables[GPUS] = (("Name",), [table_row(f"g{i}", []) for i in range(1201)])
    async with cluster(file) as api:
        table = await api.table(GPUS, labels="a=")
        assert [row.name for row in table.rows] == []
        table = await api.table(GPUS)
    assert [row.name for row in table.rows] == [f"g{i}" for i in range(1201)]
    assert [line.partition("?")[2] for line in server.asked[1:]] == [
        "limit=500&includeObject=Metadata",
        "limit=500&includeObject=Metadata&continue=500",
        "limit=500&includeObject=Metadata&continue=1000",
    ]


async def test_a_server_without_the_view_api_is_described_for_a_table_too(
    lab: tuple[ApiServer, Path],
) -> None:
    _, file = lab
    error = await failure(file, lambda api: api.table(GPUS))
    assert "does not serve view.gpu-metrics-adapter.io" in str(error)


_TABLE = {"kind": "Table", "columnDefinitions": [{"name": "Name"}], "rows": []}


@pytest.mark.parametrize(
    "body",
    [
        {"kind": "GpuList", "items": []},
        {"kind": "Table"},
        [],
        _TABLE | {"rows": [{"cells": []}]},
        _TABLE | {"rows": [{"cells": ["a", "b"], "object": {"metadata": {}}}]},
        _TABLE | {"rows": 5},
        _TABLE | {"metadata": {"continue": 5}},
        _TABLE | {"metadata": {"continue": "more"}},
    ],
)
async def test_an_answer_that_is_not_a_table_is_one_line(
    body: object, lab: tuple[ApiServer, Path]
) -> None:
    server, file = lab
    server.answers[GPUS] = (200, body)
    error = await failure(file, lambda api: api.table(GPUS))
    assert "this is not a response of a Kubernetes API server" in str(error)


async def test_an_answer_that_is_too_long_is_left(
    lab: tuple[ApiServer, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apiservice.kube.client._MOST_ANSWER", 1000)
    server, file = lab
    server.answers[PODS] = rows(100)
    error = await failure(file, lambda api: api.list(PODS))
    assert "the answer is longer than 1000 bytes" in str(error)
    assert "name a namespace" in str(error)
    error = await failure(file, lambda api: api.table(PODS))
    assert "the answer is longer than 1000 bytes" in str(error)


async def test_the_clock_reads_little_of_an_answer(lab: tuple[ApiServer, Path]) -> None:
    """Only its head counts, and a compressed body may be of any size."""
    server, file = lab
    server.answers["/version"] = {"gitVersion": "v1.33.0" + " " * (1 << 20)}
    error = await failure(file, lambda api: api.clock())
    assert "the answer is longer than" in str(error)
