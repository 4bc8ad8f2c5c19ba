"""The scrape source against real servers, well-behaved and not."""

from __future__ import annotations

import asyncio
import gzip
import time
from dataclasses import replace
from pathlib import Path

import pytest

from adapter.pipeline.cluster.index import PodIndex
from adapter.pipeline.cluster.pod import ContainerPort, Pod, PodRef
from adapter.pipeline.exposition.pagelayout import LayoutSamples
from adapter.pipeline.exposition.samples import ScrapeResult
from adapter.pipeline.sources.errors import CredentialError
from adapter.pipeline.sources.scrape.discovery import DiscoveryRule
from adapter.pipeline.sources.scrape.options import ScrapeOptions
from adapter.pipeline.sources.scrape.source import ScrapeSource
from adapter.pipeline.sources.scrape.target import ScrapeTarget, TargetState
from apiservice.kube.reflector import EventType
from apiservice.labels.selector import parse
from apiservice.runtime.steps import Steps
from tests.adapter.pipeline.sources.conftest import (
    Recorder,
    Reply,
    Web,
    answer,
    drip,
    hang,
    large,
    running,
    settled,
)
from tests.adapter.world import make_pod
from tests.apiservice.pki import Authority, server_context

PAGE = b'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1",pod="p",namespace="n"} 87\n'
OPTIONS = ScrapeOptions(interval=0.02, timeout=5.0, max_backoff=0.04)


def source(web: Web, sink: Recorder, *paths: str, options: ScrapeOptions = OPTIONS) -> ScrapeSource:
    targets = tuple(ScrapeTarget(web.url(path), node="gpu-1") for path in paths or ("/metrics",))
    return ScrapeSource(replace(options, targets=targets), sink)


def state(made: ScrapeSource, url: str) -> TargetState:
    return next(target_state for target, target_state in made.states.items() if target.url == url)


async def test_a_page_becomes_a_scrape_result(web: Web, sink: Recorder) -> None:
    web.replies["/metrics"] = answer(PAGE)
    before = time.time()
    made = source(web, sink)
    async with running(made.run):
        await sink.until(lambda: len(sink.results) > 0)
        target_state = state(made, web.url())
        assert (target_state.samples, target_state.last_error) == (1, "")
    result = sink.results[0]
    assert (result.origin, result.node, result.pod) == (web.url(), "gpu-1", None)
    row = result.samples[0]
    assert (row.name, row.value) == ("DCGM_FI_DEV_GPU_UTIL", 87.0)
    assert row.labels["UUID"] == "GPU-1"
    assert before <= row.time <= result.received <= time.time()
    assert made.problem(time.time()) is None


async def test_scrapes_repeat_on_one_connection(web: Web, sink: Recorder) -> None:
    web.replies["/metrics"] = answer(PAGE)
    async with running(source(web, sink).run):
        await sink.until(lambda: len(sink.results) >= 4)
    assert web.connections == 1
    pages = [result.samples for result in sink.results if isinstance(result.samples, LayoutSamples)]
    assert len(pages) == len(sink.results)
    assert len({id(page.layout) for page in pages}) == 1, "one text must have one layout"


async def test_a_compressed_page_is_read(web: Web, sink: Recorder) -> None:
    web.replies["/metrics"] = answer(gzip.compress(PAGE), headers="Content-Encoding: gzip\r\n")
    async with running(source(web, sink).run):
        await sink.until(lambda: len(sink.results) > 0)
    assert sink.results[0].samples[0].value == 87.0
    assert web.requests[0].headers["accept-encoding"] == "gzip"


async def test_a_page_that_calls_itself_html_is_read_if_it_parses(web: Web, sink: Recorder) -> None:
    """xpumanager#93."""
    web.replies["/metrics"] = answer(PAGE, headers="Content-Type: text/html\r\n")
    async with running(source(web, sink).run):
        await sink.until(lambda: len(sink.results) > 0)
    assert len(sink.results[0].samples) == 1


async def test_unknown_series_are_left_out(web: Web, sink: Recorder) -> None:
    web.replies["/metrics"] = answer(b'go_goroutines{a="b"} 7\n' + PAGE)
    made = ScrapeSource(
        replace(OPTIONS, targets=(ScrapeTarget(web.url()),)),
        sink,
        wanted=lambda _: {"DCGM_FI_DEV_GPU_UTIL"},
    )
    async with running(made.run):
        await sink.until(lambda: len(sink.results) > 0)
    assert [row.name for row in sink.results[0].samples] == ["DCGM_FI_DEV_GPU_UTIL"]


_GZIP = "Content-Encoding: gzip\r\n"
SMALL = replace(OPTIONS, max_bytes=1_000_000)
BAD = [
    pytest.param(answer(b"oops", "500 Internal Server Error"), "status", id="500"),
    pytest.param(answer(b"", "302 Found", headers="Location: /x\r\n"), "redirect", id="redirect"),
    pytest.param(answer(b""), "empty", id="empty"),
    pytest.param(answer(b"# HELP only comments\n"), "empty", id="comments alone"),
    pytest.param(answer(b"<html>\n<body>hello</body>\n"), "empty", id="html"),
    pytest.param(answer(b"\x00\xff\xfe garbage \x80\n" * 100), "empty", id="bytes"),
    pytest.param(answer(PAGE, length=len(PAGE) + 10), "truncated", id="connection cut"),
    pytest.param(large(lambda: answer(PAGE * 1_000_000)), "too_large", id="68 MB"),
    pytest.param(
        large(lambda: answer(gzip.compress(b"\n" * 50_000_000, 9), headers=_GZIP)),
        "too_large",
        id="gzip bomb",
    ),
    pytest.param(answer(PAGE, headers=_GZIP), "encoding", id="not the gzip it says"),
    pytest.param(answer(gzip.compress(PAGE)[:-12], headers=_GZIP), "truncated", id="cut gzip"),
    pytest.param(answer(gzip.compress(PAGE) * 2, headers=_GZIP), "encoding", id="gzip and more"),
    pytest.param(answer(PAGE, headers="Content-Encoding: br\r\n"), "encoding", id="brotli"),
    pytest.param(answer(PAGE, "999 What"), "status", id="unknown status"),
]


@pytest.mark.parametrize(("reply", "reason"), BAD)
async def test_a_bad_exporter_affects_only_its_own_samples(
    web: Web, sink: Recorder, reply: Reply, reason: str
) -> None:
    web.replies["/bad"] = reply
    web.replies["/good"] = answer(PAGE)
    made = source(web, sink, "/bad", "/good", options=SMALL)
    async with running(made.run):
        await settled(lambda: made.failures[reason] > 0)
        seen = len(sink.results)
        await sink.until(lambda: len(sink.results) > seen)
        bad, good = state(made, web.url("/bad")), state(made, web.url("/good"))
        assert (bad.reason, bad.last_success, good.last_error) == (reason, 0.0, "")
        assert bad.last_error
    assert {result.origin for result in sink.results} == {web.url("/good")}


@pytest.mark.parametrize("reply", [hang, drip])
async def test_a_slow_exporter_times_out(web: Web, sink: Recorder, reply: Reply) -> None:
    web.replies["/slow"] = reply
    web.replies["/good"] = answer(PAGE)
    made = source(web, sink, "/slow", "/good", options=replace(OPTIONS, timeout=0.05))
    async with running(made.run):
        await settled(lambda: made.failures["timeout"] > 0)
        seen = len(sink.results)
        await sink.until(lambda: len(sink.results) > seen)
    assert {result.origin for result in sink.results} == {web.url("/good")}


async def test_a_bad_line_affects_only_itself(web: Web, sink: Recorder) -> None:
    web.replies["/metrics"] = answer(PAGE + b'broken{a="b"} what\n' + PAGE)
    async with running(source(web, sink).run):
        await sink.until(lambda: len(sink.results) > 0)
    assert len(sink.results[0].samples) == 2
    assert sum(sink.results[0].rejects.values()) == 1


class Refusing(Recorder):
    """A sink that fails at the first result."""

    def ingest(self, result: ScrapeResult) -> None:
        super().ingest(result)
        if len(self.results) == 1:
            raise RuntimeError("a bug")


async def test_a_sink_that_fails_once_does_not_end_the_scraping(web: Web) -> None:
    web.replies["/metrics"] = answer(PAGE)
    sink = Refusing()
    made = source(web, sink)
    async with running(made.run):
        await sink.until(lambda: len(sink.results) > 1)
    assert made.failures["internal"] == 1


async def test_a_source_is_settled_when_every_exporter_was_scraped(
    web: Web, sink: Recorder
) -> None:
    web.replies["/good"], web.replies["/bad"] = answer(PAGE), answer(b"", "500 No")
    made = source(web, sink, "/good", "/bad")
    assert not made.settled
    async with running(made.run):
        await settled(lambda: made.settled)
        assert made.failures["status"] > 0
        assert sink.results


async def test_a_closed_port_is_a_connection_failure(sink: Recorder) -> None:
    made = ScrapeSource(
        replace(OPTIONS, targets=(ScrapeTarget("http://127.0.0.1:1/metrics"),)), sink
    )
    async with running(made.run):
        await settled(lambda: made.failures["connect"] >= 2)
        problem = made.problem(time.time())
    assert problem is not None
    assert "127.0.0.1:1" in problem


async def test_a_recovered_exporter_is_scraped_again(web: Web, sink: Recorder) -> None:
    web.replies["/metrics"] = answer(b"", "503 Service Unavailable")
    made = source(web, sink)
    async with running(made.run):
        await settled(lambda: made.failures["status"] >= 3)
        assert sink.results == []
        web.replies["/metrics"] = answer(PAGE)
        await sink.until(lambda: len(sink.results) > 0)
        await settled(lambda: state(made, web.url()).failures == 0)


async def test_no_more_scrapes_run_at_once_than_allowed(web: Web, sink: Recorder) -> None:
    under_way = peak = 0

    async def counted(request: object, writer: asyncio.StreamWriter) -> None:
        nonlocal under_way, peak
        under_way += 1
        peak = max(peak, under_way)
        await asyncio.sleep(0)
        under_way -= 1
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(PAGE) + PAGE)

    paths = [f"/{number}" for number in range(20)]
    web.replies.update(dict.fromkeys(paths, counted))
    options = replace(OPTIONS, concurrency=3)
    async with running(source(web, sink, *paths, options=options).run):
        await sink.until(lambda: len({result.origin for result in sink.results}) == 20)
    assert peak <= 3


def exporter(web: Web, uid: str = "u", ip: str = "127.0.0.1") -> Pod:
    return make_pod(
        "dcgm",
        namespace="gpu",
        gpus={},
        uid=uid,
        node="gpu-7",
        ip=ip,
        labels={"app.kubernetes.io/name": "dcgm-exporter"},
        ports=(ContainerPort("metrics", web.port),),
    )


async def test_exporters_follow_their_pods(web: Web, sink: Recorder) -> None:
    web.replies["/metrics"] = answer(PAGE)
    pods = PodIndex()
    pods.replace([])
    made = ScrapeSource(OPTIONS, sink, pods)
    async with running(made.run):
        assert made.problem(time.time()) is None, "a cluster without exporters is well"
        pods.apply(EventType.ADDED, exporter(web))
        await sink.until(lambda: len(sink.results) > 0)
        result = sink.results[0]
        assert (result.node, result.pod) == ("gpu-7", ("gpu", "dcgm"))
        pods.apply(EventType.DELETED, exporter(web))
        assert sink.forgotten == [web.url()]
        assert not made.states


async def test_of_two_exporters_of_a_node_the_one_that_names_pods_is_scraped(
    web: Web, sink: Recorder
) -> None:
    """The operator's, which names pods, and an older one of the chart, which names none."""
    bare = b'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1"} 87\n'
    web.replies |= {"/chart": answer(bare), "/operator": answer(PAGE)}
    rules = tuple(
        DiscoveryRule(name, parse(f"app={name}"), "metrics", None, path=f"/{name}", family="nvidia")
        for name in ("chart", "operator")
    )
    pods = PodIndex()
    pods.replace(
        [
            exporter(web).replace(
                ref=PodRef("gpu", name),
                labels={"app": name},
                born=born,
                host_paths=True,
            )
            for name, born in (("chart", 1.0), ("operator", 2.0))
        ]
        + [make_pod("p", namespace="n", node="gpu-7", born=1.0)]
    )
    made = ScrapeSource(replace(OPTIONS, rules=rules), sink, pods)
    async with running(made.run):
        await sink.until(lambda: sum(r.pod == ("gpu", "operator") for r in sink.results) > 3)
        assert sink.forgotten == [web.url("/chart")]
        assert [target.pod for target in made.states] == [("gpu", "operator")]


async def test_exporters_are_compared_only_if_a_pod_holds_a_gpu(web: Web, sink: Recorder) -> None:
    web.replies["/metrics"] = answer(b'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1"} 87\n')
    pods = PodIndex()
    old = exporter(web).replace(born=1.0, host_paths=True)
    pods.replace([old, old.replace(ref=PodRef("gpu", "other"), born=2.0)])
    made = ScrapeSource(OPTIONS, sink, pods)
    async with running(made.run):
        await sink.until(lambda: len(sink.results) > 3)
        assert {result.pod for result in sink.results} == {old.ref}


async def test_no_exporter_is_chosen_before_all_pods_are_known(web: Web, sink: Recorder) -> None:
    web.replies["/metrics"] = answer(PAGE)
    theirs = exporter(web, uid="theirs").replace(ref=PodRef("a-tenant", "dcgm"))
    theirs = theirs.replace(ports=(ContainerPort("metrics", 1),))
    pods = PodIndex()
    made = ScrapeSource(OPTIONS, sink, pods)
    async with running(made.run):
        pods.apply(EventType.ADDED, theirs)
        await asyncio.sleep(0)
        assert not made.states
        assert not made.settled
        pods.replace([theirs, exporter(web).replace(host_paths=True)])
        await sink.until(lambda: len(sink.results) > 0)
        assert [target.pod for target in made.states] == [("gpu", "dcgm")]
        assert made.unscrapable == {"no_host_path": 1}


async def test_pods_known_before_the_start_are_scraped(web: Web, sink: Recorder) -> None:
    web.replies["/metrics"] = answer(PAGE)
    pods = PodIndex()
    pods.replace([exporter(web)])
    async with running(ScrapeSource(OPTIONS, sink, pods).run):
        await sink.until(lambda: len(sink.results) > 0)
    assert sink.results[0].node == "gpu-7"


async def test_a_stopped_source_ends_scrapes_and_ignores_pods(web: Web, sink: Recorder) -> None:
    web.replies["/metrics"] = answer(PAGE)
    pods = PodIndex()
    pods.replace([exporter(web)])
    async with running(ScrapeSource(OPTIONS, sink, pods).run):
        await sink.until(lambda: len(sink.results) > 0)
    seen = len(sink.results)
    pods.apply(EventType.MODIFIED, exporter(web, uid="2"))
    ours = {task for task in asyncio.all_tasks() if "ScrapeSource" in repr(task.get_coro())}
    assert (len(sink.results), ours) == (seen, set())


async def test_https_exporters_are_verified_with_the_ca_and_get_the_token(
    web: Web, sink: Recorder, tmp_path: Path
) -> None:
    web.replies["/metrics"] = answer(PAGE)
    authority = Authority("ca", time.time(), old=True)
    context = server_context(authority.server("127.0.0.1"), tmp_path)
    server = await asyncio.start_server(web.serve, "127.0.0.1", 0, ssl=context)
    url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/metrics"
    token, ca = tmp_path / "token", tmp_path / "ca.crt"
    token.write_text("one\n")
    ca.write_bytes(authority.pem)
    options = replace(OPTIONS, targets=(ScrapeTarget(url),), bearer_token_file=token)

    strange = ScrapeSource(options, sink)
    async with running(strange.run):
        await settled(lambda: strange.failures["tls"] > 0)
        (state,) = strange.states.values()
    assert "certificate verify failed" in state.last_error
    assert "set tls_config with ca_file and server_name in its entry" in state.last_error
    assert "SSLContext" not in state.last_error, "an address in memory helps nobody"
    assert web.requests == []

    trusting = ScrapeSource(replace(options, ca_file=ca), sink)
    async with running(trusting.run):
        await sink.until(lambda: len(sink.results) > 0)
        token.write_text("two, longer\n")
        await settled(lambda: web.requests[-1].headers["authorization"] == "Bearer two, longer")
        token.unlink()
        await settled(lambda: trusting.failures["credential"] > 0)
    assert web.requests[0].headers["authorization"] == "Bearer one"
    server.close()


async def test_an_unusable_ca_file_is_named(sink: Recorder, tmp_path: Path) -> None:
    ca = tmp_path / "ca.crt"
    with pytest.raises(CredentialError, match=r"ca\.crt"):
        ScrapeSource(replace(OPTIONS, ca_file=ca), sink)
    ca.write_text("no certificate")
    with pytest.raises(CredentialError, match=r"ca\.crt"):
        ScrapeSource(replace(OPTIONS, ca_file=ca), sink)


async def test_a_pods_own_page_is_marked_so_and_never_gets_the_exporters_token(
    web: Web, sink: Recorder, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("secret")
    web.replies["/exporter"] = web.replies["/own"] = answer(PAGE)
    own = ScrapeTarget(web.url("/own"), "gpu-1", PodRef("ml", "llm"), serves=True)
    options = replace(
        OPTIONS, targets=(ScrapeTarget(web.url("/exporter")), own), bearer_token_file=token
    )
    async with running(ScrapeSource(options, sink).run):
        await sink.until(lambda: len({result.origin for result in sink.results}) == 2)
    sent = {request.line.split(" ")[1]: request.headers for request in web.requests}
    assert sent["/exporter"]["authorization"] == "Bearer secret"
    assert "authorization" not in sent["/own"]
    marked = {result.origin: (result.serves, result.pod) for result in sink.results}
    assert marked[own.url] == (True, ("ml", "llm"))
    assert marked[web.url("/exporter")] == (False, None)


class Slow(Recorder):
    """A sink that ingests each result in many steps, as a store does with a large page."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.ended = asyncio.Event(), asyncio.Event()

    def steps(self, result: ScrapeResult) -> Steps[None]:
        self.begun.set()
        try:
            while True:
                time.sleep(0.003)  # longer than a slice
                yield
        finally:
            self.ended.set()


async def test_a_partly_ingested_page_is_dropped_with_its_target(web: Web) -> None:
    web.replies["/metrics"] = answer(PAGE)
    sink = Slow()
    pods = PodIndex()
    pods.replace([exporter(web)])
    async with running(ScrapeSource(OPTIONS, sink, pods).run):
        async with asyncio.timeout(90):
            await sink.begun.wait()
        pods.apply(EventType.DELETED, exporter(web))
        await sink.until(lambda: len(sink.forgotten) > 0)
        async with asyncio.timeout(90):
            await sink.ended.wait()
    assert sink.results == []


async def test_a_source_says_which_pages_are_about_a_node_and_a_pod(
    web: Web, sink: Recorder
) -> None:
    web.replies["/metrics"] = answer(PAGE)
    web.replies["/broken"] = answer(b"<html>")
    llm = PodRef("ml", "llm")
    targets = (
        ScrapeTarget(web.url("/metrics"), node="gpu-1"),
        ScrapeTarget(web.url("/broken"), node="gpu-2"),
        ScrapeTarget(web.url("/server"), pod=llm, serves=True),
    )
    made = ScrapeSource(replace(OPTIONS, targets=targets), sink)
    async with running(made.run):
        await settled(lambda: made.settled)
        (good,) = made.on_node("gpu-1")
        (broken,) = made.on_node("gpu-2")
        (server,) = made.of_pod(llm)
    assert (good.url, good.error) == (web.url("/metrics"), "")
    assert good.last_success > 0
    assert broken.error.startswith("the page has no series")
    assert server.error
    assert (made.on_node("gpu-3"), made.of_pod(PodRef("ml", "x"))) == ([], [])


@pytest.mark.parametrize(
    ("page", "program"),
    [
        (b"ollama_requests_total 3\n", "Ollama, whose requests the adapter does not read"),
        (b"vllm:lora_requests_info 1\n", "vLLM, which is supported"),
    ],
)
async def test_a_page_that_is_not_read_is_known_to_answer(
    web: Web, sink: Recorder, page: bytes, program: str
) -> None:
    web.replies["/metrics"] = answer(page)
    llm = PodRef("ml", "llm")
    target = ScrapeTarget(web.url("/metrics"), pod=llm, serves=True)
    made = ScrapeSource(
        replace(OPTIONS, targets=(target,)), sink, wanted=lambda _: frozenset({"known"})
    )
    async with running(made.run):
        await settled(lambda: made.settled)
        (server,) = made.of_pod(llm)
    assert server.unknown
    assert f"it looks like {program}" in server.error
