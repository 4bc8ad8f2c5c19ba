"""``replay hpa --from-prometheus``: a real Prometheus with the samples of a recorded cluster."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from email.message import Message
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
import yaml

from adapter.pipeline.sources.prometheus.options import PrometheusOptions
from adapter.tools.replay import storequeries
from adapter.tools.replay.storequeries import StoreQueries
from tests.adapter.commandline import Ended, invoke
from tests.adapter.pageserver import PageServer
from tests.adapter.tools.replay.day import ServerDay, manifest, waves, write
from tests.adapter.tools.replay.storedcluster import StoredCluster
from tests.needs import PROMETHEUS, PROMTOOL, needs

VALUES = {"values": {"window": 15, "collect_interval": 15}}
DAY = ServerDay(
    waves,
    syncs=960,
    period=15.0,
    hpa=manifest("30"),
    patience=30.0,
    settings={**VALUES, "source": {"kind": "prometheus"}},
)
"""Four hours, with a sync and a page every 15 seconds."""
UNTIL = "2026-09-21T18:30"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recording, the HPA's manifest and the configuration of `serve`."""
    folder = tmp_path_factory.mktemp("store")
    write(folder / "day.gma", DAY)
    (folder / "hpa.yaml").write_text(yaml.safe_dump(DAY.hpa))
    (folder / "config.yaml").write_text(yaml.safe_dump(VALUES))
    return folder


def replay(folder: Path, *arguments: str, name: str = "ml/llm") -> Ended:
    return invoke("replay", "hpa", name, "-f", str(folder / "hpa.yaml"), *arguments)


def of_store(folder: Path, url: str, *arguments: str) -> Ended:
    config = ("--config", str(folder / "config.yaml"), "--since", "5h", "--until", UNTIL)
    return replay(folder, "--from-prometheus", url, *config, *arguments)


def found(done: Ended) -> dict[str, Any]:
    assert done.code == 0, done.output
    made: dict[str, Any] = json.loads(done.output)
    return made


@needs(PROMETHEUS, PROMTOOL)
def test_a_store_gives_the_table_of_the_recording(folder: Path, tmp_path: Path) -> None:
    tried = ("--target", "45,60", "-o", "json")
    whole = found(replay(folder, "--from", str(folder / "day.gma"), *tried))
    file = tmp_path / "read.gma"
    with StoredCluster().scrape(DAY.events()).prometheus(tmp_path / "prometheus") as url:
        stored = found(of_store(folder, url, *tried, "--record", str(file)))
    # The scrapes of kube-state-metrics are 30 seconds apart: the controller decided in between.
    agreement = stored["agreement"]
    assert agreement["equal"] == agreement["compared"] == agreement["equalValues"] > 100
    assert agreement["atTheEndOfAWindow"] < 0.1 * agreement["compared"]
    for mine, theirs in zip(
        [stored["recorded"], *stored["variants"]],
        [whole["recorded"], *whole["variants"]],
        strict=True,
    ):
        assert mine["gpuHours"] == pytest.approx(theirs["gpuHours"], rel=0.02)
        assert mine["overLimitSeconds"] == pytest.approx(theirs["overLimitSeconds"], rel=0.1)
        assert mine["highestReplicas"] == theirs["highestReplicas"]
        assert abs(mine["changes"] - theirs["changes"]) <= 3
    assert abs(stored["bootSeconds"] - whole["bootSeconds"]) <= 30
    for mine, theirs in zip(stored["queue"]["metrics"], whole["queue"]["metrics"], strict=True):
        assert mine["metric"] == theirs["metric"]
        assert mine["probabilityHigher"] == pytest.approx(theirs["probabilityHigher"], abs=0.05)
        assert theirs["probabilityHigher"] > 0.7
    # What was read is a recording of its own, and gives the same report.
    assert found(replay(folder, "--from", str(file), *tried)) == stored
    again = of_store(folder, "http://localhost:1", "--record", str(file))
    assert again.output.endswith("read.gma is not empty: name a new file with --record\n")


@contextmanager
def answering(status: int, body: bytes, seen: list[Message] | None = None) -> Iterator[str]:
    """A server that gives one answer to every request, and keeps the requests' headers."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            if seen is not None:
                seen.append(self.headers)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            return

    server = PageServer(Handler)
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.close()


def matrix(**more: Any) -> bytes:
    data = {"resultType": "matrix", "result": []}
    return json.dumps({"status": "success", "data": data, **more}).encode()


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (200, b"<html>sign in</html>", "the answer is not the query API's"),
        (401, b"no", "check the token, password, role and tenant"),
        (404, b"", "HTTP status 404; check the URL's path prefix"),
        (
            200,
            matrix(),
            "UTC no kube_horizontalpodautoscaler_status_desired_replicas of HPA ml/llm",
        ),
        (200, matrix(warnings=["no store"]), "answers are partial (no store), and left out"),
        (422, b'{"status":"error","errorType":"execution","error":"too many"}', "too many"),
    ],
    ids=["html", "denied", "path", "empty", "partial", "limit"],
)
def test_a_store_that_cannot_be_used_is_one_line(
    folder: Path, status: int, body: bytes, said: str
) -> None:
    with answering(status, body) as url:
        done = of_store(folder, url)
    assert done.code == 2
    assert said in done.output
    assert url in done.output
    assert done.output.count("\n") == 1


def test_the_login_of_the_configuration_is_used(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("opaque")
    store = {"bearer_token_file": str(tmp_path / "token"), "tenant": "team"}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump({"source": {"prometheus": store}}))
    seen: list[Message] = []
    with answering(200, matrix(), seen) as url:
        config = ("--config", str(tmp_path / "config.yaml"), "--since", "1h")
        replay(folder, "--from-prometheus", url, *config)
    assert seen
    for headers in seen:
        assert headers["Authorization"] == "Bearer opaque"
        assert headers["X-Scope-OrgID"] == "team"


@pytest.mark.parametrize(
    ("bound", "said"),
    [
        ("storequeries.MOST_BYTES", "the answer is above 50 bytes"),
        ("storespans.MOST_BYTES", "the answers about 56.25 s have over 0 MiB"),
    ],
)
def test_answers_that_are_too_large_for_the_shortest_span_are_one_line(
    folder: Path, bound: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"adapter.tools.replay.{bound}", 50)
    with answering(200, matrix()) as url:
        done = of_store(folder, url)
    assert done.code == 2
    assert said in done.output
    assert done.output.count("\n") == 1


async def test_the_largest_answer_takes_a_bounded_part_of_memory() -> None:
    """One of 256 MiB took 1.4 GB."""
    head = b'{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":['
    sample = b'[1e9,"1"],'
    body = head + sample * ((storequeries.MOST_BYTES - 200) // len(sample)) + b'[1e9,"1"]]}]}}'
    assert len(body) < storequeries.MOST_BYTES
    with answering(200, body) as url:
        queries = StoreQueries(PrometheusOptions(url, 60))
        tracemalloc.start()
        try:
            read = await queries.read("up", 0.0, 2e9)
            assert tracemalloc.get_traced_memory()[1] < 420 << 20
        finally:
            tracemalloc.stop()
            await queries.close()
    assert read.size == len(body)


def test_an_unreachable_store_is_one_line(folder: Path) -> None:
    done = of_store(folder, "http://127.0.0.1:1")
    assert done.code == 2
    assert "cannot connect to 127.0.0.1:1" in done.output
    assert done.output.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "name what to read, with either --from PATH or --from-prometheus URL"),
        (("--from", "x", "--from-prometheus", "y"), "either --from PATH or --from-prometheus"),
        (("--from", __file__, "--since", "1d"), "--since is about a store: use it with"),
        (
            ("--from-prometheus", "http://a", "--since", "93d"),
            "--since has to be above 0, and at",
        ),
        (("--from", __file__, "--config", "y"), "--config is about a store or saved pages: use"),
        (("--from-prometheus", "http://a", "--until", "2999-01-01"), "--until is in the future"),
        (("--from-prometheus", "a"), "--from-prometheus"),
        (("--from-prometheus", "http://a", "--until", "x"), "'x': write a time such as 2026-"),
        (("--from-prometheus", "http://a", "--config", "none.yaml"), "none.yaml"),
    ],
)
def test_wrong_options_are_named(folder: Path, arguments: tuple[str, ...], said: str) -> None:
    done = replay(folder, *arguments)
    assert done.code == 2
    assert said in done.output


@needs(PROMETHEUS, PROMTOOL)
@pytest.mark.parametrize(
    "name",
    [
        "kube_pod_info",
        "kube_pod_status_phase",
        "kube_pod_status_ready",
        "kube_pod_created",
        "kube_replicaset_owner",
        "kube_pod_container_resource_requests",
        "DCGM_FI_DEV_GPU_UTIL",
    ],
)
def test_a_series_that_is_missing_is_named(folder: Path, tmp_path: Path, name: str) -> None:
    day = replace(DAY, syncs=20)
    store = StoredCluster(without=(name,)).scrape(day.events())
    with store.prometheus(tmp_path) as url:
        done = of_store(folder, url)
    assert done.code == 2
    assert f"UTC no {name} of" in done.output or f"no sample of {name}" in done.output
    assert done.output.count("\n") == 1
