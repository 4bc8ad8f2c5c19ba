"""The owner of the external metrics API is determined, logged once, and exposed."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from adapter.server.serve.apiserviceowner import APIServiceOwner
from apiservice.kube.client import ClusterAnswerError

OURS = b'{"spec":{"group":"external.metrics.k8s.io","service":{"namespace":"g","name":"a"}}}'
KEDA = b'{"spec":{"service":{"namespace":"keda","name":"keda-metrics-apiserver","port":443}}}'
LOCAL = b'{"spec":{"service":null}}'
DENIED = ClusterAnswerError("403 apiservices is forbidden")
ABSENT = ClusterAnswerError("404", 404)


class Cluster:
    """Answers with the last value that was set."""

    def __init__(self, answer: bytes | ClusterAnswerError) -> None:
        self.answer = answer

    async def ask(self) -> bytes:
        if isinstance(self.answer, ClusterAnswerError):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("answer", "foreign", "service"),
    [
        pytest.param(OURS, False, "g/a", id="ours"),
        pytest.param(KEDA, True, "keda/keda-metrics-apiserver", id="KEDA's"),
        pytest.param(LOCAL, True, "itself", id="the API server's own"),
        pytest.param(ABSENT, None, None, id="there is none"),
        pytest.param(DENIED, None, None, id="not allowed to look"),
        pytest.param(b"{}", None, None, id="no APIService"),
    ],
)
async def test_the_owner_is_named(
    answer: bytes | ClusterAnswerError, foreign: bool | None, service: str | None
) -> None:
    owner = APIServiceOwner(Cluster(answer).ask, "g/a")
    with capture_logs() as logs:
        await owner.look()
    assert owner.foreign is foreign
    (entry,) = logs
    assert entry.get("service") == service
    assert (entry["log_level"] == "warning") == (foreign is True or answer is ABSENT)


async def test_only_a_change_is_logged() -> None:
    cluster = Cluster(OURS)
    owner = APIServiceOwner(cluster.ask, "g/a")
    with capture_logs() as logs:
        for answer in (OURS, OURS, KEDA, KEDA, DENIED, DENIED, OURS):
            cluster.answer = answer
            await owner.look()
    assert [entry["log_level"] for entry in logs] == ["info", "warning", "info", "info"]
