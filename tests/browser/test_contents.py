"""The page shows what the parts say: no more, no less, and nothing that is missing as 0."""

from __future__ import annotations

import time

import pytest
from selenium.webdriver.common.keys import Keys

from tests.browser import states
from tests.browser.conftest import Opener


def test_the_verdict_and_its_sums_are_those_of_the_part(serve: Opener) -> None:
    page = serve("demo").open()
    verdict = page.stand.state["verdict"]
    assert page.text("#verdict-text") == verdict["text"]
    hpas, pods, gpus, cost = page.texts("#figures .figure")
    assert hpas == "HPAs61 stuck1 overloaded1 scaling2 healthy1 paused".replace(
        "2 healthy", f"{verdict['hpas']['healthy']} healthy"
    )
    assert pods == "GPU pods222 without a value1 waiting for a node19 measured"
    assert gpus == "GPUs232 not measured3 held and idle1 busy without a pod14 held and busy3 free"
    assert cost.startswith("Idle GPUs cost10.00 USD an hour34.26 USD so far")
    assert cost.endswith("without free GPUs"), "elsewhere idle is what no pod holds"
    assert page.js("document.title") == "1 stuck, 2 without value · gpu-metrics-adapter"


def test_each_hpa_has_its_decision_its_value_against_the_target_and_its_replicas(
    serve: Opener,
) -> None:
    page = serve("demo").open()
    shown = {row[0].split("\n")[0]: row for row in page.rows("hpas")}
    assert len(shown) == len(page.stand.state["hpas"])
    for hpa in page.stand.state["hpas"]:
        name, decision, value, size = shown[hpa["name"]]
        assert name == f"{hpa['name']}\n{hpa['namespace']} · Deployment"
        assert decision.startswith(hpa["decision"])
        assert decision.count(hpa["decision"]) == 1, "the state is said once"
        assert decision.endswith(hpa["text"].partition(": ")[2])
        metric = hpa["metrics"][0]
        assert value.endswith(f"of {metric['goalText']}")
        assert value.startswith(metric["valueText"] or "–\nno value of gpu_utilization")
        assert size.startswith(str(hpa["current"]))
        assert size.endswith(f"{hpa['min']}–{hpa['max']}")


def test_the_key_of_the_chart_has_the_colours_of_its_lines(serve: Opener) -> None:
    page = serve("demo").open("#/hpa/chat/llm")
    page.wait("document.querySelectorAll('.side .keys span').length === 4")
    for theme in ("light", "dark"):
        page.theme(theme)
        page.settle()
        keys = page.js(
            "[...document.querySelectorAll('.side .keys span')].map("
            "(e) => getComputedStyle(e, '::before').borderTopColor)"
        )
        inks = page.js(
            "['--accent', '--warning', '--ink', '--soft'].map((name) => {"
            " const e = document.createElement('i'); document.body.append(e);"
            " e.style.color = `var(${name})`; const c = getComputedStyle(e).color;"
            " e.remove(); return c; })"
        )
        assert keys == inks


def test_what_blocks_stands_before_what_works(serve: Opener) -> None:
    page = serve("demo").open()
    decisions = [row[1].split("\n")[0] for row in page.rows("hpas")]
    assert decisions == ["stuck", "overloaded", "scales out", "healthy", "healthy", "paused"]


def test_the_table_of_gpus_is_the_part_and_a_missing_load_is_a_dash_with_its_reason(
    serve: Opener,
) -> None:
    page = serve("demo").open("#/?map=table")
    page.wait("document.querySelectorAll('#fleet-body tbody tr').length > 5")
    rows = {row[0].split("\n")[0]: row for row in page.rows("fleet")}
    page.js("document.querySelector('#fleet-body .scroll').scrollTop = 9999")
    page.settle()
    rows |= {row[0].split("\n")[0]: row for row in page.rows("fleet")}
    state = page.stand.state
    for row, util in zip(state["gpus"]["rows"], state["load"]["utilText"], strict=True):
        assert rows[row[0]][2] == (util or "–\nno utilization is reported")


def test_each_gpu_has_one_use_with_a_sign_and_a_word_and_the_uses_add_up(serve: Opener) -> None:
    page = serve("demo").open("#/?map=table", width=2560)
    page.find("#fleet-body th[data-key=use] button").click()
    page.settle()
    state = page.stand.state
    words = {
        "free": "free",
        "blocked": "blocked",
        "busy": "held and busy",
        "unheld": "busy without a pod",
        "idle": "held and idle",
        "unmeasured": "not measured",
    }
    uses = [words[use] for use in state["load"]["class"]]
    rows = page.rows("fleet")
    # No pod can start on a node of a blocked GPU: the demo has no such node.
    assert {row[1] for row in rows} == set(words.values()) - {"blocked"}
    shown = dict(zip((row[0] for row in state["gpus"]["rows"]), uses, strict=True))
    for (name, second), use, *_ in ((row[0].split("\n"), *row[1:]) for row in rows):
        assert use == shown[name]
        assert (second == "XID error 79") is (name == "gpu-a100-1.gpu2")
    page.find("#fleet-tools button[data-value='']").click()
    page.wait("document.querySelector('.legend li')")
    legend = page.texts(".legend ul:first-child li")
    assert legend == [f"{uses.count(word)} {word}" for word in words.values()]
    assert sum(int(text.split()[0]) for text in legend) == len(uses) == 23
    counts = {**state["verdict"]["gpus"]}
    assert counts.pop("total") == sum(counts.values())


def test_a_use_of_the_legend_shows_its_gpus_only(serve: Opener) -> None:
    page = serve("demo").open()
    page.find(".legend button[data-use=idle]").click()
    page.wait("document.getElementById('fleet-count').textContent === '23 GPUs · 3 found'")
    assert page.js("location.hash") == "#/?use=idle"
    assert page.js("document.activeElement.dataset.use") == "idle", "the focus stays"
    page.find("#fleet-tools button[data-value=table]").click()
    page.wait("document.querySelectorAll('#fleet-body tbody tr:not(.pad)').length === 3")
    page.find("#fleet-tools button[data-value='']").click()
    page.wait("document.querySelector('.legend button')")
    page.find(".legend button[data-use=idle]").click()
    page.wait("document.getElementById('fleet-count').textContent === '23 GPUs'")


def test_tiles_of_different_use_differ_in_shape_and_not_only_in_colour(serve: Opener) -> None:
    """In one colour only: each sample of the legend has other pixels than the others."""
    page = serve("demo").open()
    for theme in ("light", "dark"):
        page.theme(theme)
        page.settle()
        shapes = page.js(
            "[...document.querySelectorAll('.legend ul:first-child canvas')].map((c) => {"
            " const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
            " const grey = []; for (let i = 0; i < d.length; i += 4) grey.push(d[i + 3] ? (d[i] + d[i + 1] + d[i + 2]) / 3 : -1);"
            " const most = Math.max(...grey); const least = Math.min(...grey.filter((g) => g >= 0));"
            " return grey.map((g) => (g < 0 ? ' ' : (g - least) / Math.max(1, most - least) > 0.5 ? '1' : '0')).join(''); })"
        )
        assert len(shapes) == len(set(shapes)) == 6


def test_pods_without_a_value_name_the_reason_and_all_pods_are_one_click_away(
    serve: Opener,
) -> None:
    page = serve("demo").open()
    assert {(row[0].split("\n")[0], row[1]) for row in page.rows("pods")} == {
        ("render-3", "exporter names no pod"),
        ("llm-x2k", "exporter down"),
        ("llm-p0d", "pod not scheduled"),
    }
    page.find("#pods-tools button[data-value=all]").click()
    page.wait("document.querySelector('#pods-body table').getAttribute('aria-rowcount') === '23'")
    assert page.js("location.hash") == "#/?pods=all"
    page.find("#pods-tools button[data-value=workloads]").click()
    page.wait("document.querySelector('#pods-body table').ariaLabel === 'Workloads'")
    assert [(row[0].split("\n")[0], row[1]) for row in page.rows("pods")][:2] == [
        ("deployment.render", "90%\nmax 100%"),
        ("deployment.embed", "41%"),
    ], "the highest value is shown where it is a point or more above the mean"


def test_idle_gpus_have_their_owner_their_time_and_their_price(serve: Opener) -> None:
    page = serve("demo").open(width=2560)
    assert page.rows("idle")[0] == [
        "notebook-4\nStatefulSet/notebook · lab-team",
        "gpu-h100-2.gpu0\nNVIDIA H100 80GB HBM3",
        "4 h",
        "24.0 Gi\n30 %",
        "3.90 USD",
        "15.60 USD",
    ]
    assert str(page.find("#idle-tools a").get_attribute("href")).endswith("/api/idle.csv")


def test_the_timeline_is_the_part_newest_first_with_the_reason(serve: Opener) -> None:
    page = serve("demo").open()
    for shown, event in zip(page.texts(".event"), page.stand.state["timeline"], strict=True):
        assert event["text"] in shown
        assert event["about"]["name"] in shown
        assert event["reason"] is None or shown.endswith(event["reason"])


def test_the_timeline_says_a_state_once(serve: Opener) -> None:
    page = serve("one").open()
    entry = states.demo(time.time())["timeline"][0]
    text = "stuck at 5: FailedGetPodsMetric: no metrics returned"
    page.stand.publish(timeline=[{**entry, "text": "chat/llm is stuck", "reason": text}])
    page.wait("document.querySelectorAll('.event').length === 1")
    assert page.texts(".event p")[1] == "FailedGetPodsMetric: no metrics returned"


def test_a_list_without_rights_names_the_right_and_the_command_and_counts_nothing(
    serve: Opener,
) -> None:
    page = serve("broken").open()
    assert "User ana may not list gpus" in page.text("#fleet-notices")
    assert "kubectl create clusterrolebinding see-gpus" in page.text("#fleet-notices code")
    assert page.text("#fleet-count") == page.text("#hpas-count") == "not known"
    assert page.texts("#figures .value")[0] == "–"
    assert "5 min old" in page.text("#pods-notices")
    assert len(page.rows("pods")) == 3, "the last data stay"
    assert page.texts("#pods-tools button")[2] == "Workloads –"


def test_an_empty_cluster_shows_what_to_do_next(serve: Opener) -> None:
    page = serve("empty").open()
    assert "gpu-metrics-adapter doctor" in page.text("#fleet-body")
    assert "No HPA exists." in page.text("#hpas-body")
    assert "No held GPU is idle." in page.text("#idle-body")


def test_idle_gpus_that_are_counted_and_not_listed_are_not_denied(serve: Opener) -> None:
    page = serve("demo").open()
    idle = page.stand.state["idle"]
    page.stand.publish(idle={**idle, "devices": []})
    page.wait("document.getElementById('idle-body').innerText.includes('3 idle GPUs not listed')")
    page.stand.publish(idle={**idle, "devices": [], "error": "403 ana may not get gpupods"})
    page.wait("document.getElementById('idle-body').innerText.includes('ana may not get gpupods')")


def test_names_of_tenants_are_text_and_nothing_in_them_runs(serve: Opener) -> None:
    page = serve("hostile").open("#/?pods=all&map=table")
    page.wait("document.querySelectorAll('#pods-body tbody tr:not(.pad)').length === 6")
    page.find("#hpas-body .unfold").click()
    page.settle()
    names = {hpa["name"] for hpa in page.stand.state["hpas"]}
    assert set(page.texts("#hpas-body td:first-child a")) == names
    assert {row[0] for row in page.stand.state["gpus"]["rows"]} == set(
        page.texts("#fleet-body td a")
    )
    assert (
        page.js("document.querySelectorAll('main img, main script, main b[onclick]').length") == 0
    )


def test_a_new_part_changes_the_page_without_a_reload(serve: Opener) -> None:
    page = serve("demo").open("#/?map=table")
    page.js("window.stays = true")
    load = page.stand.state["load"]
    load["util"][0], load["utilText"][0] = 17.0, "17%"
    changed = [{**hpa, "decision": "healthy", "level": "good"} for hpa in page.stand.state["hpas"]]
    page.stand.publish(load=load, hpas=changed)
    page.wait("document.querySelector('#fleet-body tbody').innerText.includes('17%')")
    page.wait("!document.querySelector('#hpas-body tbody').innerText.includes('stuck')")
    assert page.js("window.stays") is True


def test_a_scaledobject_without_an_hpa_is_a_row_without_a_value_or_a_size(serve: Opener) -> None:
    page = serve("one").open()
    (hpa,) = page.stand.state["hpas"]
    text = "stuck: not ready, and has made no HPA: Bad: no target"
    scaled = hpa | {"name": "scaledobject/queue", "kind": "ScaledObject", "metrics": []}
    scaled |= {"current": None, "desired": None, "max": None, "text": text}
    scaled |= {"level": "bad", "decision": "stuck", "advice": "correct what the condition says"}
    page.stand.publish(hpas=[hpa, scaled])
    page.wait("document.querySelectorAll('#hpas-body tbody tr:not(.pad)').length > 1")
    row = page.rows("hpas")[0]
    assert "queue" in row[0]
    assert "ScaledObject" in row[0]
    assert (
        "not ready, and has made no HPA: Bad: no target; correct what the condition says" in row[1]
    )
    assert "no HPA reads a metric" in row[2]
    assert "no HPA knows the size" in row[3]
    page.wait("document.querySelector('#hpas-count').innerText.includes('2 autoscalers')")
    assert page.js("document.querySelectorAll('#hpas-body tbody tr a').length") == 1


def test_a_load_of_other_gpus_is_not_shown(serve: Opener) -> None:
    page = serve("one").open("#/?map=table")
    assert page.rows("fleet")[0][2] == "63%"
    page.stand.publish_load_of_another_revision({**page.stand.state["load"], "utilText": ["1%"]})
    page.stand.publish(timeline=states.demo(time.time())["timeline"])
    page.wait("document.querySelectorAll('.event').length === 8")
    assert page.rows("fleet")[0][2] == "63%"


@pytest.mark.parametrize("state", list(states.ALL))
def test_nothing_is_wider_than_the_window(serve: Opener, state: str) -> None:
    page = serve(state).open(width=360)
    for width in (360, 768, 1280, 2560):
        page.size(width)
        page.settle()
        assert page.js("document.documentElement.scrollWidth") <= width
        edges = page.js(
            "[...document.querySelectorAll('.panel > header > *, .figure, .event p')].map((e) => e.getBoundingClientRect().right)"
        )
        assert max(edges) <= width


@pytest.mark.parametrize("width", [360, 768, 1280, 2560])
def test_an_explanation_is_within_the_window(serve: Opener, width: int) -> None:
    page = serve("demo").open("#/hpa/chat/llm", width=width)
    page.wait("document.querySelector('.side .lines')")
    edges = page.js(
        "[...document.querySelectorAll('.side, .side h2, .side .lines > *')].map((e) => e.getBoundingClientRect()).map((r) => [r.left, r.right])"
    )
    assert min(left for left, _ in edges) >= 0
    assert max(right for _, right in edges) <= page.js("document.documentElement.clientWidth")


def test_a_gpu_that_no_exporter_reports_is_a_tile_of_its_node_which_explains_it(
    serve: Opener,
) -> None:
    page = serve("demo").open()
    gpus, load = (page.stand.state[name] for name in ("gpus", "load"))
    name = "gpu-l4-2: no exporter (1 of 1)"
    cells = {"name": name, "node": "gpu-l4-2", "pool": "l4-spare", "unreported": True}
    row = [cells.get(column) for column in gpus["columns"]]
    blank = {"class": "unmeasured"}
    page.stand.publish(
        gpus={"columns": gpus["columns"], "rows": [*gpus["rows"], row]},
        load={key: [*values, blank.get(key)] for key, values in load.items() if key != "of"},
    )
    page.wait("document.querySelector('[data-use=unmeasured] b').textContent === '3'")
    page.js("document.querySelector('.map-scroll').focus()")
    page.press(Keys.END)
    tile = "document.getElementById('tile').textContent"
    text = f"{name}, not measured: no exporter reports it, node gpu-l4-2"
    assert page.js(tile) == text, "nothing is said of its pods"
    page.press(Keys.ENTER)
    page.wait("location.hash === '#/node/gpu-l4-2'")
    page.open("#/?map=table&q=gpu-l4-2")
    ((first, *_, pods, _),) = page.rows("fleet")
    assert first.startswith(name)
    assert pods == "–\nno exporter reports it"
    links = page.js("[...document.querySelectorAll('#fleet tbody a')].map((e) => e.hash)")
    assert [link.partition("?")[0] for link in links] == ["#/node/gpu-l4-2"]
