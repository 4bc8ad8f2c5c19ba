"""``inference_slo_ratio`` through the APIs: from servers' pages and a promise to a value."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from typing import Any

import pytest

from adapter.answers.api.external import GpuExternalMetrics
from adapter.answers.api.provider import GpuMetricsProvider
from adapter.answers.keda.errors import BadTrigger
from adapter.answers.keda.trigger import compile_trigger
from adapter.answers.promises.capacity import ENOUGH
from adapter.answers.promises.ratios import (
    _OF_ALL,
    _OF_NAMESPACE,
    PATIENCE,
    PodQuestion,
    PromisedRatios,
)
from adapter.pipeline.attribution.reading import Absence, Reading
from adapter.pipeline.catalog.promise import SLO_RATIO, PromiseError, promise_in
from adapter.pipeline.cluster.lookup import PODS
from adapter.pipeline.cluster.pod import Owner, Pod
from adapter.pipeline.cluster.workload import Workload
from adapter.pipeline.store.snapshot import Snapshot
from apiservice.errors import BadQuery, MetricNotFound, Unavailable
from apiservice.labels.selector import parse
from apiservice.provider import ExternalQuery, GroupResource, ObjectQuery
from apiservice.runtime.steps import at_once
from tests.adapter.answers.view.viewer import Viewer, reasons
from tests.adapter.world import CATALOG, World, make_pod

START = 1_700_000_000.0
BOUNDS = (0.25, 0.5, 1.0, 2.5)
PROMISE = "ttft_p90=1s"


def page(running: float, kept: int, late: int, *, waiting: float = 0, tokens: int = 0) -> str:
    """A page of vLLM with requests below and above a second since the start."""
    labels = 'engine="0",model_name="opal-7b"'
    name = "vllm:time_to_first_token_seconds"
    counts = (0, kept, kept, kept + late)
    buckets = "".join(
        f'{name}_bucket{{le="{bound}",{labels}}} {count}\n'
        for bound, count in zip((*BOUNDS, "+Inf"), (*counts, counts[-1]), strict=True)
    )
    return (
        f"vllm:num_requests_running{{{labels}}} {running}\n"
        f"vllm:num_requests_waiting{{{labels}}} {waiting}\n"
        f"vllm:generation_tokens_total{{{labels}}} {tokens}\n"
        f"{buckets}{name}_sum{{{labels}}} 1\n{name}_count{{{labels}}} {counts[-1]}\n"
    )


class Servers(World):
    """Pods of Deployment ``llm``, each on its own node, whose pages are read every 15 seconds."""

    def __init__(self, *names: str, gpus: Mapping[str, str] | None = None) -> None:
        pods = [
            make_pod(
                name,
                gpus={},
                node=f"node-{name}",
                labels={"app": "llm", "pod-template-hash": "abc"},
                owner=Owner("apps/v1", "ReplicaSet", "llm-abc"),
            )
            for name in names
        ]
        types = {f"node-{name}": gpu for name, gpu in (gpus or {}).items()}
        super().__init__(*pods, nodes={n: {"nvidia.com/gpu.product": t} for n, t in types.items()})
        ratios = PromisedRatios(self.index)
        self.custom = GpuMetricsProvider(self.catalog, self.store, self.objects, ratios)
        self.external = GpuExternalMetrics(
            self.catalog, self.store, self.objects, self.custom.absent, ratios
        )
        self.names = names
        self.kept = dict.fromkeys(names, 0)
        self.late = dict.fromkeys(names, 0)
        self.now = START

    def serve(self, name: str, running: float, kept: int = 0, late: int = 0, **more: float) -> None:
        """Put a pod's next page."""
        self.kept[name] += kept
        self.late[name] += late
        text = page(running, self.kept[name], self.late[name], waiting=more.get("waiting", 0))
        self.scrape(text, self.now, origin=f"http://{name}:8000", pod=("ml", name), serves=True)

    def live(self, seconds: float, running: float, kept: int, late: int = 0) -> None:
        """Serve a load on every pod, and ask as an HPA does, every 15 seconds.

        Args:
            kept: requests of a pod in 15 seconds that keep the promise.
            late: those that do not.
        """
        for _ in range(round(seconds / 15)):
            self.now += 15
            for name in self.names:
                self.serve(name, running, kept, late)
            self.ratios()

    def ratios(self, promise: str = PROMISE) -> dict[str, float]:
        """What the HPA's Pods metric gets, by pod."""
        query = ObjectQuery(
            GroupResource("pods", ""), "ml", None, SLO_RATIO, parse("app=llm"), parse(promise)
        )
        answer = at_once(self.custom.values(query, self.now))
        return {item.described.name: item.milli / 1000 for item in answer.items}

    def why(self, name: str, promise: str = PROMISE) -> Reading | Absence:
        """The value of a pod with its note, or why there is none."""
        pod = self.index.get("ml", name)
        assert pod is not None
        question = PodQuestion(
            CATALOG.metrics[SLO_RATIO], parse(promise), self.store.snapshot, self.now
        )
        return at_once(self.custom._ratios.about([pod], question))(pod)


def reason(value: Reading | Absence) -> str:
    """Why there is no value."""
    assert isinstance(value, Absence)
    return value.reason


def learned(*names: str) -> Servers:
    """Servers that have shown that the promise breaks between 16 and 32 requests."""
    servers = Servers(*names)
    servers.live(300, 8, 40)
    servers.live(300, 16, 80)
    servers.live(300, 32, 60, 60)
    servers.live(300, 8, 40)
    return servers


def test_a_load_is_served_as_a_part_of_the_capacity_that_was_learned() -> None:
    servers = learned("a", "b")
    low = servers.ratios()
    assert set(low) == {"a", "b"}
    assert 0.2 < low["a"] < 0.6
    servers.live(120, 16, 80)
    high = servers.ratios()
    assert low["a"] * 1.5 < high["a"] < 1.1


def test_the_value_says_what_decided_it() -> None:
    servers = learned("a")
    value = servers.why("a")
    assert isinstance(value, Reading)
    assert re.fullmatch(
        r"load 8 of capacity [12][0-9.]+ at ttft_p90 1s, seen to break \([0-9]+ requests\); "
        r"measured latency 0\.[0-9]+ of the promise; decided by load",
        value.note,
    )


def test_what_one_pod_taught_holds_for_a_new_one_of_the_workload() -> None:
    servers = learned("a")
    servers.put(
        make_pod(
            "new",
            gpus={},
            labels={"app": "llm", "pod-template-hash": "def"},
            owner=Owner("apps/v1", "ReplicaSet", "llm-def"),
        )
    )
    servers.names, servers.kept["new"], servers.late["new"] = ("a", "new"), 0, 0
    servers.live(90, 8, 40)
    ratios = servers.ratios()
    assert ratios["new"] == ratios["a"]


def test_a_faster_gpu_has_its_own_capacity() -> None:
    servers = Servers("a", "b", gpus={"a": "NVIDIA-A10", "b": "NVIDIA-H100"})
    for running, late in ((8, 0), (16, 60)):
        for _ in range(20):
            servers.now += 15
            servers.serve("a", running, 60 - late // 2, late)
            servers.serve("b", running, 60)
            servers.ratios()
    servers.live(120, 8, 40)
    ratios = servers.ratios()
    assert ratios["a"] > 1.2 * ratios["b"]


def test_without_evidence_there_is_no_value_for_a_while_and_then_the_cautious_rule() -> None:
    servers = Servers("a")
    servers.live(PATIENCE - 15, 12, 1)
    assert reason(servers.why("a")) == "promise_learning"
    assert servers.ratios() == {}
    servers.live(60, 12, 1)
    assert servers.ratios() == {"a": 0.5}
    value = servers.why("a")
    assert isinstance(value, Reading)
    assert "is not known yet" in value.note
    assert "cautious rule: 12 running of 24, 0 waiting of 4" in value.note


def test_a_broken_promise_scales_out_although_nothing_is_known() -> None:
    servers = Servers("a")
    servers.live(75, 12, 0, 4)
    value = servers.why("a")
    assert isinstance(value, Reading)
    assert value.value == 1.5
    assert value.note.endswith("decided by measured latency")


def test_a_promise_that_no_load_keeps_is_said() -> None:
    servers = Servers("a")
    servers.live(600, 1, 2, 40)
    value = servers.why("a")
    assert isinstance(value, Reading)
    assert "no load that was seen keeps ttft_p90 1s" in value.note


def test_questions_between_two_pages_teach_nothing() -> None:
    once, often = Servers("a"), Servers("a")
    for servers, times in ((once, 1), (often, 20)):
        for turn in range(40):
            servers.now += 15
            servers.serve("a", 8, 40)
            for ask in range(times):
                servers.now += 0.01
                servers.ratios()
                # Another exporter's page is a new snapshot, and no new window.
                servers.scrape("up 1\n", servers.now, origin=f"http://other{turn}-{ask}")
    first, second = once.why("a"), often.why("a")
    assert isinstance(first, Reading)
    assert isinstance(second, Reading)
    assert first.value == pytest.approx(second.value, rel=0.01)


def test_objects_and_external_metrics_and_their_aggregates() -> None:
    servers = learned("a", "b")
    ratios = servers.ratios()
    deployment = ObjectQuery(
        GroupResource("deployments", "apps"), "ml", "llm", SLO_RATIO, parse(""), parse(PROMISE)
    )
    (item,) = at_once(servers.custom.values(deployment, servers.now)).items
    assert item.milli / 1000 == pytest.approx(sum(ratios.values()) / 2, abs=0.001)
    for selector, values in (
        (f"app=llm,{PROMISE}", [ratios["a"], ratios["b"]]),
        (f"app=llm,{PROMISE},aggregate=max", [max(ratios.values())]),
    ):
        query = ExternalQuery("ml", SLO_RATIO, parse(selector))
        series = at_once(servers.external.values(query, servers.now)).items
        assert [value.milli / 1000 for value in series] == values


@pytest.mark.parametrize(
    ("selector", "error"),
    [
        ("", "inference_slo_ratio has no promise: add one, such as ttft_p90: 1s"),
        ("ttft_p90=soon", "promise ttft_p90: 'soon' is not a duration"),
        ("ttft_p90 in (1s,2s)", "promise ttft_p90: write one value with =, such as ttft_p90=1s"),
        ("ttft_p90=1s,ttft_p90=2s", "promise ttft_p90 is given more than once"),
        ("ttft_p90", "promise ttft_p90: write one value with ="),
        ("model=H100", "promise 'model' is not known"),
    ],
)
def test_a_wrong_promise_is_refused_with_the_fix_everywhere(selector: str, error: str) -> None:
    servers = Servers("a")
    with pytest.raises(BadQuery, match=re.escape(error)):
        servers.ratios(selector)
    metadata = {"metric": SLO_RATIO, "target": "1", "metricSelector": selector}
    if not selector:
        del metadata["metricSelector"]
    with pytest.raises(BadTrigger, match=re.escape(f"metricSelector: {error}")):
        compile_trigger(metadata, CATALOG.metrics)
    if "=" in selector and "model" not in selector:
        with pytest.raises(PromiseError, match=re.escape(error)):
            at_once(
                servers.external.values(
                    ExternalQuery("ml", SLO_RATIO, parse(f"app=llm,{selector}")), START
                )
            )


def test_a_misspelt_promise_of_an_external_metric_is_not_a_label_of_pods() -> None:
    servers = Servers("a")
    query = ExternalQuery("ml", SLO_RATIO, parse("app=llm,tttf_p90=1s"))
    with pytest.raises(BadQuery, match="promise 'tttf_p90' is not known"):
        at_once(servers.external.values(query, START))


def test_a_server_without_the_histogram_has_no_value_and_says_which_is_missing() -> None:
    servers = Servers("a")
    servers.live(60, 8, 40)
    servers.ratios("itl_p90=50ms")
    assert reason(servers.why("a", "itl_p90=50ms")) == "reading_begins"
    servers.live(150, 8, 40)
    servers.ratios("itl_p90=50ms")
    value = servers.why("a", "itl_p90=50ms")
    assert reason(value) == "promise_not_measured"
    assert isinstance(value, Absence)
    assert value.detail == (
        "no histogram of inference_time_per_output_token_seconds on the page, for itl_p90"
    )
    query = ObjectQuery(
        GroupResource("pods", ""), "ml", "a", SLO_RATIO, parse(""), parse("itl_p90=50ms")
    )
    with pytest.raises(MetricNotFound, match="promise_not_measured"):
        at_once(servers.custom.values(query, servers.now))


def test_a_pod_whose_page_was_never_read_has_the_reason_of_its_queue() -> None:
    servers = Servers("a")
    assert reason(servers.why("a")) == reason(
        servers.read("a", "inference_requests_running", servers.now)
    )
    query = ExternalQuery("ml", SLO_RATIO, parse(f"app=llm,{PROMISE}"))
    answer = at_once(servers.external.values(query, servers.now)).items
    assert answer == []


def test_a_pod_that_is_not_ready_is_left_out_of_what_is_learned() -> None:
    servers = learned("a")
    servers.put(
        make_pod(
            "cold",
            gpus={},
            ready=False,
            labels={"app": "llm", "pod-template-hash": "abc"},
            owner=Owner("apps/v1", "ReplicaSet", "llm-abc"),
        )
    )
    assert set(servers.ratios()) == {"a"}
    assert reason(servers.why("cold")) == "pod_not_ready"


def test_a_pod_that_goes_while_the_question_is_answered_has_no_value() -> None:
    """Not the number of its requests, which would be many times the ratio."""
    servers = learned("a", "b")
    pod = servers.index.get("ml", "b")
    assert pod is not None
    servers.now += 15
    for name in servers.names:
        servers.serve(name, 8, 40)
    question = PodQuestion(
        CATALOG.metrics[SLO_RATIO], parse(PROMISE), servers.store.snapshot, servers.now
    )
    work = servers.custom._ratios.about([pod], question)
    servers.remove("b")
    assert reason(at_once(work)(pod)) == "promise_not_measured"


def test_an_old_page_gives_no_value() -> None:
    servers = learned("a")
    assert servers.ratios()
    servers.now += 600
    assert servers.ratios() == {}


def test_an_external_sum_without_a_pod_is_refused() -> None:
    servers = learned("a", "b")
    servers.now += 15
    for _ in range(20):
        servers.serve("a", 8, 40)
        servers.now += 15
    query = ExternalQuery("ml", SLO_RATIO, parse(f"app=llm,{PROMISE}"))
    with pytest.raises(Unavailable, match="1 of 2 pods have no value: b"):
        at_once(servers.external.values(query, servers.now))


def test_a_question_about_a_whole_namespace_forgets_nothing() -> None:
    """Each other workload of it would take the place of one that was learned."""
    servers = learned("a")
    for number in range(2 * _OF_NAMESPACE):
        servers.put(make_pod(f"job-{number}", gpus={}, labels={"app": "job"}))
    before = servers.ratios()
    for _ in range(3):
        query = ObjectQuery(
            GroupResource("pods", ""), "ml", None, SLO_RATIO, parse(""), parse(PROMISE)
        )
        at_once(servers.custom.values(query, servers.now))
    assert servers.ratios() == before
    assert servers.custom._ratios.forgotten == 0
    assert servers.custom._ratios.size == 1


def test_what_nobody_asks_for_is_forgotten_and_its_values_before() -> None:
    servers = learned("a")
    ratios = servers.custom._ratios
    ratios.merge("", servers.now + 600)
    (asked,) = ratios._asked["ml"].values()
    assert asked.values == {}
    ratios.merge("", servers.now + 90_000)
    assert ratios.size == 0


def test_events_of_other_namespaces_do_not_ask_again(monkeypatch: pytest.MonkeyPatch) -> None:
    servers = learned(*(f"p{number}" for number in range(8)))
    servers.now += 15
    for name in servers.names:
        servers.serve(name, 8, 40)
    query = ObjectQuery(
        GroupResource("pods", ""),
        "ml",
        None,
        SLO_RATIO,
        parse("app=llm"),
        parse(f"{PROMISE},aggregate=max"),
    )
    asked: list[str] = []
    requests = Snapshot.requests

    def counted(self: Snapshot, pod: Pod, *rest: Any) -> Any:
        asked.append(pod.ref.name)
        return requests(self, pod, *rest)

    monkeypatch.setattr(Snapshot, "requests", counted)
    work = servers.custom.values(query, servers.now)
    with contextlib.suppress(StopIteration):
        while True:
            next(work)
            servers.put(make_pod("x", namespace="other", gpus={}))
    assert len(asked) == 8


def test_promises_of_one_namespace_cannot_push_out_those_of_others() -> None:
    servers = learned("a")
    ratios = servers.custom._ratios
    before = servers.ratios()
    promise = promise_in(parse(PROMISE).requirements)
    for number in range(3 * _OF_NAMESPACE):
        ratios._recall("noisy", Workload(PODS, f"x{number}"), promise, servers.now)
    assert len(ratios._asked["noisy"]) == _OF_NAMESPACE
    assert ratios.forgotten == 2 * _OF_NAMESPACE
    assert servers.ratios() == before


def test_what_is_remembered_of_all_namespaces_is_bounded() -> None:
    servers = Servers("a")
    ratios = servers.custom._ratios
    for number in range(_OF_ALL + 100):
        promise = promise_in(parse(PROMISE).requirements)
        ratios._recall(f"ns{number}", Workload(PODS, "x"), promise, START)
    assert sum(map(len, ratios._asked.values())) == _OF_ALL


def test_the_evidence_that_is_needed_is_that_of_the_law() -> None:
    assert ENOUGH == 100


def test_the_view_shows_the_value_of_each_promise_with_what_decided_it() -> None:
    servers = learned("a")
    body = Viewer(servers).pods.get("a", servers.now)
    rows = [row for row in body["metrics"] if row["metric"] == SLO_RATIO]
    assert [row["promise"] for row in rows] == ["ttft_p90 1s"]
    assert rows[0]["precision"].startswith("load 8 of capacity ")
    new = Servers("a")
    new.live(90, 12, 1)
    assert reasons(Viewer(new).pods.get("a", new.now))[SLO_RATIO] == "promise_learning"


def test_a_look_at_a_pod_teaches_nothing_and_an_old_answer_is_not_shown() -> None:
    servers = learned("a")
    ratios, pod = servers.custom._ratios, servers.index.get("ml", "a")
    assert pod is not None
    assert len(list(ratios.stated_promises(pod, servers.now))) == 1
    assert list(ratios.stated_promises(pod, servers.now + 600)) == []
    assert ratios.size == 1
    assert list(ratios.stated_promises(make_pod("other"), servers.now)) == []
