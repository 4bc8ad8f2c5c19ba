"""10,000 GPUs: the page holds only what is in sight. The times are printed, not asserted."""

from __future__ import annotations

import statistics

from selenium.webdriver.common.keys import Keys

from tests.browser.conftest import Opener

_ELEMENTS = 4_000
"""Far below one element for each of 10,000 GPUs, 10,000 pods and 2,000 HPAs."""


def test_ten_thousand_gpus_are_painted_and_only_rows_in_sight_exist(serve: Opener) -> None:
    page = serve("large").open()
    page.wait("document.getElementById('fleet-count').textContent === '10,000 GPUs'")
    paint = page.js("performance.getEntriesByType('paint').map((e) => [e.name, e.startTime])")
    print("first paint, ms:", paint, "data shown, ms:", page.js("performance.now()"))
    assert page.js("document.querySelectorAll('*').length") < _ELEMENTS
    assert page.js("document.querySelectorAll('#hpas-body tbody tr').length") < 60
    colours = page.js(
        "(() => { const c = document.querySelector('.map-scroll canvas');"
        " const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; const s = new Set();"
        " for (let i = 0; i < d.length; i += 4) s.add(d[i] * 65536 + d[i + 1] * 256 + d[i + 2]); return s.size; })()"
    )
    assert colours > 25, "the map has the colours of many loads"


def test_interaction_with_ten_thousand_gpus(serve: Opener) -> None:
    page = serve("large").open()
    page.js(
        "(window.slow = [], new PerformanceObserver((l) => window.slow.push(...l.getEntries().map((e) => [e.name, e.duration]))).observe({type: 'event', durationThreshold: 16, buffered: true}))"
    )
    page.js("document.querySelector('.map-scroll').focus()")
    for key in (Keys.ARROW_RIGHT, Keys.ARROW_DOWN, Keys.PAGE_DOWN, Keys.END, Keys.HOME):
        page.press(key)
    page.press(Keys.END)
    assert page.js("document.getElementById('tile').getAttribute('aria-posinset')") == "10000"
    page.js("document.querySelector('#hpas-body th[data-key=name] button').click()")
    page.press("/", *"node-0042")
    page.wait("document.getElementById('fleet-count').textContent.endsWith('8 found')")
    slow = [duration for _, duration in page.js("window.slow")]
    print(
        "events over 16 ms:",
        len(slow),
        "median:",
        statistics.median(slow or [0]),
        "longest:",
        max(slow or [0]),
    )


_COUNT = """
(() => {
  const calls = window.calls = {tiles: 0, styles: 0};
  const count = (of, name, key) => {
    const real = of[name];
    of[name] = function (...given) { calls[key] += 1; return real.apply(this, given); };
  };
  count(CanvasRenderingContext2D.prototype, "rect", "tiles");
  count(CanvasRenderingContext2D.prototype, "roundRect", "tiles");
  count(window, "getComputedStyle", "styles");
})()
"""


def test_a_key_on_the_map_draws_its_ring_and_not_the_tiles(serve: Opener) -> None:
    page = serve("large").open()
    page.js("document.querySelector('.map-scroll').focus()")
    page.press(Keys.ARROW_RIGHT)
    page.js(_COUNT)
    page.press(Keys.ARROW_RIGHT, Keys.ARROW_LEFT, Keys.ARROW_RIGHT)
    page.wait("document.getElementById('tile').getAttribute('aria-posinset') === '3'")
    page.settle()
    # Keys that arrive within one frame are drawn together.
    assert 1 <= page.js("window.calls.tiles") <= 6


def test_new_values_are_drawn_without_asking_the_style_sheet_again(serve: Opener) -> None:
    page = serve("large").open()
    page.wait("document.querySelectorAll('#hpas-body canvas').length > 10")
    page.js(_COUNT)
    load = dict(page.stand.state["load"])
    load["util"] = [None if u is None else (u + 7) % 100 for u in load["util"]]
    hpas = [{**hpa, "text": "keeps 4: again"} for hpa in page.stand.state["hpas"]]
    page.stand.publish(load=load, hpas=hpas)
    page.wait("document.querySelector('#hpas-body tbody').innerText.includes('again')")
    page.settle()
    assert page.js("window.calls.tiles") > 1_000, "the map was drawn"
    assert page.js("window.calls.styles") < 10, "a table asks for the height of its rows once"


def test_an_open_explanation_draws_no_tile_again(serve: Opener) -> None:
    page = serve("large").open()
    page.js(_COUNT)
    page.find("#hpas-body tbody a").click()
    page.wait("document.getElementById('side').open")
    page.settle()
    assert page.js("window.calls.tiles") < 200


def test_memory_is_steady_over_many_updates(serve: Opener) -> None:
    page = serve("large").open()
    used = []
    for number in range(60):
        load = dict(page.stand.state["load"])
        load["util"] = [None if u is None else (u + number) % 100 for u in load["util"]]
        hpas = [{**hpa, "text": f"keeps 4: look {number}"} for hpa in page.stand.state["hpas"]]
        page.stand.publish(load=load, hpas=hpas)
        page.wait(f"document.querySelector('#hpas-body tbody').innerText.includes('look {number}')")
        if number % 20 == 19:
            used.append(page.js("(gc(), gc(), performance.memory.usedJSHeapSize)") / 2**20)
    print("heap after 20, 40 and 60 updates, MiB:", [round(size, 1) for size in used])
    assert page.js("document.querySelectorAll('*').length") < _ELEMENTS
    assert used[-1] < 1.5 * used[0] + 5
