"""Both servers side by side."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from adapter.config.process.output import Screen
from adapter.tools.client.access import Json, open_cluster
from adapter.tools.client.errors import ClientError
from adapter.tools.migrate import compare
from adapter.tools.migrate.compare import Comparer
from adapter.tools.migrate.comparison import Comparison, MoveVerdict, judge
from adapter.tools.migrate.hpametrics import read_uses
from adapter.tools.migrate.servers import MOST_BYTES, decode_answer
from tests.adapter.clientapi import ApiServer, api_server
from tests.adapter.tools.migrate import peercluster as peer

PODS = "/apis/custom.metrics.k8s.io/v1beta1/namespaces/shop/pods/%2A/http_requests_per_second"
OBJECT = "/apis/custom.metrics.k8s.io/v1beta1/namespaces/shop/services/web/hits"
QUEUE = "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/queue_depth"
CUSTOM = "/apis/custom.metrics.k8s.io/"
LISTS = (f"{CUSTOM}v1beta1", f"{CUSTOM}v1beta2", "/apis/external.metrics.k8s.io/v1beta1")

Answer = dict[str, str] | ClientError


class Server:
    """Answers by path without a query: one answer after the other, the last one again."""

    def __init__(
        self, answers: dict[str, Sequence[Answer]], *names: str, version: str = "v1beta1"
    ) -> None:
        self.answers = {path: list(rows) for path, rows in answers.items()}
        self.names = names
        self.version = version
        """The only one of custom.metrics.k8s.io that it serves."""
        self.asked: list[str] = []

    async def get(self, path: str) -> Json:
        self.asked.append(path)
        if path.startswith(CUSTOM):
            if not path.startswith(CUSTOM + self.version):
                raise ClientError("404 not found", 404)
            if path not in LISTS:
                path = path.replace(self.version, "v1beta1")
        if path in LISTS:
            return {"resources": [{"name": name} for name in self.names]}
        rows = self.answers.get(path.partition("?")[0])
        if not rows:
            raise ClientError("404 not found", 404)
        answer = rows.pop(0) if len(rows) > 1 else rows[0]
        if isinstance(answer, ClientError):
            raise answer
        items = [{"describedObject": {"name": n}, "value": v} for n, v in answer.items()]
        return {"items": items}


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[tuple[ApiServer, Path]]:
    with api_server(tmp_path) as (server, file):
        peer.furnish(server)
        rows = server.answers["/apis/autoscaling/v2/horizontalpodautoscalers"]
        rows.append(peer.hpa("front", peer.object_metric("hits", "web")))
        yield server, file


def compared(
    lab: tuple[ApiServer, Path], theirs: Server, ours: Server, **options: Any
) -> Comparison:
    async def run() -> Comparison:
        api = await open_cluster(lab[1])
        try:
            uses = (await read_uses(api)).uses
            return await Comparer(api, theirs, ours, pause=0, **options).compare(uses)
        finally:
            await api.close()

    return asyncio.run(run())


def verdicts(found: Comparison) -> dict[str, MoveVerdict]:
    return {row.metric: row.verdict for row in found.rows}


GOOD: dict[str, Sequence[Answer]] = {
    PODS: [{"web-0": "10", "web-1": "1500m"}],
    OBJECT: [{"web": "7"}],
    QUEUE: [{"a": "3"}],
}


def test_equal_values_are_equal_and_each_metric_is_asked_once(lab: tuple[ApiServer, Path]) -> None:
    theirs, ours = Server(GOOD, "pods/a", "pods/b"), Server(GOOD, "pods/b")
    comparison = compared(lab, theirs, ours)
    assert comparison.good
    assert set(verdicts(comparison).values()) == {MoveVerdict.EQUAL}
    (pods,) = (row for row in comparison.rows if row.kind == "Pods")
    assert (pods.hpas, pods.theirs) == (["shop/api", "shop/web"], "2 of 1.5..10")
    # Once before and once after ours, and two lists.
    assert len([path for path in ours.asked if path not in LISTS]) == 3
    assert len([path for path in theirs.asked if path not in LISTS]) == 6
    assert all("labelSelector=app%3Dweb" in path for path in ours.asked if "pods/" in path)
    assert set(comparison.absent) == {"pods/a"}


def test_each_server_is_asked_at_the_version_that_it_serves(lab: tuple[ApiServer, Path]) -> None:
    for theirs in (Server(GOOD, "a", version="v1beta2"), Server(GOOD, "a")):
        ours = Server(GOOD, "a", version="v1beta2")
        comparison = compared(lab, theirs, ours)
        assert set(verdicts(comparison).values()) == {MoveVerdict.EQUAL}
        assert comparison.absent == []
        assert any(f"{CUSTOM}v1beta2/namespaces" in path for path in ours.asked)


def test_a_version_that_is_another_servers_is_not_asked(lab: tuple[ApiServer, Path]) -> None:
    theirs = Server(GOOD, "a")
    compared(lab, theirs, Server(GOOD, "a", version="v1beta2"), versions=("v1beta1",))
    assert not any("v1beta2" in path for path in theirs.asked)


def test_rows_of_one_metric_differ(lab: tuple[ApiServer, Path]) -> None:
    rows = lab[0].answers["/apis/autoscaling/v2/horizontalpodautoscalers"]
    for name in ("one", "two"):
        metric = peer.external_metric("queue_depth")
        metric["external"]["metric"]["selector"] = {"matchLabels": {"queue": name}}
        rows += [peer.hpa(name, metric), peer.hpa(name, peer.object_metric("hits", name))]
    comparison = compared(lab, Server(GOOD), Server(GOOD))
    lines = comparison.lines(Screen())
    assert any("queue_depth (External queue=one)" in line and "shop/one" in line for line in lines)
    assert any("hits (Object Service two)" in line and "shop/two" in line for line in lines)
    assert len({*lines}) == len(lines)
    assert len({row.about for row in comparison.rows if row.metric == "queue_depth"}) == 3


def test_a_metric_that_ours_lacks_is_lost(lab: tuple[ApiServer, Path]) -> None:
    comparison = compared(lab, Server(GOOD), Server({**GOOD, OBJECT: []}))
    assert not comparison.good
    assert verdicts(comparison)["hits"] is MoveVerdict.LOST
    text = "\n".join(comparison.lines(Screen()))
    assert "missing here: web" in text


def test_a_pod_that_ours_lacks_is_lost(lab: tuple[ApiServer, Path]) -> None:
    comparison = compared(lab, Server(GOOD), Server({**GOOD, PODS: [{"web-0": "10"}]}))
    (row,) = (row for row in comparison.rows if row.kind == "Pods")
    assert (row.verdict, row.remark) == (MoveVerdict.LOST, "web-1")


def test_a_value_that_changes_while_it_is_read_is_read_again(lab: tuple[ApiServer, Path]) -> None:
    theirs = Server({**GOOD, QUEUE: [{"a": "30"}, {"a": "30"}, {"a": "3"}]})
    comparison = compared(lab, theirs, Server(GOOD))
    assert verdicts(comparison)["queue_depth"] is MoveVerdict.EQUAL


def test_a_server_that_fails_costs_that_metric(lab: tuple[ApiServer, Path]) -> None:
    failing: dict[str, Sequence[Answer]] = {**GOOD, QUEUE: [ClientError("503 no store", 503)]}
    comparison = compared(lab, Server(GOOD), Server(failing))
    (row,) = (row for row in comparison.rows if row.metric == "queue_depth")
    assert (row.verdict, row.remark) == (MoveVerdict.FAILED, "503 no store")
    assert not comparison.good


def test_a_missing_scale_target_costs_that_metric(lab: tuple[ApiServer, Path]) -> None:
    del lab[0].answers["/apis/apps/v1/namespaces/shop/deployments/web/scale"]
    comparison = compared(lab, Server(GOOD), Server(GOOD))
    assert [row.remark for row in comparison.rows if row.verdict is MoveVerdict.FAILED] == [
        'deployments.apps "web" not found'
    ]


def test_requests_and_time_are_bounded(
    lab: tuple[ApiServer, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    comparison = compared(lab, Server(GOOD), Server(GOOD), seconds=-1.0)
    assert set(verdicts(comparison).values()) == {MoveVerdict.FAILED}
    monkeypatch.setattr(compare, "MOST_PATHS", 1)
    comparison = compared(lab, Server(GOOD), Server(GOOD))
    assert sorted(row.remark for row in comparison.rows) == [
        "",
        "beyond 1 metrics",
        "beyond 1 metrics",
    ]
    assert not comparison.good


def test_an_answer_is_bounded_and_must_be_json() -> None:
    with pytest.raises(ClientError, match=f"more than {MOST_BYTES} bytes"):
        decode_answer("/p", 200, b"{}", complete=False)
    with pytest.raises(ClientError, match="not JSON"):
        decode_answer("/p", 200, b"<html>", complete=True)
    with pytest.raises(ClientError, match=r"^502$"):
        decode_answer("/p", 502, b"<html>", complete=True)


JUDGED = {
    "within the range": ({"a": 1000}, {"a": 1500}, {"a": 2000}, MoveVerdict.EQUAL),
    "within the tolerance": ({"a": 1000}, {"a": 1099}, {"a": 1000}, MoveVerdict.EQUAL),
    "beyond the tolerance": ({"a": 1000}, {"a": 1102}, {"a": 1000}, MoveVerdict.DIFFERENT),
    "rounded differently": ({"a": 0}, {"a": 1}, {"a": 0}, MoveVerdict.EQUAL),
    "negative": ({"a": -1000}, {"a": -1200}, {"a": -1000}, MoveVerdict.DIFFERENT),
    "a pod that ended": ({"a": 1, "b": 1}, {"a": 1}, {"a": 1}, MoveVerdict.EQUAL),
    "one more here": ({"a": 1}, {"a": 1, "b": 1}, {"a": 1}, MoveVerdict.DIFFERENT),
    "none there": ({}, {"a": 1}, {}, MoveVerdict.GAINED),
    "none at all": ({}, {}, {}, MoveVerdict.NEITHER),
}


@pytest.mark.parametrize(("first", "ours", "last", "verdict"), JUDGED.values(), ids=JUDGED)
def test_the_verdict_follows_from_the_values(
    first: dict[str, int], ours: dict[str, int], last: dict[str, int], verdict: MoveVerdict
) -> None:
    assert judge(first, ours, last, 10)[0] is verdict
