"""The command as a process: what it prints, how it ends, and the page on a cluster that changes."""

from __future__ import annotations

import signal
import socket
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from adapter.config.process.output import Screen
from adapter.tools.client.errors import VIEW
from adapter.tools.idle.prices import load
from tests.adapter.clientapi import ApiServer, api_server, forbidden, status_of
from tests.adapter.commandline import invoke
from tests.adapter.tools.explain.cluster import NO_PODS_NAMED, World, gpu_metric
from tests.adapter.tools.ui.cluster import HPAS, gpu, hpa, pod, serve, stuck, workload
from tests.adapter.tools.ui.page import Page, running

GPUS, PODS = f"{VIEW}/gpus", f"{VIEW}/gpupods"
ODD = "<img src=x onerror=alert(1)>\x1b[2J\u202e\u2028"


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[tuple[ApiServer, Path]]:
    with api_server(tmp_path) as pair:
        serve(pair[0], [gpu("g0")], [pod("llm-0")], [workload("llm")], [hpa()])
        yield pair


def panels(page: Page, **wanted: str) -> dict[str, Any]:
    """The panels once they have these states."""

    def holds(rows: list[dict[str, Any]]) -> bool:
        states = {row["panel"]: row["status"] for row in rows}
        return all(states[name] == status for name, status in wanted.items())

    return {row["panel"]: row for row in page.until("panels", holds)}


BESIDE = tuple(f"{VIEW}/{name}" for name in ("gpunodes", "gpupools", "gpuworkloads"))
ALL = ("gpus", "gpunodes", "gpupools", "headroom", "gpupods", "gpuworkloads", "hpas", "events")
APISERVICE = "/apis/apiregistration.k8s.io/v1/apiservices/v1alpha1.view.gpu-metrics-adapter.io"
"""With it, the headroom begins."""
WELL = dict.fromkeys(ALL, "ok")


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_at_once_with_streams_open(
    sign: signal.Signals, lab: tuple[ApiServer, Path]
) -> None:
    with running(lab[1]) as page:
        stream = page.events()
        next(stream)
        page.process.send_signal(sign)
        for _ in stream:  # parts that were on their way, and then the end
            pass
        assert page.process.wait(60) == 0


def test_the_stream_shows_the_cluster(lab: tuple[ApiServer, Path]) -> None:
    with running(lab[1]) as page:
        panels(page, **WELL)
        events = {}
        for event in page.events():
            events[event.name] = event.data
            if len(events) == 12:
                break
        about = page.until("about", lambda data: data["user"])
    assert about["user"] == "jane"
    assert (about["context"], about["namespace"], about["prometheus"]) == ("lab", "", False)
    assert about["pricesOf"] == f"list prices of {load(None).dated}"
    assert events["verdict"]["text"] == "The HPA works, the GPU pod has a value."
    assert events["gpus"]["rows"][0][:5] == ["g0", "n1", "p1", None, "0"]
    assert events["load"]["of"] == events["gpus"]["revision"]
    assert events["load"]["util"] == [54.0]
    assert events["pods"]["rows"][0][:4] == ["chat", "llm-0", "n1", "54%"]
    assert events["workloads"]["rows"][0][:4] == ["chat", "llm", "3", "3"]
    assert events["hpas"][0]["text"] == "keeps 3: gpu_utilization 54 of 60"


def test_a_missing_right_closes_one_panel_and_names_the_command(
    lab: tuple[ApiServer, Path],
) -> None:
    server, file = lab
    server.answers[GPUS] = forbidden("jane", "list", "gpus", "view.gpu-metrics-adapter.io", "")
    with running(file) as page:
        by_panel = panels(page, **WELL | {"gpus": "forbidden"})
        verdict = page.until("verdict", lambda data: data["hpas"] and data["pods"])
    assert by_panel["gpus"]["message"] == (
        "jane may not list gpus.view.gpu-metrics-adapter.io in the whole cluster"
    )
    assert by_panel["gpus"]["command"].startswith("kubectl create clusterrole get-list-gpus.view")
    assert by_panel["gpus"]["updated"] is None
    assert verdict["gpus"] is None
    assert verdict["level"] == "warning"
    assert verdict["text"].endswith("GPUs cannot be read.")


def test_a_cluster_without_the_view_api_is_named(lab: tuple[ApiServer, Path]) -> None:
    server, file = lab
    server.tables.clear()
    with running(file) as page:
        by_panel = panels(
            page,
            gpus="missing",
            gpunodes="missing",
            gpupools="missing",
            gpupods="missing",
            gpuworkloads="missing",
            hpas="ok",
        )
        verdict = page.until("verdict", lambda data: data["hpas"])
    assert "does not serve view.gpu-metrics-adapter.io" in by_panel["gpus"]["message"]
    assert "install or upgrade the chart" in by_panel["gpus"]["message"]
    assert verdict["text"] == "The HPA works. GPUs, GPU nodes and GPU pods cannot be read."


def test_a_change_of_the_cluster_reaches_the_page(lab: tuple[ApiServer, Path]) -> None:
    server, file = lab
    with running(file, "--interval", "1") as page:
        panels(page, **WELL)
        serve(server, [gpu("g0", Util="99%")], [pod("llm-0")], [], [hpa(conditions=stuck())])
        load = page.until("load", lambda data: data["util"] == [99.0])
        hpas = page.until("hpas", lambda data: data[0]["level"] == "bad")
        verdict = page.until("verdict", lambda data: data["level"] == "bad")
    assert load["utilText"] == ["99%"]
    assert hpas[0]["decision"] == "stuck"
    assert verdict["text"] == "1 HPA is stuck."


def test_an_api_server_that_restarts_is_read_again(tmp_path: Path) -> None:
    """The data stay while it is gone, and the verdict says so."""
    with api_server(tmp_path) as (server, file):
        serve(server, [gpu("g0")], [pod("llm-0")], [], [hpa()])
        with running(file, "--interval", "1") as page:
            panels(page, **WELL)
            answers, tables = dict(server.answers), dict(server.tables)
            failing = (500, status_of(500, "etcd leader changed"))
            server.answers |= dict.fromkeys((GPUS, *BESIDE, PODS, HPAS, APISERVICE), failing)
            server.answers["/api/v1/events"] = failing
            by_panel = panels(page, **dict.fromkeys(ALL, "failed"))
            assert by_panel["gpus"]["message"] == "not available, see above"
            assert by_panel["gpus"]["updated"] is not None
            verdict = page.until("verdict", lambda data: data["level"] == "bad")
            assert verdict["text"] == (
                "The cluster cannot be read: 500 etcd leader changed. "
                "The page shows what was read before."
            )
            assert verdict["gpus"]["total"] == 1
            server.answers.update(answers)
            for path in (GPUS, PODS, *BESIDE, APISERVICE):
                del server.answers[path]
            server.tables.update(tables)
            panels(page, **WELL)
            page.until("verdict", lambda data: data["level"] == "good")


def test_credentials_that_expired_are_read_again(lab: tuple[ApiServer, Path]) -> None:
    """A login writes a new token to the kubeconfig."""
    server, file = lab
    expired = (401, status_of(401, "Unauthorized", "Unauthorized"))
    server.answers |= {GPUS: expired, PODS: expired}
    with running(file, "--interval", "1") as page:
        by_panel = panels(page, gpus="failed")
        assert "log in again" in by_panel["gpus"]["message"]
        with api_server(file.parent) as (other, _):  # writes the kubeconfig
            serve(other, [gpu("g0"), gpu("g1")])
            page.until("gpus", lambda data: len(data["rows"]) == 2)


def test_names_of_tenants_arrive_unharmed_and_only_as_json(lab: tuple[ApiServer, Path]) -> None:
    server, file = lab
    odd = gpu("g0", Model=ODD, labels={"karpenter.sh/nodepool": ODD})
    serve(server, [odd], [pod(ODD, ODD)], [workload(ODD, ODD)], [hpa(ODD, ODD)])
    with running(file) as page:
        panels(page, **WELL)
        gpus = page.until("gpus")
        pods = page.until("pods")
        hpas = page.until("hpas")
        index = page.get("/").text
    assert [gpus["rows"][0][2], gpus["rows"][0][5]] == [ODD, ODD]
    assert pods["rows"][0][:2] == [ODD, ODD]
    assert (hpas[0]["namespace"], hpas[0]["name"]) == (ODD, ODD)
    assert "onerror" not in index


def test_a_namespace_limits_what_is_read(lab: tuple[ApiServer, Path]) -> None:
    server, file = lab
    with running(file, "-n", "chat") as page:
        panels(page, gpus="ok")
        about = page.until("about")
    assert about["namespace"] == "chat"
    paths = {line.split()[1].partition("?")[0] for line in server.asked}
    named = f"{VIEW}/namespaces/chat/gpupods"
    assert named in paths
    assert not {PODS, HPAS, "/api/v1/events"} & paths


def test_it_starts_while_the_cluster_does_not_answer(tmp_path: Path) -> None:
    with api_server(tmp_path) as (_, file):
        pass
    with running(file) as page:
        by_panel = panels(page, **dict.fromkeys(ALL, "failed"))
        verdict = page.until("verdict", lambda data: data["level"] == "bad")
        assert page.get("/").status_code == 200
        assert page.get("/api/explain/pod/chat/llm-0").status_code == 502
        assert page.stop() == 0
    assert {row["message"] for row in by_panel.values()} == {"not available, see above"}
    assert verdict["text"].startswith("The cluster cannot be read: cannot connect to 127.0.0.1:")
    assert verdict["text"].endswith(": Connection refused.")
    assert verdict["detail"].startswith("server: http://127.0.0.1:")
    assert verdict["detail"].endswith("and that this machine reaches it")


def test_an_object_is_explained_as_the_command_explains_it(tmp_path: Path) -> None:
    world = World().pod("llm-7f9", "92").pod("llm-x2k", why=NO_PODS_NAMED)
    world.hpa(gpu_metric(), desired=3)
    with api_server(tmp_path) as (server, file):
        serve(server, [gpu("g0")])
        world.serve(server)
        server.answers[f"{GPUS}/g0"] = {"metadata": {"name": "g0"}, "node": "n1"}
        expected = invoke("explain", "pod", "llm-x2k", "-n", "chat", "--kubeconfig", str(file))
        with running(file) as page:
            answer = page.get("/api/explain/pod/chat/llm-x2k")
            explained = answer.json()
            assert page.get("/api/explain/hpa/chat/llm").json()["json"]["name"] == "llm"
            gpu_lines = page.get("/api/explain/gpu/g0").json()["lines"]
            missing = page.get("/api/explain/pod/chat/nothing")
            odd = [
                page.get(f"/api/explain/{path}").status_code
                for path in ("pod/chat/%2e%2e", "pod/%2e%2e/x", "node/a%3fb", "pod/x", "what/a/b")
            ]
    ascii_only = Screen(unicode=False)
    assert list(map(ascii_only.line, explained["lines"])) == expected.output.splitlines()
    assert explained["status"] == expected.code == 1
    command = explained["command"]
    assert command == f"gpu-metrics-adapter explain pod llm-x2k -n chat --kubeconfig {file}"
    assert answer.headers["cache-control"] == "no-store"
    assert gpu_lines[0] == "gpu g0   NOT MEASURED"
    assert missing.status_code == 404
    assert "no pod 'nothing' in namespace chat" in missing.json()["error"]
    assert odd == [400, 400, 400, 404, 404]


def test_idle_gpus_have_a_price_and_a_csv(tmp_path: Path) -> None:
    with api_server(tmp_path) as (server, file):
        idle = gpu("g0", UUID="GPU-g0", Idle_Since="5h", Util="0%", Pods="chat/llm-0")
        serve(server, [idle, gpu("g1")], [pod("llm-0", Util="0%")])
        device = {
            "device": "GPU-g0",
            "gpu": "g0",
            "model": "NVIDIA H100 80GB HBM3",
            "idleSince": "2026-01-01T00:00:00Z",
        }
        server.answers["/version"] = {}
        server.answers[f"{VIEW}/namespaces/chat/gpupods/llm-0"] = {
            "metadata": {"name": "llm-0", "namespace": "chat"},
            "devices": [device],
        }
        prices = tmp_path / "prices.yaml"
        prices.write_text("currency: EUR\nprices: {H100: 4}")
        with running(file, "--prices", str(prices)) as page:
            part = page.until("idle", lambda data: data["devices"])
            verdict = page.until("verdict", lambda data: data["gpus"])
            table = page.get("/api/idle.csv")
    assert (part["held"], part["left"], part["error"]) == (2, 0, "")
    assert part["devices"][0]["pods"] == ["llm-0"]
    assert part["pricePerHour"] == verdict["idle"]["pricePerHour"] == 4.0
    assert verdict["idle"]["costSoFar"] == 20.0
    assert table.headers["content-type"].startswith("text/csv")
    assert "attachment" in table.headers["content-disposition"]
    assert table.text.splitlines()[1].startswith("g0,GPU-g0,NVIDIA H100 80GB HBM3,")


def test_the_points_of_an_hpa_since_the_start(lab: tuple[ApiServer, Path]) -> None:
    with running(lab[1]) as page:
        panels(page, hpas="ok")
        page.until("hpas")
        histories = page.get("/api/history?hpa=chat/llm&hpa=chat/none").json()
        many = page.get("/api/history?" + "&".join(["hpa=a/b"] * 201))
    assert list(histories) == ["chat/llm"]
    assert histories["chat/llm"]["value"][0] == 54.0
    assert (histories["chat/llm"]["goal"][0], histories["chat/llm"]["current"][0]) == (60.0, 3.0)
    assert many.status_code == 400


def test_the_points_that_the_adapter_has_noted_come_before_those_of_the_page(
    lab: tuple[ApiServer, Path],
) -> None:
    server, file = lab
    started = int(time.time())
    columns = dict.fromkeys(("value", "target", "current", "desired"), [7] * 40)
    history = {
        "metadata": {"name": "horizontalpodautoscaler.llm", "namespace": "chat"},
        "of": "HorizontalPodAutoscaler",
        "metric": "gpu_utilization",
        "start": datetime.fromtimestamp(started - 2400, UTC).isoformat(),
        "intervalSeconds": 60,
        "state": ["healthy"] * 40,
        **columns,
    }
    name = "horizontalpodautoscaler.llm"
    server.answers[f"{VIEW}/gpuhistories"] = [history]
    server.answers[f"{VIEW}/namespaces/chat/gpuhistories/{name}"] = history
    with running(file) as page:
        panels(page, hpas="ok")
        past = page.until("past")
        page.until("hpas")
        points = page.get("/api/history?hpa=chat/llm").json()["chat/llm"]
        day = page.get("/api/range?hpa=chat/llm&minutes=30").json()["chat/llm"]
    assert (past["since"], past["message"]) == (started - 2400, "")
    assert started <= past["read"] <= time.time()
    assert points["time"][:2] == [started - 2400, started - 2340]
    assert points["value"][:40] == [7] * 40
    assert points["value"][-1] == 54.0
    assert len(day["time"]) in (29, 30)
    assert day["goal"] == [7] * len(day["time"])


def test_a_cluster_whose_adapter_keeps_no_past_says_so(lab: tuple[ApiServer, Path]) -> None:
    with running(lab[1]) as page:
        past = page.until("past")
    assert past["since"] is None
    assert past["message"].startswith("No past: ")


def test_a_port_in_use_is_one_line(lab: tuple[ApiServer, Path]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ended = invoke("ui", "--kubeconfig", str(lab[1]), "--port", port, "--no-browser")
    assert ended.code == 2
    (line,) = ended.output.splitlines()
    assert line.startswith(f"gpu-metrics-adapter: cannot listen on 127.0.0.1:{port}: ")
    assert "--port 0 takes a free one" in line


def test_a_bad_price_file_is_one_line(lab: tuple[ApiServer, Path], tmp_path: Path) -> None:
    prices = tmp_path / "prices.yaml"
    prices.write_text("prices: {H100: cheap}")
    ended = invoke("ui", "--kubeconfig", str(lab[1]), "--prices", str(prices), "--no-browser")
    assert ended.code == 2
    assert "prices.H100 is 'cheap'" in ended.output
    assert len(ended.output.splitlines()) == 1
