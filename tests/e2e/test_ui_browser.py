"""The page of ``ui`` in Chromium, on the real control plane with the real HPA controller.

What the page shows is compared with what the API server answers for the same objects.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast
from urllib.parse import urlsplit

import pytest
from selenium import webdriver

from adapter.tools.client.tables import TABLE_TYPE
from tests.adapter.tools.ui import page as ui
from tests.browser.page import Page, console, start
from tests.browser.stand import Stand
from tests.browser.test_axe import violations
from tests.e2e.apiservice import VIEW, register_group, wait_available
from tests.e2e.cluster import Object
from tests.e2e.process import free_port, wait_until
from tests.e2e.stage import Stage
from tests.needs import AXE, CHROMEDRIVER, CHROMIUM, needed_by_fixture, needs

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

GROUP, VERSION, _ = VIEW[0]
BASE: Final = f"/apis/{GROUP}/{VERSION}"
APISERVICE: Final = f"/apis/apiregistration.k8s.io/v1/apiservices/{VERSION}.{GROUP}"
MINE, OTHER = "page-mine", "page-other"
AT_2, AT_4 = "2\n2\u20134", "4\n2\u20134"
"""Replicas, and their range, as the page writes them."""
RIGHTS: Final = (
    {"apiGroups": [GROUP], "resources": ["gpupods", "gpuworkloads"], "verbs": ["get", "list"]},
    {
        "apiGroups": ["autoscaling"],
        "resources": ["horizontalpodautoscalers"],
        "verbs": ["get", "list"],
    },
    {"apiGroups": [""], "resources": ["events"], "verbs": ["get", "list"]},
)


@pytest.fixture(scope="module")
@needed_by_fixture(CHROMIUM, CHROMEDRIVER)
def driver() -> Iterator[webdriver.Chrome]:
    browser = start()
    # Until then, the browser loads its own page for new tabs.
    browser.get("about:blank")
    yield browser
    browser.quit()


@pytest.fixture(scope="module")
def seen(running_stage: Stage) -> Iterator[Stage]:
    """The stage with the view API, and one workload in each of two namespaces."""
    stage = running_stage
    register_group(stage.admin, stage.adapter.port, stage.adapter.ca.read_bytes(), VIEW)
    try:
        wait_available(stage.admin, VIEW)
        stage.workload(MINE, replicas=2, demand=120, low=2, high=4)
        stage.workload(OTHER, replicas=1, demand=40, high=2)
        for namespace, size in ((MINE, 2), (OTHER, 1)):
            stage.wait_size(namespace, size)
            stage.wait_active(namespace, "True")
        yield stage
    finally:
        stage.admin.delete(APISERVICE)
        stage.clear()


@contextmanager
def opened(
    driver: webdriver.Chrome, kubeconfig: Path, *arguments: str, address: str = ""
) -> Iterator[Page]:
    """The page of a new process, in the browser. At the end, the console must be empty."""
    console(driver)
    driver.get_log("performance")  # type: ignore[no-untyped-call] # of selenium
    with ui.running(kubeconfig, "--interval", "1", *arguments) as process:
        page = visit(driver, process, address)
        try:
            yield page
        finally:
            driver.get("about:blank")
            errors = page.errors()
    assert errors == []


def visit(driver: webdriver.Chrome, process: ui.Page, address: str = "") -> Page:
    """Open the address that a process printed."""
    access = SimpleNamespace(url=f"{process.url}/?token={process.token}")
    page = Page(driver, cast("Stand", SimpleNamespace(access=access, port=process.port)))
    return page.open(address)


def table(stage: Stage, path: str) -> dict[str, dict[str, Any]]:
    """Return the rows of a collection by name, as kubectl gets them."""
    answer = stage.admin.request("GET", f"{BASE}/{path}", Accept=TABLE_TYPE)
    names = [column["name"] for column in answer["columnDefinitions"]]
    return {row["cells"][0]: dict(zip(names, row["cells"], strict=True)) for row in answer["rows"]}


def shown(page: Page, panel: str) -> dict[str, list[str]]:
    """Return the cells of each row of a panel by the first line of its first cell."""
    return {row[0].partition("\n")[0]: row for row in page.rows(panel)}


def pods(page: Page) -> dict[str, list[str]]:
    """Return the cells of each pod by its whole name, whose middle the page may leave out."""
    names = page.js("[...document.querySelectorAll('#pods-body tbody a[title]')].map(a => a.title)")
    return dict(zip(names, page.rows("pods"), strict=False))


def loads(page: Page) -> dict[str, str]:
    """Return the utilization of each GPU in the table of GPUs."""
    return {name: row[2].partition("\n")[0] for name, row in shown(page, "fleet").items()}


def hpa_row(page: Page, namespace: str) -> list[str]:
    """Return the row of the HPA of a namespace."""
    rows = [row for row in page.rows("hpas") if row[0].startswith(f"inference\n{namespace} ")]
    return rows[0] if rows else [""] * 4


def sizes(stage: Stage, namespace: str) -> tuple[int, int]:
    """Return the replicas that the controller sees and wants."""
    status = stage.hpa(namespace)["status"]
    return status["currentReplicas"], status["desiredReplicas"]


def test_the_page_shows_what_the_api_server_answers(seen: Stage, driver: webdriver.Chrome) -> None:
    with opened(driver, seen.plane.kubeconfig, address="#/?map=table&pods=all") as page:
        page.wait("document.querySelectorAll('#fleet-body tbody tr').length > 5")

        def gpus_agree() -> bool:
            expected = {name: row["Util"] for name, row in table(seen, "gpus").items()}
            return loads(page) == expected

        def pods_agree() -> bool:
            rows = table(seen, f"namespaces/{MINE}/gpupods").items()
            expected = {name: (row["Util"], row["Node"]) for name, row in rows}
            cells = pods(page)
            return len(expected) == 2 and all(
                name in cells and util in cells[name] and any(node in cell for cell in cells[name])
                for name, (util, node) in expected.items()
            )

        wait_until(gpus_agree, "the GPUs are those of the API")
        wait_until(pods_agree, "the pods are those of the API")
        wait_until(lambda: hpa_row(page, MINE)[2].startswith("60"), "the HPA has its value")
        name, decision, value, size = hpa_row(page, MINE)
        assert name == f"inference\n{MINE} · Deployment"
        assert decision.startswith("healthy")
        assert value.endswith("of 70")
        assert (size, sizes(seen, MINE)) == (AT_2, (2, 2))
        assert "DCGM_FI_DEV_GPU_UTIL 60 of 70" in decision
        assert page.text("#hpas-count") == "2 HPAs"
        assert page.text("#fleet-count") == f"{len(table(seen, 'gpus'))} GPUs"


def test_a_changed_value_and_a_scaled_hpa_appear_without_a_reload(
    seen: Stage, driver: webdriver.Chrome
) -> None:
    with opened(driver, seen.plane.kubeconfig, address="#/?pods=all") as page:
        page.js("window.stays = true")
        wait_until(lambda: hpa_row(page, MINE)[3] == AT_2, "the HPA is shown")
        seen.load.set(MINE, 130)
        wait_until(lambda: hpa_row(page, MINE)[2].startswith("65"), "the value is 65")
        names = table(seen, f"namespaces/{MINE}/gpupods")
        wait_until(lambda: all("65%" in pods(page)[name] for name in names), "each pod has 65%")
        seen.load.set(MINE, 280)
        wait_until(lambda: sizes(seen, MINE) == (4, 4), "the controller scaled", 180)
        wait_until(lambda: hpa_row(page, MINE)[3] == AT_4, "the page shows 4 replicas")
        wait_until(
            # The step before it is shown if the page saw it: 1.37's controller takes several.
            lambda: any(re.search(r"scales (to|3 →|2 →) 4", text) for text in page.texts(".event")),
            "the timeline has the step of the controller",
        )
        assert page.js("window.stays") is True
        page.js("location.hash = '#/hpa/page-mine/inference'")
        page.wait("document.querySelector('.lines')")
        first = page.texts(".lines > div")[0]
        assert first.startswith(f"HPA {MINE}/inference ")
        assert "Deployment inference   4 replicas, 2..4   KEEPS 4" in first


@needs(AXE)
def test_nothing_is_requested_from_another_origin_and_axe_finds_nothing(
    seen: Stage, driver: webdriver.Chrome
) -> None:
    with opened(driver, seen.plane.kubeconfig, address=f"#/hpa/{OTHER}/inference") as page:
        page.wait("document.querySelector('.lines')")
        own = f"http://127.0.0.1:{page.stand.port}"
        origins = {urlsplit(url)[:2] for url in _requested(driver)}
        assert origins == {urlsplit(own)[:2]}
        assert violations(page) == []


def _requested(driver: webdriver.Chrome) -> list[str]:
    """The addresses that the browser requested over the network since the last call."""
    rows = [json.loads(row["message"])["message"] for row in driver.get_log("performance")]  # type: ignore[no-untyped-call] # of selenium
    urls = [
        row["params"]["request"]["url"]
        for row in rows
        if "requestWillBeSent" in row["method"] and "request" in row["params"]
    ]
    return [url for url in urls if not url.startswith(("data:", "about:"))]


def test_the_page_goes_on_after_serve_restarted(seen: Stage, driver: webdriver.Chrome) -> None:
    with opened(driver, seen.plane.kubeconfig) as page:
        wait_until(lambda: page.text("#fleet-count").endswith("GPUs"), "the GPUs are shown")
        before = page.text("#fleet-count")
        seen.adapter.stop()
        try:
            page.wait(
                "/GPUs, GPU nodes and GPU pods cannot be read/.test("
                "document.getElementById('verdict-text').textContent)"
            )
            assert page.text("#fleet-count") == before, "the last data stay"
            old = "Old: GPUs, GPU nodes, pods and workloads"
            wait_until(lambda: page.text("#connection-state") == old, old)
        finally:
            seen.adapter.start()
            wait_available(seen.admin, VIEW)
        page.wait("!/cannot be read/.test(document.getElementById('verdict-text').textContent)")
        wait_until(lambda: not page.texts("#fleet-notices .notice"), "no notice is left")


def test_the_page_says_that_ui_restarted_and_the_new_address_shows_the_cluster(
    seen: Stage, driver: webdriver.Chrome
) -> None:
    port = str(free_port())
    console(driver)
    with ui.running(seen.plane.kubeconfig, "--port", port) as process:
        page = visit(driver, process)
        page.expected = ["net::ERR_", "403"]
    page.wait("document.getElementById('connection-state').textContent === 'Connection lost'")
    with ui.running(seen.plane.kubeconfig, "--port", port) as process:
        page.wait(
            "document.getElementById('connection-state').textContent === 'Server started again'"
        )
        again = visit(driver, process)
        wait_until(lambda: again.text("#hpas-count") == "2 HPAs", "the HPAs are shown")
        driver.get("about:blank")
    assert page.errors() == []


def test_a_user_of_one_namespace_sees_it_and_reads_which_right_is_missing(
    seen: Stage, driver: webdriver.Chrome
) -> None:
    allow(seen, "ana", MINE)
    kubeconfig = seen.plane.write_kubeconfig("ana", pair=seen.plane.user("ana"))
    with opened(driver, kubeconfig, "-n", MINE, address="#/?pods=all") as page:
        names = table(seen, f"namespaces/{MINE}/gpupods")
        wait_until(lambda: names.keys() == pods(page).keys(), "ana sees her pods")
        wait_until(lambda: page.text("#hpas-count") == "1 HPA", "ana sees her HPA")
        page.wait("document.querySelector('#fleet-notices .notice')")
        assert f"ana may not list gpus.{GROUP} in the whole cluster" in page.text("#fleet-notices")
        assert "kubectl create clusterrole" in page.text("#fleet-notices code")
        assert page.text("#fleet-count") == "not known"
        assert page.text("#verdict-text").endswith("GPUs and GPU nodes cannot be read.")
        assert OTHER not in page.text("body")
    with opened(driver, kubeconfig) as page:
        page.wait("document.querySelectorAll('#pods-notices .notice').length === 2")
        notices = " ".join(page.texts(".notice"))
        for resource in (f"gpus.{GROUP}", f"gpupods.{GROUP}", "horizontalpodautoscalers"):
            assert f"ana may not list {resource}" in notices
        assert page.rows("pods") == page.rows("hpas") == []


def allow(stage: Stage, user: str, namespace: str) -> None:
    """Let a user read what the page shows of one namespace."""
    rbac = "rbac.authorization.k8s.io"
    meta = {"name": f"page-{user}", "namespace": namespace}
    made: tuple[Object, ...] = (
        {"kind": "Role", "rules": list(RIGHTS)},
        {
            "kind": "RoleBinding",
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": meta["name"]},
            "subjects": [{"apiGroup": rbac, "kind": "User", "name": user}],
        },
    )
    for obj in made:
        stage.admin.create({"apiVersion": f"{rbac}/v1", "metadata": meta, **obj})
