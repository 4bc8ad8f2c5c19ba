"""Why no sample names a pod, as the API and the view say it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence

import pytest

from adapter.pipeline.attribution.reading import Absence
from adapter.pipeline.attribution.reasons import REASONS, changed_object, explanation, lasting_fix
from adapter.pipeline.attribution.unnamedpods import unnamed_server
from adapter.pipeline.cluster.pod import Owner, PodRef
from adapter.pipeline.devices.readpages import STORED_PAGES, PageState
from apiservice.errors import MetricNotFound
from apiservice.labels.selector import EVERYTHING
from apiservice.provider import GroupResource, ObjectQuery
from apiservice.runtime.steps import at_once
from tests.adapter.world import World, make_pod, row

UTIL, WAITING = "gpu_utilization", "inference_requests_waiting"
EXPORTER = PodRef("gpu", "dcgm-1")
T = 100.0


class Pages:
    """Pages with set states."""

    of_store = False

    def __init__(self, *on_node: PageState, server: Sequence[PageState] = ()) -> None:
        self._on_node, self._server = on_node, server

    def on_node(self, node: str) -> Sequence[PageState]:
        return self._on_node if node == "n1" else ()

    def of_pod(self, pod: PodRef) -> Sequence[PageState]:
        return self._server if pod.name == "llm" else ()


def page(last_success: float = T, error: str = "") -> PageState:
    return PageState("http://e/metrics", EXPORTER, last_success, error)


def refusing(last_success: float, error: str) -> PageState:
    return PageState("http://e/metrics", EXPORTER, last_success, error, refused=True)


def world(pages: Pages, text: str = "", time: float = T) -> World:
    made = World(make_pod("llm", node="n1"), make_pod("other", node="n1"), make_pod("exporter"))
    made.store.pages = pages
    if text:
        made.scrape(text, time, node="n1", pod=EXPORTER)
    return made


def absent(made: World, metric: str = UTIL, time: float = T) -> Absence:
    absence = made.read("llm", metric, time)
    assert isinstance(absence, Absence)
    return absence


IDLE = row("DCGM_FI_DEV_GPU_UTIL", 0)
OTHERS = row("DCGM_FI_DEV_GPU_UTIL", 70, "other")
FREE = row("DCGM_FI_DEV_GPU_UTIL", 0, uuid="GPU-1")

CASES = {
    "no exporter": (Pages(), "", "no_exporter_on_node", "n1"),
    "an exporter that was never read": (
        Pages(page(0.0)),
        "",
        "exporter_down",
        "http://e/metrics has not been read yet",
    ),
    "an exporter that never answered": (
        Pages(page(0.0, "connection refused")),
        "",
        "exporter_down",
        "http://e/metrics has never answered: connection refused",
    ),
    "an exporter that no longer answers": (
        Pages(page(T - 40, "connection refused")),
        "",
        "exporter_down",
        "no samples from http://e/metrics for 40 s: connection refused",
    ),
    "an exporter that answers without its page": (
        Pages(refusing(0.0, "HTTP status 401: needs credentials")),
        "",
        "exporter_refuses",
        "http://e/metrics has never answered with its page: HTTP status 401: needs credentials",
    ),
    "an exporter that no longer answers with its page": (
        Pages(refusing(T - 40, "HTTP status 403")),
        "",
        "exporter_refuses",
        "no samples from http://e/metrics for 40 s: HTTP status 403",
    ),
    "a page without devices": (Pages(page()), "", "exporter_without_devices", "http://e/metrics"),
    "pod mapping off": (Pages(page()), IDLE, "exporter_names_no_pod", "http://exporter"),
    "every device for another pod": (
        Pages(page()),
        OTHERS,
        "device_named_for_other_pod",
        "samples name GPU-0 for ml/other",
    ),
    "a free device, and other pods": (
        Pages(page()),
        OTHERS + FREE,
        "pod_not_named",
        "http://exporter",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_reason_names_what_is_wrong_on_the_node(case: str) -> None:
    pages, text, reason, detail = CASES[case]
    absence = absent(world(pages, text))
    assert (absence.reason, absence.detail) == (reason, detail)


def test_an_exporter_with_old_samples_is_down_with_the_error_of_its_last_read() -> None:
    made = world(Pages(page(T, "timeout")), OTHERS)
    absence = absent(made, time=T + 70)
    assert (absence.reason, absence.exporter) == ("exporter_down", EXPORTER)
    assert absence.detail == "no samples from http://exporter for 70 s: timeout"


MINE = row("DCGM_FI_DEV_GPU_UTIL", 70, "llm")


def test_an_old_value_of_an_exporter_that_fails_now_names_the_exporter_and_its_error() -> None:
    made = world(Pages(page(T, "HTTP status 500")), MINE)
    assert made.value("llm", UTIL, T + 10) == 70.0, "the last value is served until the age limit"
    absence = absent(made, time=T + 70)
    assert (absence.reason, absence.exporter) == ("exporter_down", EXPORTER)
    assert absence.detail == "no samples from http://exporter for 70 s: HTTP status 500"
    of_node = made.store.snapshot.node("n1", UTIL, EVERYTHING, T + 70)
    assert isinstance(of_node, Absence)
    assert (of_node.reason, of_node.detail) == (absence.reason, absence.detail)


def test_an_old_value_of_a_server_that_fails_now_names_its_page_and_its_error() -> None:
    made = world(Pages(server=(page(T, "HTTP status 500"),)))
    queue = 'vllm:num_requests_waiting{model_name="m",engine="0"} 3\n'
    made.scrape(queue, T, pod=PodRef("ml", "llm"), serves=True)
    assert made.value("llm", WAITING, T + 10) == 3.0
    absence = absent(made, WAITING, T + 70)
    assert absence.reason == "server_down"
    assert absence.detail == "no samples from http://e/metrics for 70 s: HTTP status 500"


def test_the_reason_of_an_old_value_changes_with_the_next_read() -> None:
    made = world(Pages(), MINE)
    assert absent(made, time=T + 70).reason == "stale"
    pages = Pages(page(T, "HTTP status 500"))
    made.store.snapshot._pages = pages
    assert absent(made, time=T + 71).reason == "exporter_down", "not cached"
    made.store.snapshot._pages = Pages(page(T + 72))
    assert absent(made, time=T + 73).reason == "stale", "it answers, with an old sample"


def test_an_exporter_that_refuses_after_it_answered_is_not_restarted() -> None:
    made = world(Pages(refusing(T, "HTTP status 401")), OTHERS)
    absence = absent(made, time=T + 70)
    assert (absence.reason, absence.exporter) == ("exporter_refuses", EXPORTER)
    owned = make_pod("dcgm-1", namespace="gpu", owner=Owner("apps/v1", "DaemonSet", "dcgm"))
    why = explanation(absence, make_pod("llm"), {EXPORTER: owned}.get)
    assert "delete pod" not in why.hint + why.then
    assert "HTTP status 401" in why.message


def test_pods_of_another_namespace_are_not_named() -> None:
    foreign = OTHERS.replace('namespace="ml"', 'namespace="secret"')
    absence = absent(world(Pages(page()), foreign))
    assert absence.detail == "samples name GPU-0 for a pod of another namespace"


def test_a_long_list_of_devices_is_counted() -> None:
    text = "".join(row("DCGM_FI_DEV_GPU_UTIL", 1, "other", uuid=f"GPU-{i}") for i in range(8))
    assert absent(world(Pages(page()), text)).detail.endswith(", and 5 more devices")


SERVERS = {
    "not opted in": (Pages(), "server_not_scraped"),
    "no answer": (Pages(server=[page(0.0, "connection refused")]), "server_down"),
    "an answer without the page": (
        Pages(server=[refusing(0.0, "HTTP status 404")]),
        "server_refuses",
    ),
    "another page": (Pages(server=[page()]), "pod_not_named"),
}


@pytest.mark.parametrize("case", SERVERS)
def test_the_reason_names_what_is_wrong_with_the_server_page(case: str) -> None:
    pages, reason = SERVERS[case]
    assert absent(world(pages), WAITING).reason == reason


def test_with_a_store_the_advice_is_about_the_scrape_job() -> None:
    pod = make_pod("llm", annotations={"gpu-metrics-adapter.io/scrape": "true"})
    for server in (make_pod("llm"), pod):
        absence = unnamed_server(server, STORED_PAGES, T, lambda url: False)
        assert absence.reason == "server_not_in_store"
        hint = explanation(absence, server, lambda _: None).hint
        assert "labels pod and namespace" in hint
        assert "kubectl" not in hint


def test_a_pod_that_opts_in_and_has_no_page_is_not_asked_to_opt_in() -> None:
    made = world(Pages())
    made.put(make_pod("llm", node="n1", labels={"gpu-metrics-adapter.io/scrape": "true"}))
    assert absent(made, WAITING).reason == "server_unscrapable"


def test_the_message_about_one_pod_says_why_and_names_the_fix() -> None:
    made = world(Pages(page(T - 40, "connection refused")))
    pods = GroupResource("pods", "")
    query = ObjectQuery(pods, "ml", "llm", UTIL, EVERYTHING, EVERYTHING)
    with pytest.raises(MetricNotFound) as raised:
        at_once(made.custom.values(query, T))
    assert str(raised.value) == (
        "the server could not find the metric gpu_utilization for pods llm: The exporter of the "
        "node does not answer, or its samples are too old: no samples from http://e/metrics for "
        "40 s: connection refused (exporter_down); fix: kubectl -n gpu logs dcgm-1 --tail=20"
    )


def test_the_message_about_a_group_names_its_pods_and_their_reasons() -> None:
    made = World(make_pod("llm-0", node="n1", labels={"app": "llm"}))
    namespaces = GroupResource("namespaces", "")
    query = ObjectQuery(namespaces, None, "ml", UTIL, EVERYTHING, EVERYTHING)
    with pytest.raises(MetricNotFound, match=r"1 of 1 pods have no value: llm-0 \(no_exporter_on"):
        at_once(made.custom.values(query, T))


def test_a_name_cannot_run_a_command_in_a_hint() -> None:
    owner = Owner("apps/v1", "DaemonSet", "dcgm; touch /tmp/evil")
    exporter = make_pod("dcgm-1", namespace="gpu", owner=owner)
    absence = Absence("exporter_names_no_pod", exporter=EXPORTER)
    why = explanation(absence, make_pod("llm"), {EXPORTER: exporter}.get)
    fix = lasting_fix(why.reason, changed_object(why.changes))
    assert fix is not None
    assert " 'daemonset/dcgm; touch /tmp/evil' " in fix.command


def test_the_error_of_another_page_on_the_node_is_not_the_exporters() -> None:
    other = PageState("http://amd/metrics", PodRef("gpu", "amd-1"), T, "connection refused")
    absence = absent(world(Pages(other, page()), OTHERS), time=T + 70)
    assert absence.detail == "no samples from http://exporter for 70 s"


def test_the_variables_of_dcgm_exporter_are_not_set_for_another_exporter() -> None:
    owner = Owner("apps/v1", "DaemonSet", "amd-metrics-exporter")
    exporter = make_pod("amd-metrics-exporter-1", namespace="gpu", owner=owner)
    absence = Absence("exporter_names_no_pod", exporter=exporter.ref)
    hint = explanation(absence, make_pod("llm"), {exporter.ref: exporter}.get).hint
    assert hint == REASONS["exporter_names_no_pod"].fix


def test_an_exporter_that_is_down_is_restarted_if_its_log_shows_no_cause() -> None:
    owner = Owner("apps/v1", "DaemonSet", "dcgm")
    absence = Absence("exporter_down", exporter=EXPORTER)
    owned = make_pod("dcgm-1", namespace="gpu", owner=owner)
    why = explanation(absence, make_pod("llm"), {EXPORTER: owned}.get)
    assert why.hint == "kubectl -n gpu logs dcgm-1 --tail=20"
    assert why.then == "kubectl -n gpu delete pod dcgm-1"
    # Nothing creates a bare pod again.
    bare = make_pod("dcgm-1", namespace="gpu")
    assert explanation(absence, make_pod("llm"), {EXPORTER: bare}.get).then == ""


def test_a_server_opts_in_in_the_pod_template_of_its_workload() -> None:
    owner = Owner("apps/v1", "ReplicaSet", "llm-7f9")
    labels = {"pod-template-hash": "7f9"}
    absence = Absence("server_not_scraped")
    pod = make_pod("llm-7f9-x", owner=owner, labels=labels)
    why = explanation(absence, pod, lambda _: None)
    fix = lasting_fix(why.reason, changed_object(why.changes))
    assert fix is not None
    words = shlex.split(fix.command)
    assert words[:6] == ["kubectl", "-n", "ml", "patch", "deployment/llm", "--type=merge"]
    notes = json.loads(words[-1])["spec"]["template"]["metadata"]["annotations"]
    assert notes == {"gpu-metrics-adapter.io/scrape": "true"}


@pytest.mark.parametrize(
    ("owner", "labels"),
    [
        (None, {}),
        (Owner("batch/v1", "Job", "llm"), {}),
        (Owner("apps/v1", "StatefulSet", "llm"), {"leaderworkerset.sigs.k8s.io/name": "llm"}),
    ],
    ids=["a bare pod", "a Job, whose template is fixed", "a StatefulSet that is overwritten"],
)
def test_without_a_template_to_patch_the_hint_is_words(
    owner: Owner | None, labels: dict[str, str]
) -> None:
    pod = make_pod("llm-x", owner=owner, labels=labels)
    hint = explanation(Absence("server_not_scraped"), pod, lambda _: None).hint
    assert hint == REASONS["server_not_scraped"].fix
