"""The chart of an HPA says its values at the pointer, and each mark of its time once."""

from __future__ import annotations

import time

from selenium.webdriver.common.keys import Keys

from tests.browser import states
from tests.browser.conftest import Opener
from tests.browser.page import Page

_AT = "document.querySelector('.chart-at').textContent"
_MARKS = """
(() => {
  const drawn = window.drawn = [];
  const real = CanvasRenderingContext2D.prototype.fillText;
  const clear = CanvasRenderingContext2D.prototype.clearRect;
  CanvasRenderingContext2D.prototype.clearRect = function (...given) {
    if (this.canvas.closest('.side')) drawn.length = 0;
    return clear.call(this, ...given);
  };
  CanvasRenderingContext2D.prototype.fillText = function (text, ...given) {
    if (this.canvas.closest('.side')) drawn.push(String(text));
    return real.call(this, text, ...given);
  };
})()
"""


def opened(page: Page, address: str = "#/hpa/chat/llm") -> Page:
    page.open(address)
    page.wait(f"/gpu_utilization \\d/.test({_AT})")
    page.settle()
    return page


def test_the_values_at_the_pointer_are_those_of_the_series(serve: Opener) -> None:
    page = opened(serve("demo"))
    newest = page.js(_AT)
    assert newest.endswith("gpu_utilization 84.6 of 70 · 4 replicas"), newest
    box = page.js(
        "(() => { const r = document.querySelector('.side .u-over').getBoundingClientRect();"
        " return [r.left, r.top, r.width, r.height]; })()"
    )
    move = {"type": "mouseMoved", "y": box[1] + box[3] / 2}
    page.driver.execute_cdp_cmd("Input.dispatchMouseEvent", {**move, "x": box[0] + box[2] * 0.95})
    page.wait(f"{_AT} !== arguments[0]", newest)
    page.settle()
    known = states.history(page.stand.state, time.time())["chat/llm"]
    text = page.js(_AT)
    value = text.split("gpu_utilization ")[1].split(" of ")[0]
    assert float(value) in known["value"], text
    assert page.js("document.querySelector('.chart-lines').getAttribute('aria-valuetext')") == text


def test_arrow_keys_move_along_the_chart(serve: Opener) -> None:
    page = opened(serve("demo"))
    newest = page.js(_AT)
    page.js("document.querySelector('.chart-lines').focus()")
    page.press(Keys.HOME)
    first = page.js(_AT)
    page.press(Keys.ARROW_RIGHT)
    assert len({newest, first, page.js(_AT)}) == 3
    page.press(Keys.END)
    assert page.js(_AT).split(" · ")[1:] == newest.split(" · ")[1:]


def test_no_mark_of_the_time_is_drawn_twice(serve: Opener) -> None:
    page = serve("demo")
    page.stand.state["about"]["started"] = time.time() - 70
    page.stand.publish(about=page.stand.state["about"])
    page.open()
    page.js(_MARKS)
    page.js("location.hash = '#/hpa/chat/llm'")
    page.wait(f"/gpu_utilization \\d/.test({_AT})")
    page.wait("window.drawn.some((text) => text.includes(':'))")
    page.js("window.drawn.length = 0")
    page.size(1200)
    page.wait("window.drawn.some((text) => text.includes(':'))")
    page.settle()
    # Those of the newest drawing: a later one may have other times.
    marks = [text for text in page.js("window.drawn") if ":" in text]
    assert len(set(marks)) == len(marks) > 3, marks
    assert all(text.count(":") == 2 for text in marks), "minutes alone would repeat"


def test_memory_is_in_units(serve: Opener) -> None:
    page = serve("demo")
    hpas = page.stand.state["hpas"]
    for hpa in hpas:
        if hpa["name"] == "mig":
            hpa["metrics"][0] |= {"value": 4 * 2**30, "goal": 8 * 2**30}
    page.stand.publish(hpas=hpas)
    page.open("#/hpa/lab/mig")
    page.wait(f"/gpu_memory_used_bytes \\d/.test({_AT})")
    assert "Gi of 8Gi" in page.js(_AT)
