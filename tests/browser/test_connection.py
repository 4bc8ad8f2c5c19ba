"""The page goes on after the server's restart, says when data are old, and can be paused."""

from __future__ import annotations

import re
import time

from tests.browser import states
from tests.browser.conftest import Opener
from tests.browser.stand import Stand

_REFUSED = "net::ERR_"


def test_a_lost_connection_is_named_with_the_age_and_comes_back_with_new_data(
    serve: Opener,
) -> None:
    page = serve("one").open()
    page.expected = [_REFUSED]
    old = page.stand
    port, token = old.port, old.access.token
    old.__exit__()
    page.wait("document.getElementById('connection-state').textContent === 'Connection lost'")
    page.wait("/· data \\d+ s old/.test(document.getElementById('connection-age').textContent)")
    assert page.text("#verdict-text") == old.state["verdict"]["text"], "what was seen stays"
    with Stand(states.demo(time.time()), port=port, token=token):
        page.wait("document.getElementById('connection-state').textContent === 'Live'")
        page.wait("document.querySelectorAll('#hpas-body tbody tr:not(.pad)').length === 6")


def test_after_a_restart_with_another_key_the_page_says_which_address_to_open(
    serve: Opener,
) -> None:
    page = serve("one").open()
    page.expected = [_REFUSED, "403"]
    port = page.stand.port
    page.stand.__exit__()
    with Stand(states.one(time.time()), port=port):
        page.wait(
            "document.getElementById('connection-state').textContent === 'Server started again'"
        )
        assert "open the address that it printed" in page.text("#connection")


def test_a_paused_page_counts_updates_and_shows_the_newest_when_it_goes_on(serve: Opener) -> None:
    page = serve("one").open()
    before = page.text("#verdict-text")
    page.find("#pause").click()
    for number in (1, 2, 3):
        verdict = {**page.stand.state["verdict"], "text": f"update {number}"}
        page.stand.publish(verdict=verdict)
        page.wait(
            f"document.getElementById('connection-age').textContent.includes('{number} update')"
        )
    assert page.text("#connection-state") == "Paused"
    assert page.text("#verdict-text") == before
    page.find("#pause").click()
    page.wait("document.getElementById('verdict-text').textContent === 'update 3'")
    assert page.text("#connection-state") == "Live"


_AGE = re.compile(r"(?:data|shown are) (\d+) s old")


def test_the_age_is_that_of_the_oldest_list_and_lists_that_stopped_are_named(
    serve: Opener,
) -> None:
    page = serve("demo").open()
    assert page.text("#connection-state") == "Live"
    now = time.time()
    panels = [
        {**panel, "updated": now - (46 if panel["panel"] == "gpus" else 1)}
        | ({"status": "failed", "message": "503"} if panel["panel"] == "gpus" else {})
        for panel in page.stand.state["panels"]
    ]
    page.stand.publish(panels=panels)
    page.wait("document.getElementById('connection-state').textContent === 'Old: GPUs'")
    ages = page.js(
        "['#connection-age', '#fleet-notices'].map((one) => document.querySelector(one).textContent)"
    )
    seconds = [int(_AGE.findall(text)[0]) for text in ages]
    assert seconds[0] == seconds[1] >= 46, "one age in both places"
    page.stand.publish(panels=[{**panel, "status": "failed"} for panel in panels])
    page.wait("document.getElementById('connection-state').textContent === 'Not live'")


def test_lists_that_are_not_read_again_are_old_though_nothing_failed(serve: Opener) -> None:
    page = serve("demo").open()
    panels = [{**panel, "updated": time.time() - 200} for panel in page.stand.state["panels"]]
    page.stand.publish(panels=panels)
    page.wait("document.getElementById('connection-state').textContent === 'Not live'")
    assert "The GPUs shown are 200 s old" in page.text("#fleet-notices") or "3 min" in page.text(
        "#fleet-notices"
    )


def test_lists_that_take_so_long_that_they_are_read_seldom_are_not_live(serve: Opener) -> None:
    page = serve("demo").open()
    old = {"status": "ok", "updated": time.time() - 65, "took": 6.0}
    panels = [
        panel | (old if panel["panel"] in ("gpus", "hpas") else {"updated": time.time()})
        for panel in page.stand.state["panels"]
    ]
    page.stand.publish(panels=panels)
    state = "document.getElementById('connection-state').textContent"
    page.wait(f"{state} === 'Read seldom: GPUs and HPAs'")
    assert "data 6" in page.text("#connection-age")
    assert "warning" in page.js("document.getElementById('connection').className")


def test_nothing_is_loaded_from_another_origin(serve: Opener) -> None:
    page = serve("demo").open("#/hpa/chat/llm")
    page.wait("document.querySelector('.lines')")
    loaded = page.js(
        "performance.getEntriesByType('resource').map((entry) => new URL(entry.name).origin)"
    )
    assert len(loaded) > 20
    assert set(loaded) == {f"http://127.0.0.1:{page.stand.port}"}
