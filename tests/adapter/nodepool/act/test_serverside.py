"""Writes: one field manager, not forced, and only with the lease."""

from __future__ import annotations

from typing import Any

import pytest

from adapter.nodepool.act.serverside import WriteError, WriteFailure, Writer, path_of
from tests.adapter.nodepool.fakeapi import FakeApi

OBJ: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "gpu-headroom-0", "namespace": "team"},
    "spec": {"replicas": 1},
}
CONFLICT = (
    'Apply failed with 2 conflicts: conflicts with "kubectl" using apps/v1: .spec.replicas\n'
    'conflict with "argocd" using apps/v1: .spec.template'
)
ANSWERS = {
    "another manager": (409, CONFLICT, WriteFailure.CONFLICT, "are owned by argocd, kubectl"),
    "a race": (409, "the object has been modified", WriteFailure.REFUSED, "modified"),
    "no right": (403, 'User "x" cannot patch', WriteFailure.FORBIDDEN, "grant it to this"),
    "a quota": (403, "exceeded quota: gpus", WriteFailure.FORBIDDEN, "quota"),
    "invalid": (422, "spec.replicas: Invalid value", WriteFailure.REFUSED, "Invalid value"),
    "too many requests": (429, "slow down", WriteFailure.UNREACHABLE, "slow down"),
    "down": (0, "connection refused", WriteFailure.UNREACHABLE, "refused"),
    "failing": (503, "etcd", WriteFailure.UNREACHABLE, "etcd"),
}


@pytest.mark.parametrize(("status", "text", "failure", "words"), ANSWERS.values(), ids=ANSWERS)
async def test_failures_are_named_and_counted(
    status: int, text: str, failure: WriteFailure, words: str
) -> None:
    api = FakeApi()
    api.fail("PATCH", "deployments", status, text)
    writer = Writer(api, lambda: True)
    with pytest.raises(WriteError, match="Deployment team/gpu-headroom-0") as raised:
        await writer.apply(OBJ)
    assert raised.value.failure is failure
    assert words in str(raised.value)
    assert writer.failed == {("Deployment", failure): 1}


async def test_apply_is_strict_not_forced_and_uses_one_field_manager() -> None:
    calls: list[tuple[str, str]] = []

    async def call(
        method: str, path: str, body: Any = None, content_type: str = "application/json"
    ) -> bytes:
        calls.append((path, content_type))
        return b"{}"

    await Writer(call, lambda: True).apply(OBJ)
    assert calls == [
        (
            (
                "/apis/apps/v1/namespaces/team/deployments/gpu-headroom-0"
                "?fieldManager=gpu-metrics-adapter-nodepool&fieldValidation=Strict"
            ),
            "application/apply-patch+yaml",
        )
    ]


async def test_nothing_is_sent_without_the_lease() -> None:
    api = FakeApi()
    writer = Writer(api, lambda: False)
    for write in (writer.apply, writer.delete, writer.create):
        with pytest.raises(WriteError, match="lease was lost"):
            await write(OBJ)
    assert api.sent == []


async def test_deleting_a_missing_object_succeeds() -> None:
    api = FakeApi()
    await Writer(api, lambda: True).delete(OBJ)
    assert api.paths("DELETE") == [path_of(OBJ)]


async def test_a_missing_object_is_read_as_none() -> None:
    api = FakeApi()
    writer = Writer(api, lambda: True)
    assert await writer.read(OBJ) is None
    await writer.apply(OBJ)
    stored = await writer.read(OBJ)
    assert stored is not None
    assert stored["spec"] == OBJ["spec"]
