"""A page that was just started shows what the adapter has noted before."""

from __future__ import annotations

import time

from selenium.webdriver.common.keys import Keys

from tests.browser.conftest import Opener
from tests.browser.page import Page

_AT = "document.querySelector('.chart-at').textContent"
_DRAWN = """
(() => {
  const canvas = document.querySelector('#hpas tbody canvas');
  if (!canvas || !canvas.width) return 0;
  const { width, height } = canvas;
  const copy = new OffscreenCanvas(width, height).getContext('2d', { willReadFrequently: true });
  copy.drawImage(canvas, 0, 0);
  const { data } = copy.getImageData(0, 0, width, height);
  let drawn = 0;
  for (let x = 0; x < width; x += 1) {
    for (let y = 0; y < height; y += 1) if (data[4 * (y * width + x) + 3]) { drawn += 1; break; }
  }
  return drawn / width;
})()
"""
"""The part of a trend's width that has a line."""


def _clock(text: str) -> int:
    hours, minutes, seconds = map(int, text.split(" · ", maxsplit=1)[0].split(":"))
    return hours * 3600 + minutes * 60 + seconds


def opened(page: Page, query: str = "") -> None:
    page.open(f"#/hpa/chat/llm{query}")
    page.wait(f"/gpu_utilization \\d/.test({_AT})")
    page.settle()


def test_the_last_half_hour_is_there_on_first_sight(serve: Opener) -> None:
    page = serve("fresh")
    page.open()
    page.wait(f"{_DRAWN} > 0.6")
    assert page.js(f"{_DRAWN}") < 0.95, "the minutes that are missing have no line"
    chosen = page.texts("#range button[aria-pressed='true']")
    assert chosen == ["30 min"]


def test_the_chart_goes_back_to_before_the_page_was_started(serve: Opener) -> None:
    page = serve("fresh")
    opened(page)
    newest = _clock(page.js(_AT))
    page.js("document.querySelector('.chart-lines').focus()")
    page.press(Keys.HOME)
    ago = (newest - _clock(page.js(_AT))) % 86_400
    assert 28 * 60 <= ago <= 30 * 60
    assert "the adapter before" in page.js("document.querySelector('.side').textContent")


def test_a_day_needs_no_prometheus(serve: Opener) -> None:
    page = serve("fresh")
    opened(page, "?range=p1440")
    page.wait("document.querySelector('.side').textContent.includes('From the adapter.')")
    newest = _clock(page.js(_AT))
    page.js("document.querySelector('.chart-lines').focus()")
    page.press(Keys.HOME)
    ago = (newest - _clock(page.js(_AT))) % 86_400
    assert ago >= 1400 * 60 or ago <= 120


def test_a_past_that_cannot_be_read_says_why(serve: Opener) -> None:
    page = serve("demo")
    page.open()
    message = "No past: you may not list gpuhistories"
    page.stand.publish(past={"since": None, "message": message})
    page.wait("document.getElementById('hpas-past').textContent === arguments[0]", message)
    assert page.texts("#range button") == ["5 min", "30 min", "1 h", "All seen"]


def test_the_past_arrives_after_the_rest(serve: Opener) -> None:
    page = serve("demo")
    page.stand.state["about"]["started"] = time.time() - 2
    page.stand.publish(about=page.stand.state["about"])
    opened(page)
    page.stand.publish(past={"since": time.time() - 3600, "message": ""})
    page.wait("document.querySelectorAll('#range button').length === 6")
    page.wait("Number(document.querySelector('.chart-lines').ariaValueMax) < 40")
    page.wait(f"/gpu_utilization \\d/.test({_AT})")
    newest = _clock(page.js(_AT))
    page.js("document.querySelector('.chart-lines').focus()")
    page.press(Keys.HOME)
    assert (newest - _clock(page.js(_AT))) % 86_400 >= 28 * 60
