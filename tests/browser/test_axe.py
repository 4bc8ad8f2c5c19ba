"""axe-core finds nothing, in both themes, all states, and with everything open."""

from __future__ import annotations

import pytest

from tests.browser import axe, states
from tests.browser.conftest import Opener
from tests.browser.page import Page

_RUN = """
const done = arguments[0];
axe.run(document, {resultTypes: ["violations"], runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]})
  .then((found) => done(found.violations.map((v) => [v.id, v.nodes.length, v.nodes[0].html.slice(0, 200), v.nodes[0].failureSummary])), (error) => done([String(error)]));
"""


def violations(page: Page) -> list[object]:
    if page.js("'axe' in window"):
        return list(page.driver.execute_async_script(_RUN))
    # Through the debugger, which the Content Security Policy does not concern.
    page.driver.execute_cdp_cmd("Runtime.evaluate", {"expression": axe.source()})
    broken: list[object] = page.driver.execute_async_script(_RUN)
    return broken


@pytest.mark.parametrize("state", list(states.ALL))
def test_no_violation(serve: Opener, state: str) -> None:
    page = serve(state).open(theme="light")
    assert violations(page) == []
    page.theme("dark")
    page.settle()
    assert violations(page) == []


@pytest.mark.parametrize(("width", "theme"), [(360, "light"), (1280, "dark")])
@pytest.mark.parametrize("address", ["#/hpa/chat/llm?q=llm", "#/?map=table&pods=workloads"])
def test_no_violation_with_an_explanation_and_with_tables(
    serve: Opener, address: str, width: int, theme: str
) -> None:
    page = serve("demo").open(address, width=width, theme=theme)
    page.wait("document.querySelector('.lines') || !location.hash.includes('hpa')")
    assert violations(page) == []
