"""HPAs and ScaledObjects as they are read: one list does not hold up the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from adapter.tools.client.errors import ClientError
from adapter.tools.overview import scalers
from adapter.tools.overview.hpas import summarize
from adapter.tools.overview.scalers import read_scalers
from adapter.tools.overview.verdict import count_hpas
from tests.adapter.tools.overview.hpas import AT, hpa

Json = dict[str, Any]
PAUSED: Json = {
    "metadata": {
        "namespace": "chat",
        "name": "queue",
        "annotations": {"autoscaling.keda.sh/paused": "true"},
    },
    "spec": {"scaleTargetRef": {"name": "queue"}, "maxReplicaCount": "many"},
}


class Lists:
    """Answers by the last part of the path: rows, an HTTP status, or nothing at all."""

    def __init__(self, **answers: list[Json] | int | None) -> None:
        self._answers: Mapping[str, list[Json] | int | None] = answers

    async def pages(self, path: str, *, labels: str = "") -> AsyncIterator[list[Json]]:
        assert labels == "team=a"
        answer = self._answers[path.rpartition("/")[2]]
        if answer is None:
            await asyncio.Event().wait()
        if not isinstance(answer, list):
            raise ClientError("GET /scaledobjects: forbidden", answer or 0)
        yield answer

    async def get(self, path: str) -> Json:
        assert path == "/apis/keda.sh/v1alpha1"
        if (status := self._answers["group"]) != 200:
            raise ClientError("no such group", int(str(status)))
        return {}


async def _read(scaledobjects: list[Json] | int | None, group: int = 200) -> scalers.ReadScalers:
    lists: Any = Lists(
        horizontalpodautoscalers=[hpa(), {}], scaledobjects=scaledobjects, group=group
    )
    return await read_scalers(lists, labels="team=a")


async def test_a_paused_scaledobject_is_a_row_without_numbers_that_nobody_knows() -> None:
    read = await _read([PAUSED])
    assert read.left_out == "1 HPA of an unknown form not shown"
    _, row = rows = list(summarize(read, {}, AT))
    body = row.json()
    assert (body["name"], body["kind"], body["state"]) == (
        "scaledobject/queue",
        "ScaledObject",
        "paused",
    )
    assert [body[key] for key in ("max", "current", "desired", "since")] == [None] * 4
    assert body["metrics"] == []
    assert body["advice"].startswith("end the pause when it is over")
    assert row.level == "off"
    assert count_hpas(rows).noun == "autoscaler"
    assert count_hpas(rows[:1]).noun == "HPA"


@pytest.mark.parametrize(("status", "group"), [(404, 200), (403, 404)])
async def test_a_cluster_without_keda_lacks_nothing(status: int, group: int) -> None:
    read = await _read(status, group)
    assert (len(read.hpas), read.unread) == (1, "")


@pytest.mark.parametrize(("status", "group"), [(403, 200), (403, 403), (500, 200)])
async def test_why_scaledobjects_are_not_shown_is_said(status: int, group: int) -> None:
    read = await _read(status, group)
    assert len(read.hpas) == 1
    assert "ScaledObjects without an HPA are not shown: GET /scaledobjects" in read.left_out


async def test_a_list_that_does_not_end_holds_up_no_hpa(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scalers, "_PATIENCE", 0.01)
    read = await _read(None)
    assert (len(read.hpas), read.unread) == (1, "no answer within 0.01 s")
