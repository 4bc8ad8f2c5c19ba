"""Discovery answers from memory, and in the shape the aggregator accepts."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from apiservice.documents.discovery import Discovery
from apiservice.provider import GroupResource, MetricResource
from tests.apiservice.world import FakeCustom, FakeExternal, World

_CUSTOM_GROUP = (
    b'{"name":"custom.metrics.k8s.io",'
    b'"versions":[{"groupVersion":"custom.metrics.k8s.io/v1beta2","version":"v1beta2"},'
    b'{"groupVersion":"custom.metrics.k8s.io/v1beta1","version":"v1beta1"}],'
    b'"preferredVersion":{"groupVersion":"custom.metrics.k8s.io/v1beta2","version":"v1beta2"}}'
)
_EXTERNAL_GROUP = (
    b'{"name":"external.metrics.k8s.io",'
    b'"versions":[{"groupVersion":"external.metrics.k8s.io/v1beta1","version":"v1beta1"}],'
    b'"preferredVersion":{"groupVersion":"external.metrics.k8s.io/v1beta1","version":"v1beta1"}}'
)
_GROUPS = b'{"kind":"APIGroupList","apiVersion":"v1","groups":['


def _resources(version: str) -> bytes:
    return (
        b'{"kind":"APIResourceList","apiVersion":"v1",'
        b'"groupVersion":"custom.metrics.k8s.io/' + version.encode() + b'","resources":['
        b'{"name":"pods/gpu_utilization","singularName":"","namespaced":true,'
        b'"kind":"MetricValueList","verbs":["get"]},'
        b'{"name":"nodes/gpu_utilization","singularName":"","namespaced":false,'
        b'"kind":"MetricValueList","verbs":["get"]},'
        b'{"name":"namespaces/gpu_utilization","singularName":"","namespaced":false,'
        b'"kind":"MetricValueList","verbs":["get"]}]}'
    )


DOCUMENTS = {
    "/apis": _GROUPS + _CUSTOM_GROUP + b"," + _EXTERNAL_GROUP + b"]}",
    "/apis/custom.metrics.k8s.io": (
        b'{"kind":"APIGroup","apiVersion":"v1",' + _CUSTOM_GROUP.removeprefix(b"{")
    ),
    "/apis/external.metrics.k8s.io": (
        b'{"kind":"APIGroup","apiVersion":"v1",' + _EXTERNAL_GROUP.removeprefix(b"{")
    ),
    "/apis/custom.metrics.k8s.io/v1beta1": _resources("v1beta1"),
    "/apis/custom.metrics.k8s.io/v1beta2": _resources("v1beta2"),
    "/apis/external.metrics.k8s.io/v1beta1": (
        b'{"kind":"APIResourceList","apiVersion":"v1",'
        b'"groupVersion":"external.metrics.k8s.io/v1beta1","resources":['
        b'{"name":"gpu_queue","singularName":"","namespaced":true,'
        b'"kind":"ExternalMetricValueList","verbs":["get"]}]}'
    ),
}


@pytest.mark.parametrize("slash", ["", "/"])
@pytest.mark.parametrize(("path", "body"), DOCUMENTS.items())
async def test_a_document_is_served_with_and_without_a_slash(
    world: World, path: str, slash: str, body: bytes
) -> None:
    response = await world.get(path + slash)
    assert (response.status_code, response.content) == (200, body)
    assert response.headers["content-type"] == "application/json"


def test_a_group_without_a_provider_is_not_there() -> None:
    discovery = Discovery(FakeCustom(), None)
    assert discovery.group_list == _GROUPS + _CUSTOM_GROUP + b"]}"
    assert discovery.group("external.metrics.k8s.io") is None
    assert discovery.resource_list("external.metrics.k8s.io", "v1beta1") is None
    assert Discovery(None, FakeExternal()).group_list == _GROUPS + _EXTERNAL_GROUP + b"]}"
    assert Discovery(None, None).group_list == _GROUPS + b"]}"


def test_a_list_is_rendered_again_only_when_its_rows_change() -> None:
    custom = FakeCustom()
    discovery = Discovery(custom, None)
    first = discovery.resource_list("custom.metrics.k8s.io", "v1beta2")
    assert discovery.resource_list("custom.metrics.k8s.io", "v1beta2") is first
    custom.rows = [*custom.rows, MetricResource(GroupResource("pods", ""), "new", namespaced=True)]
    changed = discovery.resource_list("custom.metrics.k8s.io", "v1beta2")
    assert changed is not None
    assert b'"pods/new"' in changed


def test_rows_of_one_resource_share_one_scope_or_the_aggregator_rejects_the_group() -> None:
    pods = GroupResource("pods", "")
    custom = FakeCustom(
        rows=[
            MetricResource(pods, "a", namespaced=True),
            MetricResource(pods, "b", namespaced=False),
        ]
    )
    with capture_logs() as logs:
        body = Discovery(custom, None).resource_list("custom.metrics.k8s.io", "v1beta1")
    assert body is not None
    assert body.count(b'"namespaced":true') == 2
    assert [entry["event"] for entry in logs] == ["metrics of one resource differ in scope"]


def test_a_row_listed_twice_is_shown_once() -> None:
    row = MetricResource(GroupResource("deployments", "apps"), "m", namespaced=True)
    body = Discovery(FakeCustom(rows=[row, row]), None).resource_list(
        "custom.metrics.k8s.io", "v1beta1"
    )
    assert body is not None
    assert body.count(b'"deployments.apps/m"') == 1
