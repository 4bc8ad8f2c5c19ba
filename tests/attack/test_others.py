"""A store behind rules, a rules file, and delegates, all of which are hostile at the same time."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import yaml

from apiservice.wire.delegationheader import DELEGATED
from tests.attack.hostileservers import DELEGATES, NAME, STORE
from tests.attack.siege import QUESTION, Siege

SECONDS = 6.0
QUERY = "<<.Series>>{<<.LabelMatchers>>}"
"""Asked once for all objects: the store answers about objects of its choice."""
CATASTROPHIC = ("(a+)+$", "(.*.*)*x", "(?:a|aa)*b", "((a{0,90}){0,90}){0,90}")
NESTED = "<<range .GroupBySlice>>" * 60 + "<<end>>" * 60


@contextmanager
def servers(folder: Path, *names: str) -> Iterator[list[int]]:
    """Run the hostile servers in a process of their own; yields their ports."""
    command = [sys.executable, "-m", "tests.attack.hostileservers", str(folder), *names]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield [int(port) for port in process.stdout.readline().split()]
        finally:
            process.kill()


def rules() -> str:
    """One rule for each way in which the store answers, and hundreds of costly or broken ones."""
    resources = {"template": "<<.Resource>>"}
    rows: list[dict[str, Any]] = [
        {"seriesQuery": f'{{__name__="{kind}_metric"}}', "metricsQuery": QUERY} for kind in STORE
    ]
    rows += [
        {
            "seriesQuery": '{__name__="many_metric"}',
            "seriesFilters": [{"is": CATASTROPHIC[number % len(CATASTROPHIC)]}],
            "name": {"matches": "(.*)(.*)(.*)", "as": "${1}${2}${3}" * 50},
            "metricsQuery": QUERY if number % 2 else NESTED,
        }
        for number in range(200)
    ]
    return yaml.safe_dump({"rules": [row | {"resources": resources} for row in rows]})


def test_hostile_stores_rules_and_delegates_affect_only_their_own_metrics(
    siege: Callable[..., Siege], tmp_path: Path
) -> None:
    (tmp_path / "rules.yaml").write_text(rules())
    (tmp_path / "token").write_text("secret-of-delegates")
    with servers(tmp_path) as (store, *ports):
        ca = str(tmp_path / "other-ca.crt")
        delegates = [
            {
                "name": kind,
                "service": {"namespace": "monitoring", "name": "other"},
                "address": f"127.0.0.1:{port}",
                "ca_file": ca,
                "server_name": NAME,
                "timeout": 2,
                "names": [] if kind == "lying" else [f"{kind}_delegated"],
            }
            for kind, port in zip(DELEGATES, ports, strict=True)
        ]
        url = f"http://127.0.0.1:{store}"
        attacked = siege(
            rules={
                "file": str(tmp_path / "rules.yaml"),
                "relist_interval": 2,
                "max_age": 60,
            },
            source={"prometheus": {"url": url, "timeout": 2}},
            delegation={"delegates": delegates, "token_file": str(tmp_path / "token")},
        )
        answers = asked(attacked)
        with attacked.serving.client() as http:
            metrics = http.get("/metrics").text
        # Answers of the store and of four delegates, each up to its bound, at the same time.
        seen = attacked.verdict(most=420 << 20)
    assert seen.answers
    # Queries for all objects were sent, and given up.
    assert total(metrics, 'gma_rule_narrow_requests_total{reason="failed"}') > 0
    # Every hostile server was asked, and none gave a value, except the one that may: a delegate
    # decides about the values of metrics that only it has.
    assert answers["lying_metric", 200] > 0, answers
    silent = [name for name in delegated() if name != "lying_metric"]
    for name in (*(f"{kind}_metric" for kind in STORE if kind != "many"), *silent):
        assert answers[name, 200] == 0, answers
        assert sum(answers[name, status] for status in (404, 502, 503, 504)), answers
    # A request that comes from a delegate is not delegated again.
    assert answers["loop", 508] > 0, answers
    log = attacked.serving.log
    assert "secret-of-delegates" not in str(log)
    assert any(row["event"] == "rule left out" for row in log)


def total(metrics: str, name: str) -> float:
    """The sum of a counter over its labels."""
    lines = (line for line in metrics.splitlines() if line.startswith(name))
    return sum(float(line.rpartition(" ")[2]) for line in lines)


def delegated() -> Iterator[str]:
    """The metrics of the delegates."""
    yield from (f"{kind}_delegated" for kind in DELEGATES if kind != "lying")
    yield "lying_metric"


def asked(attacked: Siege) -> Counter[tuple[str, int]]:
    """Ask for every metric of the hostile servers, each by two clients; returns the statuses."""
    statuses: Counter[tuple[str, int]] = Counter()
    over, lock = threading.Event(), threading.Lock()
    base = QUESTION.rpartition("/")[0]

    def client(name: str, path: str, headers: dict[str, str]) -> None:
        with attacked.serving.client() as http:
            http.timeout = httpx.Timeout(30)
            while not over.wait(0.05):
                status = http.get(f"{base}/{path}", headers=headers).status_code
                with lock:
                    statuses[name, status] += 1

    names = [*(f"{kind}_metric" for kind in STORE), *delegated()]
    rows: list[tuple[str, str, dict[str, str]]] = [(name, name, {}) for name in names * 2]
    rows.append(("loop", "slow_delegated", {DELEGATED: "1"}))
    threads = [threading.Thread(target=client, args=row, daemon=True) for row in rows]
    for thread in threads:
        thread.start()
    attacked.observe(SECONDS)
    over.set()
    for thread in threads:
        thread.join(60)
    return statuses
