"""``/api/range``: the time before the page was started, from Prometheus."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, cast

import pytest

from adapter.pipeline.sources.prometheus.options import PrometheusOptions
from adapter.pipeline.sources.prometheus.seriesreader import SeriesReader
from adapter.tools.client.errors import ClientError
from adapter.tools.ui import data, prometheusrange
from adapter.tools.ui.connection import ClusterConnection
from adapter.tools.ui.data import PageData
from adapter.tools.ui.explanations import Explained
from adapter.tools.ui.history import HpaHistory
from adapter.tools.ui.idlewatch import IdleWatch
from adapter.tools.ui.options import UiOptions
from adapter.tools.ui.run import past_of
from tests.adapter.pageserver import PageServer
from tests.adapter.pipeline.sources.prometheus.engines import Pages, engine, scrape_config, serving
from tests.adapter.tools.ui.page import eventually
from tests.needs import PROMETHEUS, needs

HPA = "kube_horizontalpodautoscaler"
LLM = 'namespace="chat",horizontalpodautoscaler="llm"'
OTHER = 'namespace="chat",horizontalpodautoscaler="other"'
METRIC = 'metric_name="gpu_utilization",metric_target_type="average"'
PAGE = f"""\
{HPA}_status_current_replicas{{{LLM}}} 3
{HPA}_status_desired_replicas{{{LLM}}} 4
{HPA}_status_target_metric{{{LLM},{METRIC}}} 92
{HPA}_spec_target_metric{{{LLM},{METRIC}}} 70
{HPA}_status_current_replicas{{{OTHER}}} 9
"""


@contextmanager
def answering(body: bytes, status: int = 200, wait: float = 0.0) -> Iterator[str]:
    """The URL of a server that answers each request so."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            time.sleep(wait)
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            return

    server = PageServer(Handler)
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.close()


def matrix(*values: Any, metric: Any = None) -> bytes:
    series = {"metric": metric or {}, "values": list(values)}
    content = {"resultType": "matrix", "result": [series]}
    return json.dumps({"status": "success", "data": content}).encode()


async def asked(url: str) -> Explained:
    reader = prometheusrange.range_reader(PrometheusOptions(url))
    page = PageData(HpaHistory(), cast("IdleWatch", None), cast("ClusterConnection", None), reader)
    try:
        return await page.range("chat/llm", "60")
    finally:
        await reader.close()


async def test_points_of_one_time_are_one_row_and_what_is_not_finite_is_missing() -> None:
    with answering(matrix([100, "1.5"], [115, "NaN"], [130, "+Inf"])) as url:
        answer = await asked(url)
    points = {"time": [100.0]} | {key: [1.5] for key in ("value", "goal", "current", "desired")}
    assert (answer.status, answer.body) == (200, {"chat/llm": points})


BAD = {
    "a value that is not a number": (matrix([1, "many"]), "no usable sample", "4 bad_value"),
    "a value of another type": (matrix([1, {"a": 1}]), "no usable sample", "4 bad_series"),
    "a time that is not a number": (matrix(["noon", "1"]), "no usable sample", "4 bad_series"),
    "a page of another server": (b"<html>login</html>", "query API's", "it begins '<html>login"),
    "an answer that is cut": (matrix([1, "1"])[:-9], "query API's", "truncated"),
}


@pytest.mark.parametrize("name", BAD)
async def test_an_answer_of_another_form_names_prometheus_and_the_cause(name: str) -> None:
    body, *words = BAD[name]
    with answering(body) as url:
        answer = await asked(url)
    assert answer.status == 502
    text = str(answer.body["error"])
    assert text.startswith(f"Prometheus at {url}")
    assert all(word in text for word in words)
    assert "\n" not in text
    assert "cluster" not in text


async def test_what_prometheus_says_about_its_failure_is_shown_in_one_line() -> None:
    body = b'{"status":"error","errorType":"execution","error":"would load\\ntoo many samples"}'
    with answering(body, status=422) as url:
        answer = await asked(url)
    assert answer.body == {
        "error": f"Prometheus at {url}/api/v1/query: HTTP status 422: execution: would load "
        "too many samples"
    }


async def test_the_login_of_the_configuration_is_sent(tmp_path: Path) -> None:
    asked_with: list[str] = []
    (tmp_path / "password").write_text("s3cret-word\n")
    file = tmp_path / "config.yaml"
    file.write_text(
        "source: {prometheus: {username: ui, tenant: blue, "
        f"password_file: {tmp_path / 'password'}}}}}\n"
    )

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            asked_with.append(f"{self.headers['Authorization']} {self.headers['X-Scope-OrgID']}")
            self.send_response(403)
            self.end_headers()
            self.wfile.write(asked_with[-1].encode())

        def log_message(self, *_: object) -> None:
            return

    server = PageServer(Handler)
    url = f"http://127.0.0.1:{server.server_port}"
    past = past_of(UiOptions(prometheus=url, config=file))
    assert past is not None
    reader = prometheusrange.range_reader(past)
    try:
        with pytest.raises(ClientError, match="--config") as caught:
            await prometheusrange.read_range(reader, "chat", "llm", 600)
    finally:
        await reader.close()
        server.close()
    token = base64.b64encode(b"ui:s3cret-word").decode()
    assert set(asked_with) == {f"Basic {token} blue"}
    assert token not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"prometheus": "prometheus:9090"}, "--prometheus"),
        ({"config": Path("/nowhere.yaml")}, "/nowhere.yaml"),
    ],
)
def test_what_names_no_query_api_is_said_at_the_start(given: Any, said: str) -> None:
    with pytest.raises(ClientError, match=said):
        past_of(UiOptions(**given))


async def test_a_prometheus_without_the_hpa_is_404_and_names_kube_state_metrics() -> None:
    with answering(b'{"status":"success","data":{"resultType":"matrix","result":[]}}') as url:
        answer = await asked(url)
    assert answer.status == 404
    assert str(answer.body["error"]).endswith("check that it scrapes kube-state-metrics")


async def test_a_prometheus_that_is_not_reached_names_the_option() -> None:
    answer = await asked("http://127.0.0.1:1")
    assert answer.status == 502
    assert "cannot connect to 127.0.0.1:1" in str(answer.body["error"])
    assert str(answer.body["error"]).endswith("check --prometheus")


async def test_an_answer_beyond_its_bytes_and_its_time_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(prometheusrange, "MOST_BYTES", 1 << 20)
    with answering(b" " * ((1 << 20) + 1)) as url:
        answer = await asked(url)
    assert "above 1048576 bytes; ask for a shorter time" in str(answer.body["error"])
    monkeypatch.setattr(prometheusrange, "LONGEST", 0.1)
    with answering(b"", wait=1.0) as url:
        answer = await asked(url)
    assert answer.status == 504
    assert "no answer in time; ask for a shorter time" in str(answer.body["error"])


@pytest.mark.parametrize(
    ("hpa", "minutes", "status"),
    [
        ("llm", "60", 400),
        ("/llm", "60", 400),
        ("chat/llm", "0", 400),
        ("chat/llm", "x", 400),
        ("chat/llm", "10081", 400),
    ],
)
async def test_a_request_without_a_name_or_a_time_is_400(
    hpa: str, minutes: str, status: int
) -> None:
    page = PageData(
        HpaHistory(),
        cast("IdleWatch", None),
        cast("ClusterConnection", None),
        cast("SeriesReader", object()),
    )
    assert (await page.range(hpa, minutes)).status == status


async def test_four_hpas_are_asked_about_at_once_and_a_further_one_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = most = 0
    go = asyncio.Event()

    async def read(*_: object) -> dict[str, Any]:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await go.wait()
        now -= 1
        return {}

    monkeypatch.setattr(data, "read_range", read)
    page = PageData(
        HpaHistory(),
        cast("IdleWatch", None),
        cast("ClusterConnection", None),
        cast("SeriesReader", object()),
    )
    tasks = [asyncio.create_task(page.range(f"chat/llm-{n}", "60")) for n in range(6)]
    await eventually(lambda: now == 4)
    go.set()
    assert [answer.status for answer in await asyncio.gather(*tasks)] == [200] * 6
    assert most == 4


@needs(PROMETHEUS)
async def test_a_real_prometheus_gives_value_target_and_replicas(tmp_path: Path) -> None:
    with serving(Pages({"/metrics": PAGE})) as pages:
        jobs = [{"job_name": "ksm", "honor_labels": True}]
        with engine("prometheus", tmp_path, scrape_config(pages.port, jobs)) as url:
            points = await _eventually(url)
            reader = prometheusrange.range_reader(PrometheusOptions(url))
            missing = PageData(
                HpaHistory(), cast("IdleWatch", None), cast("ClusterConnection", None), reader
            )
            unknown = await missing.range("chat/none", "60")
            await reader.close()
    assert [points[key][-1] for key in ("value", "goal", "current", "desired")] == [92, 70, 3, 4]
    assert abs(points["time"][-1] - time.time()) < 120
    assert unknown.status == 404


async def _eventually(url: str) -> Any:
    """The points of the HPA, once Prometheus has scraped them."""
    reader = prometheusrange.range_reader(PrometheusOptions(url))
    async with asyncio.timeout(120), AsyncExitStack() as stack:
        stack.push_async_callback(reader.close)
        while True:
            try:
                return await prometheusrange.read_range(reader, "chat", "llm", 600)
            except ClientError as error:
                if error.status != 404:
                    raise
                await asyncio.sleep(0.2)
