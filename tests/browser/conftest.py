"""A browser for all tests, and a server with a state for each."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from selenium import webdriver

from tests.browser import states
from tests.browser.page import Page, console, start
from tests.browser.stand import Stand

Opener = Callable[..., Page]


@pytest.fixture(scope="session")
def driver() -> Iterator[webdriver.Chrome]:
    browser = start()
    yield browser
    browser.quit()


@pytest.fixture
def serve(driver: webdriver.Chrome) -> Iterator[Opener]:
    """``serve("demo")`` starts a server with a state. At the end, the console must be empty."""
    pages: list[Page] = []
    with ExitStack() as stack:

        def serving(state: str, *, port: int = 0, token: str = "") -> Page:
            stand = Stand(states.ALL[state](time.time()), port=port, token=token)
            page = Page(driver, stack.enter_context(stand))
            pages.append(page)
            return page

        console(driver)
        yield serving
        driver.get("about:blank")
        for page in pages:
            assert page.errors() == []
