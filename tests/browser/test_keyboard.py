"""Everything works without a mouse."""

from __future__ import annotations

from selenium.webdriver.common.keys import Keys

from tests.browser.conftest import Opener


def test_the_first_tab_stop_skips_to_the_content(serve: Opener) -> None:
    page = serve("demo").open()
    page.press(Keys.TAB)
    assert page.js("document.activeElement.id") == "skip"
    assert page.find("#skip").rect["y"] >= 0
    page.press(Keys.ENTER)
    assert page.js("document.activeElement.id") == "main"


def test_slash_focuses_the_search_and_enter_opens_the_first_hit(serve: Opener) -> None:
    page = serve("demo").open()
    page.press("/", *"render-3")
    assert page.js("document.activeElement.id") == "search"
    page.wait("document.getElementById('found').textContent === 'Enter opens pod batch/render-3'")
    page.press(Keys.ENTER)
    page.wait("document.getElementById('side-title')?.textContent === 'render-3'")
    assert page.js("location.hash") == "#/pod/batch/render-3?q=render-3"
    page.press(Keys.ESCAPE)
    page.wait("!document.getElementById('side').open")
    assert page.js("document.activeElement.id") == "search", "the focus is back"


def test_arrow_keys_move_in_the_map_and_enter_explains(serve: Opener) -> None:
    page = serve("demo").open()
    page.js("document.querySelector('.map-scroll').focus()")
    page.settle()
    tile = "document.getElementById('tile').textContent"
    assert page.js(tile).startswith("gpu-h100-1.gpu0, held and busy, 92% utilization")
    page.press(Keys.ARROW_RIGHT)
    assert page.js(tile).startswith("gpu-h100-1.gpu1")
    page.press(Keys.ARROW_DOWN)
    assert page.js(tile).startswith("gpu-a100-1.gpu1")
    page.press(Keys.END)
    assert page.js(tile).startswith("gpu-l4-1.gpu3, free")
    page.press(Keys.HOME, Keys.ENTER)
    page.wait("location.hash === '#/gpu/gpu-h100-1.gpu0'")
    assert page.js("document.activeElement.id") == "side-title"
    page.press(Keys.ESCAPE)
    page.wait("document.activeElement.className === 'map-scroll'")


def test_a_question_mark_and_a_button_show_the_keys_and_the_signs(serve: Opener) -> None:
    page = serve("demo").open("#/hpa/chat/llm")
    page.press("?")
    page.wait("document.getElementById('help').open")
    keys = page.texts("#help kbd")
    assert {"/", "?", "Esc"} <= set(keys)
    assert "held and idle" in page.text("#help")
    assert page.js("document.getElementById('help').matches(':modal')")
    page.press(Keys.ESCAPE)
    page.wait("!document.getElementById('help').open")
    assert page.js("document.getElementById('side').open"), "one key closes one thing"
    page.press(Keys.ESCAPE)
    page.wait("!document.getElementById('side').open")
    page.find("#help-open").click()
    page.wait("document.getElementById('help').open")
    page.find("#help .head button").click()
    assert page.js("document.activeElement.id") == "help-open"
    page.find("#search").send_keys("?")
    assert not page.js("document.getElementById('help').open"), "a letter of the search"


def test_tables_are_sorted_with_buttons_that_name_the_order(serve: Opener) -> None:
    page = serve("demo").open()
    button = "#hpas-body th[data-key=size] button"
    page.js("document.querySelector(arguments[0]).focus()", button)
    page.press(Keys.ENTER)
    sizes = [row[3].split("\n")[0].split(" ")[0] for row in page.rows("hpas")]
    assert sizes == ["7", "4", "4", "2", "2", "0"]
    assert page.find("#hpas-body th[data-key=size]").get_attribute("aria-sort") == "descending"
    page.press(Keys.SPACE)
    assert page.find("#hpas-body th[data-key=size]").get_attribute("aria-sort") == "ascending"
    assert page.js("document.querySelectorAll('#hpas-body th[aria-sort]').length") == 1
    assert page.js("document.activeElement.textContent") == "Replicas", "the focus stays"


def test_a_live_update_keeps_the_focus_and_the_place(serve: Opener) -> None:
    page = serve("large").open()
    page.js("document.querySelector('#hpas-body .scroll').scrollTop = 3000")
    page.settle()
    page.js("document.querySelector('#hpas-body tbody tr:nth-child(14) a').focus()")
    name = page.js("document.activeElement.textContent")
    hpas = [{**hpa, "text": hpa["text"] + " now"} for hpa in page.stand.state["hpas"]]
    page.stand.publish(hpas=hpas)
    page.wait("document.querySelector('#hpas-body tbody').innerText.includes(' now')")
    assert page.js("document.activeElement.textContent") == name
    assert page.js("document.querySelector('#hpas-body .scroll').scrollTop") == 3000


def test_every_stop_of_tab_is_seen_and_tab_leaves_each(serve: Opener) -> None:
    page = serve("one").open()
    seen = []
    for _ in range(60):
        page.press(Keys.TAB)
        stop = page.js(
            "(() => { const e = document.activeElement; const s = getComputedStyle(e); const r = e.getBoundingClientRect();"
            " return [e.outerHTML.slice(0, 80), s.outlineStyle, r.width > 0 && r.bottom > 0]; })()"
        )
        if stop[0].startswith("<body"):
            break
        seen.append(stop)
    assert len(seen) > 15
    assert len({stop[0] for stop in seen}) > 15
    assert all(style != "none" and visible for _, style, visible in seen), seen


def test_on_a_narrow_screen_the_explanation_is_a_modal_dialog(serve: Opener) -> None:
    page = serve("demo").open("#/hpa/chat/llm", width=360, height=760)
    page.wait("document.querySelector('.lines')")
    assert page.js("document.getElementById('side').matches(':modal')")
    page.press(Keys.ESCAPE)
    page.wait("!document.getElementById('side').open")
    assert page.js("location.hash") == "#/"


def test_the_theme_has_three_choices_and_is_kept(serve: Opener) -> None:
    page = serve("one").open(theme="light")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.js(ground)
    page.find("#theme").click()
    page.find("#theme").click()
    assert page.js("document.documentElement.dataset.theme") == "dark"
    assert page.js(ground) != light
    page.driver.refresh()
    page.wait("document.getElementById('connection-state').textContent === 'Live'")
    assert page.js("document.documentElement.dataset.theme") == "dark"
    page.find("#theme").click()
    assert page.js(ground) == light
