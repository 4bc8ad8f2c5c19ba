"""One namespace fills the queues in front of a store and of a delegate; others are answered."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.adapter.answers.rules.engine import Engine, vector
from tests.attack.hostileservers import NAME
from tests.attack.siege import Siege
from tests.attack.test_others import servers, total

API = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/{}/pods/%2A/{}"
EXTERNAL = "/apis/external.metrics.k8s.io/v1beta1/namespaces/ns/calm_external"
RULE_CLIENTS, DELEGATE_CLIENTS = 150, 90
ASKED = 27
"""Requests of the others, one after the other."""


def tenant() -> dict[str, Any]:
    meta = {"name": "p0", "namespace": "tenant", "uid": "t0"}
    spec = {"nodeName": "n1", "containers": [{"name": "c"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


class Store(Engine):
    """Has three metrics of every pod; answers about one of them take half a second."""

    NAMES = ("loud_metric", "calm_metric", "calm_external")

    def queried(self, query: str) -> tuple[int, bytes]:
        self.asked.append(query)
        if "loud" in query:
            time.sleep(0.5)
        labels: list[dict[str, str]] = [
            {"namespace": namespace, "pod": "p0"} for namespace in ("ns", "tenant")
        ]
        by = query.rpartition(" by ")[2] if " by " in query else ""
        kept = [{key: text for key, text in row.items() if key in by} for row in labels]
        unique = [row for at, row in enumerate(kept) if row not in kept[:at]]
        return 200, vector(*((row, "7") for row in unique), time=time.time())

    def listed(self, selector: str) -> tuple[int, bytes]:
        rows = [
            {"__name__": name, "namespace": "ns", "pod": "p0"}
            for name in self.NAMES
            if name in selector
        ]
        return 200, json.dumps({"status": "success", "data": rows}).encode()


def rules() -> str:
    def rule(name: str, query: str) -> dict[str, Any]:
        resources = {"template": "<<.Resource>>"}
        series = f'{{__name__="{name}"}}'
        return {"seriesQuery": series, "resources": resources, "metricsQuery": query}

    grouped = "sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)"
    external = rule("calm_external", "sum(<<.Series>>{<<.LabelMatchers>>})")
    custom = [rule(name, grouped) for name in ("loud_metric", "calm_metric")]
    return yaml.safe_dump({"rules": custom, "externalRules": [external]})


@contextmanager
def crowd(
    make: Callable[[], AbstractContextManager[httpx.Client]], paths: Sequence[str]
) -> Iterator[Counter[int]]:
    """Ask for each path again and again, with a client of its own, while the block runs."""
    statuses, over, lock = Counter[int](), threading.Event(), threading.Lock()

    def ask(client_number: int, path: str) -> None:
        number = 0
        with make() as client:
            while not over.is_set():
                number += 1
                answer = client.get(f"{path}?metricLabelSelector=q%3D{client_number}-{number}")
                with lock:
                    statuses[answer.status_code] += 1

    threads = [threading.Thread(target=ask, args=row, daemon=True) for row in enumerate(paths)]
    for thread in threads:
        thread.start()
    try:
        yield statuses
    finally:
        over.set()
        for thread in threads:
            thread.join(60)


def waiting(attacked: Siege, name: str) -> None:
    """Wait until the queue that a metric names is in use."""
    deadline = time.monotonic() + 60
    with attacked.serving.client() as client:
        while total(client.get("/metrics").text, name) < 1:
            assert time.monotonic() < deadline, f"nothing waits: {name}"
            time.sleep(0.1)


def answers(client: httpx.Client, paths: Sequence[str]) -> Counter[tuple[str, int]]:
    """Ask for each path once; returns the statuses."""
    statuses = Counter[tuple[str, int]]()
    for path in paths:
        answer = client.get(path)
        statuses[path.partition("?")[0], answer.status_code] += 1
        assert answer.status_code != 200 or answer.json()["items"]
    return statuses


@contextmanager
def uneven(folder: Path) -> Iterator[dict[str, Any]]:
    """Start a delegate that is slow about one metric only; yields the settings."""
    (folder / "token").write_text("secret-of-delegates")
    with servers(folder, "uneven") as (port,):
        delegate = {
            "name": "uneven",
            "service": {"namespace": "monitoring", "name": "other"},
            "address": f"127.0.0.1:{port}",
            "ca_file": str(folder / "other-ca.crt"),
            "server_name": NAME,
            "names": ["*_delegated"],
        }
        yield {"delegates": [delegate], "token_file": str(folder / "token")}


def test_rule_queries_of_one_namespace_do_not_refuse_those_of_others(
    siege: Callable[..., Siege], tmp_path: Path
) -> None:
    """Narrow, wide and external queries of others all ended in 503 after ten seconds."""
    (tmp_path / "rules.yaml").write_text(rules())
    store = Store()
    try:
        attacked = siege(
            tenant(),
            rules={"file": str(tmp_path / "rules.yaml")},
            source={"prometheus": {"url": store.url}},
            external={"enabled": True},
        )
        calm = API.format("ns", "calm_metric")
        paths = [calm, EXTERNAL, *(f"{calm}?metricLabelSelector=q%3D{n}" for n in range(ASKED))]
        client = attacked.serving.client()
        alone = answers(client, paths[:2])
        assert {status for _, status in alone} == {200}
        loud = [API.format("tenant", "loud_metric")] * RULE_CLIENTS
        with crowd(attacked.serving.client, loud) as statuses:
            waiting(attacked, "gma_rule_queries_waiting")
            beside = answers(client, paths)
        metrics = client.get("/metrics").text
        client.close()
        attacked.verdict()
    finally:
        store.close()
    assert beside == {(calm, 200): ASKED + 1, (EXTERNAL, 200): 1}
    assert set(statuses) <= {200, 503}
    assert total(metrics, 'gma_rule_queries_refused_total{reason="full"}') > 0, "the queue was full"


def test_requests_of_one_namespace_for_a_slow_delegate_do_not_refuse_those_of_others(
    siege: Callable[..., Siege], tmp_path: Path
) -> None:
    """26 of 27 requests of others for a fast metric of the same delegate failed."""
    with uneven(tmp_path) as options:
        attacked = siege(tenant(), delegation=options)
        fast = API.format("ns", "fast_delegated")
        slow = [API.format("tenant", "slow_delegated")] * DELEGATE_CLIENTS
        with crowd(attacked.serving.client, slow) as statuses:
            waiting(attacked, "gma_delegate_requests_waiting")
            with attacked.serving.client() as client:
                beside = answers(client, [fast] * ASKED)
        with attacked.serving.client() as client:
            metrics = client.get("/metrics").text
        attacked.verdict()
    assert beside == {(fast, 200): ASKED}
    assert set(statuses) <= {200, 503}
    assert (
        total(metrics, 'gma_delegate_requests_refused_total{delegate="uneven",reason="full"}') > 0
    )
