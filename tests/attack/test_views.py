"""Lists of the view API, by a client who may read every namespace."""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import httpx

from tests.attack.siege import Siege

BASE = "/apis/view.gpu-metrics-adapter.io/v1alpha1"
PODS = f"{BASE}/gpupods"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
COUNT = 5_000
CLIENTS = 16
SECONDS = 10.0
PATIENCE = 5.0
"""Seconds in which an answer must come: before, it came after a minute."""
ROOM = 100 << 20
"""Bytes that the process may grow by."""


def many_pods() -> list[dict[str, Any]]:
    """Return pods that request a GPU and have no value."""
    container = {"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"pod-{number:05}",
                "namespace": f"team-{number % 7}",
                "uid": f"u-{number}",
                "labels": {"app": "x" * 60, "pod": f"pod-{number:05}"},
            },
            "spec": {"nodeName": f"node-{number % 500}", "containers": [container]},
        }
        for number in range(COUNT)
    ]


def test_clients_that_list_everything_at_once_delay_nobody(siege: Callable[..., Siege]) -> None:
    """Full lists and tables without a limit, by several clients, some of which do not read."""
    under = siege(*many_pods())
    before = under.process.memory_info().rss
    until = time.monotonic() + SECONDS
    statuses: set[int] = set()

    def ask(number: int) -> None:
        forms = (TABLE, "application/json")
        with under.serving.client() as client:
            client.timeout = httpx.Timeout(60)
            while time.monotonic() < until:
                headers = {"Accept": forms[number % 2]}
                with client.stream("GET", PODS, headers=headers) as answer:
                    statuses.add(answer.status_code)
                    if number % 4 == 0:
                        next(answer.iter_raw(), None)
                        time.sleep(0.5)
                        return
                    for _ in answer.iter_raw():
                        pass

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads)
    assert statuses <= {200, 400, 503}, "an answer, or the bound by name"
    assert 200 in statuses
    under.verdict()
    assert under.process.memory_info().rss - before < ROOM


def test_slow_readers_of_one_namespace_delay_no_other_namespace(
    siege: Callable[..., Siege],
) -> None:
    """They ask for long lists and read nothing, so that each answer stays in memory."""
    under = siege(*many_pods())
    ours, theirs = (f"{BASE}/namespaces/team-{number}/gpupods" for number in range(2))
    with ExitStack() as stack:
        client = stack.enter_context(under.serving.client())
        client.timeout = httpx.Timeout(PATIENCE)
        alone = client.get(theirs)
        for _ in range(3 * CLIENTS):
            reader = stack.enter_context(under.serving.client())
            stack.enter_context(reader.stream("GET", ours))
        # One after another: each of these waited for up to a minute when places were held by
        # clients that do not read.
        answers = [client.get(theirs) for _ in range(10)]
        metrics = client.get("/metrics").text
    assert {answer.status_code for answer in answers} == {200}
    names = [[row["metadata"]["name"] for row in answer.json()["items"]] for answer in answers]
    assert names == [[row["metadata"]["name"] for row in alone.json()["items"]]] * 10
    assert 'gma_large_answers_waiting{route="view"}' in metrics
    under.verdict()


def test_forged_tokens_selectors_and_names_are_refused(siege: Callable[..., Siege]) -> None:
    under = siege(*many_pods()[:500])
    forged = [
        "A" * 8_000,
        base64.urlsafe_b64encode(b"[" * 5_000).decode(),
        base64.urlsafe_b64encode(b'["gpupods","other","a","b"]').decode(),
        "%00",
        "..%2F..%2Fetc",
    ]
    asked = 0
    with under.serving.client() as client:
        for token in forged * 20:
            assert client.get(f"{PODS}?continue={token}").status_code == 400
            asked += 1
        terms = ",".join(f"node=n{number}" for number in range(200))
        assert client.get(f"{PODS}?fieldSelector={terms}").status_code == 400
        for number in range(200):
            name = f"pod-{number:05}{'x' * (number % 200)}"
            answer = client.get(f"{BASE}/namespaces/team-1/gpupods/{name}x")
            assert answer.status_code == 404
            assert "team-" not in answer.json()["message"]
            asked += 1
    assert asked == len(forged) * 20 + 200
    under.verdict()
