"""Search, filters, time and deep links live in the address after the hash."""

from __future__ import annotations

from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from tests.browser import states
from tests.browser.conftest import Opener
from tests.browser.page import Page


def names(page: Page, panel: str) -> set[str]:
    return {row[0].split("\n")[0] for row in page.rows(panel)}


def test_a_filter_narrows_every_panel_and_is_kept_in_the_address(serve: Opener) -> None:
    page = serve("demo").open("#/?map=table&pods=all")
    Select(page.find("#filter-namespace")).select_by_value("lab")
    page.settle()
    assert page.js("location.hash") == "#/?namespace=lab&pods=all&map=table"
    assert names(page, "hpas") == {"mig", "notebook"}
    assert names(page, "pods") == {"notebook-4", "notebook-5", *(f"mig-{i}" for i in range(7))}
    assert page.text("#hpas-count") == "2 of 6 HPAs"
    Select(page.find("#filter-pool")).select_by_value("mig-lab")
    page.settle()
    assert names(page, "fleet") == {f"gpu-mig-1.mig{i}" for i in range(7)}
    assert names(page, "idle") == {"mig-2"}
    assert "belongs to no node pool" in page.text("#hpas-count")
    page.find("#filter-clear").click()
    page.settle()
    assert len(names(page, "hpas")) == 6


def test_filters_of_a_link_apply_at_once(serve: Opener) -> None:
    page = serve("demo").open("#/?namespace=chat&model=NVIDIA%20H100%2080GB%20HBM3&pods=all&q=llm")
    assert names(page, "hpas") == {"llm"}
    assert names(page, "pods") == {"llm-7f9", "llm-a11", "llm-k3d"}
    assert page.find("#search").get_attribute("value") == "llm"
    assert page.find("#filter-namespace").get_attribute("value") == "chat"


def test_a_link_that_is_older_than_the_filters_keeps_them(serve: Opener) -> None:
    page = serve("demo").open()
    Select(page.find("#filter-namespace")).select_by_value("chat")
    page.settle()
    page.find("#hpas-body tbody a").click()
    page.wait("document.getElementById('side').open")
    assert page.js("location.hash") == "#/hpa/chat/llm?namespace=chat"
    page.press(Keys.ESCAPE)
    page.js("document.querySelector('#pods-body tbody a').focus()")
    page.press(Keys.ENTER)
    page.wait("document.getElementById('side').open")
    assert str(page.js("location.hash")).startswith("#/pod/chat/")
    assert str(page.js("location.hash")).endswith("?namespace=chat")


def test_a_page_that_becomes_wide_shows_its_filters(serve: Opener) -> None:
    page = serve("demo").open(width=600)
    assert not page.find("#filter-namespace").is_displayed()
    page.size(1280)
    page.wait("document.getElementById('filters').open")
    assert page.find("#filter-namespace").is_displayed()
    page.size(600)
    page.wait("!document.getElementById('filters').open")
    assert page.find("#filters summary").is_displayed()


def test_what_fits_no_filter_says_so(serve: Opener) -> None:
    page = serve("demo").open("#/?q=no-such-name")
    assert page.text("#hpas-body").startswith("Nothing fits the filters.")
    assert page.text("#found") == "Nothing has this name."


def test_the_time_narrows_the_timeline(serve: Opener) -> None:
    page = serve("demo").open()
    assert page.text("#timeline-count") == "8 events"
    page.find("#range button[data-value='5']").click()
    page.wait("document.getElementById('timeline-count').textContent === '5 of 8 events'")
    assert page.js("location.hash") == "#/?range=5"


def test_times_of_prometheus_are_offered_where_one_is_configured(serve: Opener) -> None:
    page = serve("demo").open()
    assert page.texts("#range button") == ["5 min", "30 min", "1 h", "All seen"]
    page.stand.publish(about={**page.stand.state["about"], "prometheus": True})
    page.wait("document.querySelectorAll('#range button').length === 6")


def test_a_deep_link_opens_the_explanation_with_the_very_lines(serve: Opener) -> None:
    page = serve("demo").open("#/hpa/chat/llm")
    page.wait("document.querySelector('.lines')")
    shown = page.texts(".lines > div")
    for line, text in zip(states.EXPLANATION, shown, strict=True):
        if "fix: " in line:
            assert text.startswith(line.strip())
        else:
            assert text == line
    assert page.text("#side-title") == "llm"
    assert page.text(".side .command code") == "gpu-metrics-adapter explain hpa llm -n chat"
    assert page.find("#hpas-body tr.open a").text == "llm"
    assert page.js("document.querySelectorAll('.side canvas').length") == 2


def test_a_copy_button_holds_the_command_of_the_fix(serve: Opener) -> None:
    page = serve("demo").open("#/hpa/chat/llm")
    page.wait("document.querySelector('.lines .fix button')")
    label = page.find(".lines .fix button").get_attribute("aria-label")
    assert str(label).startswith(
        "Copy the command: kubectl patch clusterpolicies.nvidia.com cluster-policy --type=merge -p "
    )


def test_related_things_are_links_from_one_explanation_to_the_next(serve: Opener) -> None:
    page = serve("demo").open("#/hpa/chat/llm")
    page.wait("document.querySelector('.related')")
    links = page.js(
        "[...document.querySelectorAll('.related a')].map((a) => a.getAttribute('href'))"
    )
    assert {"#/pod/chat/llm-7f9", "#/gpu/gpu-h100-1.gpu0", "#/node/gpu-a100-1"} <= set(links)
    page.find(".related a[href='#/pod/chat/llm-7f9']").click()
    page.wait("document.getElementById('side-title').textContent === 'llm-7f9'")
    page.driver.back()
    page.wait("document.getElementById('side-title').textContent === 'llm'")


def test_what_is_gone_is_said_in_one_line(serve: Opener) -> None:
    page = serve("demo")
    page.expected = ["404"]
    page.open("#/pod/chat/gone")
    page.wait("document.querySelector('.side .notice')")
    assert page.text(".side .notice") == "pod gone does not exist"


def test_a_click_on_a_row_and_on_a_tile_explains(serve: Opener) -> None:
    page = serve("demo").open()
    page.find("#hpas-body tbody tr:nth-child(3) td:nth-child(2)").click()
    page.wait("location.hash.startsWith('#/hpa/')")
    page.press(Keys.ESCAPE)
    page.wait("!document.getElementById('side').open")
    box = page.find(".map-scroll canvas").rect
    page.click_at(box["x"] + 30, box["y"] + 70)
    page.wait("location.hash === '#/gpu/gpu-h100-1.gpu0'")
