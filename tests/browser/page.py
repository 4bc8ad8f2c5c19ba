"""The page in a real browser."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any, Final

from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

from tests.browser.stand import Stand

_CHROMIUM: Final = Path("/usr/bin/chromium")
_DRIVER: Final = Path("/usr/bin/chromedriver")
_FLAGS: Final = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-dev-shm-usage", "--js-flags=--expose-gc"),
)
_LIMIT: Final = 30.0


class NoBrowserError(Exception):
    """Chromium is not on this machine."""


def start() -> webdriver.Chrome:
    """Start a browser with an empty profile; raises NoBrowserError."""
    for program in (_CHROMIUM, _DRIVER):
        if not program.exists():
            raise NoBrowserError(f"{program} is missing: install chromium and chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = str(_CHROMIUM)
    for flag in (*_FLAGS, f"--user-data-dir={tempfile.mkdtemp(prefix='gma-browser-')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(str(_DRIVER)))


def console(driver: webdriver.Chrome) -> list[dict[str, Any]]:
    """Return what the console says since the last call."""
    entries: list[dict[str, Any]] = driver.get_log("browser")  # type: ignore[no-untyped-call] # of selenium
    return entries


class Page:
    """One visit of the page."""

    def __init__(self, driver: webdriver.Chrome, stand: Stand) -> None:
        self.driver = driver
        self.stand = stand
        self.expected: list[str] = []
        """Parts of console errors that the test provokes."""

    def open(
        self, address: str = "", *, width: int = 1280, height: int = 900, theme: str = "light"
    ) -> Page:
        """Open the page with its key, in a size and a theme."""
        self.size(width, height)
        self.theme(theme)
        self.driver.get("about:blank")
        self.driver.get(f"{self.stand.access.url}{address}")
        self.wait("document.getElementById('connection').dataset.stream === 'live'")
        self.settle()
        return self

    def size(self, width: int, height: int = 900) -> None:
        """Set the size of the window."""
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
        )

    def theme(self, theme: str) -> None:
        """Set what the system prefers."""
        features = [{"name": "prefers-color-scheme", "value": theme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def js(self, code: str, *given: Any) -> Any:
        """Return the value of an expression."""
        return self.driver.execute_script(f"return ({code})", *given)

    def wait(self, code: str, *given: Any) -> Any:
        """Wait until an expression is true, and return its value."""
        end = time.monotonic() + _LIMIT
        while not (value := self.js(code, *given)):
            assert time.monotonic() < end, f"never true: {code}\n{self.text('body')[:2000]}"
            time.sleep(0.02)
        return value

    def settle(self) -> None:
        """Wait until the page has drawn what it has."""
        self.driver.execute_async_script(
            "const done = arguments[0], frame = requestAnimationFrame;"
            "const drawn = () => ((document.documentElement.dataset.due ?? '0') === '0' ? done() : frame(drawn));"
            "frame(() => frame(() => frame(drawn)));"
        )

    def find(self, selector: str) -> WebElement:
        """Return an element."""
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def text(self, selector: str) -> str:
        """Return the visible text of an element."""
        return self.find(selector).text

    def texts(self, selector: str) -> list[str]:
        """Return the contents of elements, also of those out of sight."""
        texts = self.js(
            "[...document.querySelectorAll(arguments[0])].map((e) => e.textContent)", selector
        )
        return [str(text) for text in texts]

    def rows(self, panel: str) -> list[list[str]]:
        """Return the cells of a panel's table that exist."""
        code = "[...document.querySelectorAll(`#${arguments[0]}-body tbody tr:not(.pad)`)].map((r) => [...r.cells].map((c) => c.innerText))"
        return [[str(cell) for cell in row] for row in self.js(code, panel)]

    def press(self, *keys: str) -> None:
        """Press keys where the focus is."""
        for key in keys:
            ActionChains(self.driver).send_keys(key).perform()
        self.settle()

    def click_at(self, x: float, y: float) -> None:
        """Click at a place of the window."""
        for kind in ("mousePressed", "mouseReleased"):
            self.driver.execute_cdp_cmd(
                "Input.dispatchMouseEvent",
                {"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1},
            )

    def errors(self) -> list[str]:
        """Return what the console says, without what the test expects."""
        messages = [str(entry["message"]) for entry in console(self.driver)]
        return [text for text in messages if not any(part in text for part in self.expected)]
