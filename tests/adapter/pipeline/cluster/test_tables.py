"""Services and Nodes: small collections that may be missing without harm to the rest."""

from __future__ import annotations

import asyncio
import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.pipeline.cluster import nodes, services
from adapter.pipeline.cluster.nodes import Node, Nodes
from adapter.pipeline.cluster.services import Service, Services
from adapter.pipeline.cluster.watch import watch_services
from apiservice.kube.clusterclient import ClusterAccess, ClusterClient
from apiservice.kube.reflector import EventType, ReflectorOptions
from apiservice.labels.selector import SelectorError, parse


def test_a_service_is_the_selector_of_its_pods() -> None:
    raw = {"metadata": {"name": "s", "namespace": "n"}, "spec": {"selector": {"b": "2", "a": "1"}}}
    service = services.decode(json.dumps(raw).encode())
    assert service == Service("n", "s", parse("a=1,b=2"))


@pytest.mark.parametrize("spec", [{}, {"selector": {}}, {"selector": None}])
def test_a_service_without_selector_selects_no_pods(spec: dict[str, object]) -> None:
    raw = {"metadata": {"name": "s"}, "spec": spec}
    assert services.decode(json.dumps(raw).encode()).selector is None


def test_a_service_with_an_impossible_selector_is_left_out() -> None:
    raw = {"metadata": {"name": "s"}, "spec": {"selector": {"a": "b c"}}}
    with pytest.raises(SelectorError):
        services.decode(json.dumps(raw).encode())


def test_nodes_are_selected_by_label_in_order_of_name() -> None:
    table = Nodes()
    raw = {"metadata": {"name": "b", "labels": {"gpu": "yes"}}}
    table.replace([nodes.decode(json.dumps(raw).encode()), Node("c", {}), Node("a", {"gpu": "y"})])
    assert [node.name for node in table.select(parse("gpu"))] == ["a", "b"]
    assert table.get("c") == Node("c", {})


def test_the_version_of_a_table_changes_with_its_content_only() -> None:
    table = Nodes()
    table.replace([Node("a", {})])
    versions = [table.version]
    for event, node in (
        (EventType.MODIFIED, Node("a", {})),
        (EventType.MODIFIED, Node("a", {"x": "1"})),
        (EventType.DELETED, Node("a", {"x": "1"})),
        (EventType.DELETED, Node("a", {})),
    ):
        table.apply(event, node)
        versions.append(table.version)
    assert versions == [1, 1, 2, 3, 3]
    assert (len(table), list(table)) == (0, [])


@given(st.lists(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("xy"))), max_size=5))
def test_a_list_leaves_what_it_names_and_says_each_change_once(
    lists: list[list[tuple[str, str]]],
) -> None:
    table, mirror = Nodes(), dict[str, Node]()

    def note(before: Node | None, after: Node | None) -> None:
        assert before != after
        assert before == mirror.pop((before or after or Node("", {})).name, None)
        if after is not None:
            mirror[after.name] = after

    table.listen(note)
    for listed in lists:
        expected = {name: Node(name, {"k": value}) for name, value in listed}
        table.replace([table.intern(Node(name, {"k": value})) for name, value in listed])
        assert {node.name: node for node in table} == expected == mirror
        assert table.synced


def test_a_long_list_is_taken_in_steps_and_unchanged_objects_stay() -> None:
    table = Nodes()
    listed = [Node(f"n{number:03}", {}) for number in range(300)]
    table.replace(listed)
    again = [table.intern(Node(node.name, {})) for node in listed]
    assert all(one is other for one, other in zip(again, listed, strict=True))
    steps = sum(1 for _ in table.replace_in_steps([*again[1:], Node("new", {})]))
    assert steps >= 10
    assert (table.get("n000"), table.get("new")) == (None, Node("new", {}))


async def test_a_missing_right_to_services_is_reported_by_queries_on_services() -> None:
    refused = asyncio.Event()

    async def forbid(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        body = b'{"reason":"Forbidden","message":"services is forbidden"}'
        head = b"HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
        writer.write(head % len(body) + body)
        await writer.drain()
        writer.close()
        refused.set()

    table = Services()
    server = await asyncio.start_server(forbid, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with ClusterClient(ClusterAccess(host=f"http://127.0.0.1:{port}")) as client:
        watch = watch_services(client, table, ReflectorOptions(backoff_min=0.001))
        task = asyncio.create_task(watch.run())
        await asyncio.wait_for(refused.wait(), 10)
        async with asyncio.timeout(60):
            while not watch.denied:  # noqa: ASYNC110 - there is no event for a failure
                await asyncio.sleep(0.001)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    server.close()
    assert "services is forbidden" in table.problem
    assert "RBAC" in table.problem
