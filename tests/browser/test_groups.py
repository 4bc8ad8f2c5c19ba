"""HPAs that one cause stops are one row, which unfolds with the mouse and the keyboard."""

from __future__ import annotations

from selenium.webdriver.common.keys import Keys

from tests.browser.conftest import Opener

_STUCK = "document.querySelectorAll('#hpas-body tr.member').length"


def test_fifty_stuck_hpas_are_one_row_with_the_cause_and_the_first_names(serve: Opener) -> None:
    page = serve("large").open()
    stuck, full = page.rows("hpas")[:2]
    assert stuck[0].split("\n")[0] == full[0].split("\n")[0] == "50 HPAs"
    assert stuck[2].startswith("team-0/svc-0, ")
    assert stuck[2].endswith(" and 47 more")
    assert stuck[1].startswith("stuck")
    assert stuck[1].endswith("pods have no value: … (exporter_down)")
    assert page.text("#hpas-count") == "2,000 HPAs", "a group hides none of them"
    assert (
        page.js("document.querySelector('#hpas-body table').getAttribute('aria-rowcount')")
        == "1903"
    )


def test_a_group_unfolds_with_the_keyboard_and_stays_open_when_data_arrive(serve: Opener) -> None:
    page = serve("large").open()
    page.js("document.querySelector('#hpas-body button.unfold').focus()")
    page.press(Keys.ENTER)
    assert page.js(f"{_STUCK} > 5")
    assert page.js("document.activeElement.getAttribute('aria-expanded')") == "true"
    assert page.js("document.activeElement.className") == "unfold", "the focus stays"
    hpas = [{**hpa, "current": 5} for hpa in page.stand.state["hpas"]]
    page.stand.publish(hpas=hpas)
    page.wait("document.querySelector('#hpas-body tr.member').innerText.includes('5')")
    page.press(Keys.SPACE)
    assert page.js(_STUCK) == 0


def test_a_click_on_the_row_of_a_group_unfolds_it_and_its_hpas_open(serve: Opener) -> None:
    page = serve("large").open()
    page.find("#hpas-body tr.group td:nth-child(2)").click()
    page.wait(f"{_STUCK} > 5")
    page.find("#hpas-body tr.member td:nth-child(2)").click()
    page.wait("document.getElementById('side').open")
    assert page.js("location.hash").startswith("#/hpa/team-0/svc-0")


def test_a_filter_counts_the_members_that_it_lets_through(serve: Opener) -> None:
    page = serve("large").open("#/?q=svc-4")
    page.wait("document.querySelectorAll('#hpas-body tr.group').length === 2")
    number = int(page.rows("hpas")[0][0].split(" ")[0])
    stuck = [hpa for hpa in page.stand.state["hpas"] if hpa["decision"] == "stuck"]
    assert number == sum("svc-4" in hpa["name"] for hpa in stuck) < 50


def test_few_hpas_are_rows_also_with_one_cause(serve: Opener) -> None:
    page = serve("demo").open()
    assert page.js("document.querySelectorAll('#hpas-body tr.group').length") == 0
