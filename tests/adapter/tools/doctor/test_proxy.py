"""The API server's own answers are distinguished apart from those of the pods behind its proxy."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from adapter.config.process.output import Screen
from adapter.config.settings import Settings
from adapter.tools.client.access import cluster
from adapter.tools.client.errors import ClientError
from adapter.tools.doctor.facts import Fact
from adapter.tools.doctor.fetch import Fetched, Place, ProxyFetcher
from adapter.tools.doctor.page import ExporterPage, Trouble
from adapter.tools.doctor.report import DoctorReport
from adapter.tools.doctor.results import Outcome
from adapter.tools.doctor.runner import run
from adapter.tools.doctor.scrapes import exporter_pages
from tests.adapter.clientapi import Json, api_server, forbidden, status_of
from tests.adapter.tools.doctor.clean import clean
from tests.adapter.tools.doctor.faults.register import KEY_B, trouble

PATH = "/api/v1/namespaces/t/pods/p:9400/proxy/metrics"
RIGHTS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
PLACE = Place("pods", "t", "p", "http://10.0.0.1:9400/metrics")
CLOSED = "dial tcp 10.0.0.1:9400: connect: connection refused"
PAGES = ("GMA103", "GMA104", "GMA105")


def fetched(folder: Path, status: int, body: Json | bytes, *, allowed: bool = True) -> Fetched:
    async def look() -> Fetched:
        async with cluster(kubeconfig) as api:
            return await ProxyFetcher(api).fetch(PLACE, 1000)

    with api_server(folder) as (server, kubeconfig):
        server.answers[PATH] = (status, body)
        server.answers[RIGHTS] = {"status": {"allowed": allowed}}
        return asyncio.run(look())


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "address not allowed"),
        (404, 'pods "p" not found'),
        (429, "too many requests, please try again later"),
        (503, 'no endpoints available for service "p"'),
    ],
)
def test_a_refusal_of_the_proxy_says_nothing_of_the_pod(
    tmp_path: Path, status: int, message: str
) -> None:
    answer = fetched(tmp_path, status, status_of(status, message))
    text = f"the API server does not forward the request: {status} {message}"
    assert answer == Fetched(0, b"", error=text, unread=True)


def test_a_port_that_the_proxy_does_not_reach_is_closed(tmp_path: Path) -> None:
    answer = fetched(tmp_path, 503, status_of(503, f"error trying to reach service: {CLOSED}"))
    assert answer == Fetched(0, b"", error=CLOSED)


@pytest.mark.parametrize(
    "body",
    [
        b"error trying to reach service: nobody",
        b'{"kind": "Error", "message": "address not allowed"}',
        b'{"kind": "Status", "apiVersion": "v1", "code": 200, "message": "x"}',
        b"[]",
    ],
)
def test_another_answer_is_the_exporters(tmp_path: Path, body: bytes) -> None:
    assert fetched(tmp_path, 503, body) == Fetched(503, body)


def test_a_pod_cannot_claim_that_the_user_lacks_the_right(tmp_path: Path) -> None:
    """Otherwise one pod with an exporter's labels would end the checks of all exporters."""
    status, body = forbidden("bob", "get", "pods/proxy", "", "t")
    answer = fetched(tmp_path, status, body)
    assert (answer.status, answer.unread) == (0, True)
    with pytest.raises(ClientError, match="bob"):
        fetched(tmp_path, status, body, allowed=False)


REFUSED = "the API server does not forward the request: 400 address not allowed"


def test_pages_that_the_proxy_refuses_could_not_be_checked() -> None:
    facts = clean()
    trouble(facts, Trouble.UNREAD, REFUSED)
    results = {row.check.id: row for row in run(facts)}
    assert {key for key, row in results.items() if row.outcome is Outcome.UNKNOWN} == set(PAGES)
    assert [row.check.id for row in results.values() if row.findings] == []
    for key in PAGES:
        assert results[key].why == f"1 of 2 pages were not read, such as pod {KEY_B}: {REFUSED}"
        assert results[key].command.startswith("helm -n gpu-metrics test")


def test_a_finding_of_one_page_is_shown_beside_another_that_was_not_read() -> None:
    facts = clean()
    trouble(facts, Trouble.UNREAD, REFUSED)
    pages = dict(facts.pages.read())
    other = next(key for key in pages if key != KEY_B)
    pages[other] = replace(pages[other], trouble=Trouble.REFUSED, detail=CLOSED)
    facts.pages = Fact(pages)
    results = run(facts, ("GMA103",))
    assert results[0].outcome is Outcome.FOUND
    text = " ".join("\n".join(DoctorReport(results, "server").lines(Screen())).split())
    assert CLOSED in text
    assert "could not check: 1 of 2 pages were not read" in text


def test_no_check_of_pages_is_fine_if_no_page_was_read() -> None:
    facts = clean()
    pages = facts.pages.read().items()
    facts.pages = Fact({k: replace(p, trouble=Trouble.UNREAD, detail=REFUSED) for k, p in pages})
    outcomes = {result.check.id: result.outcome for result in run(facts)}
    assert {outcomes[key] for key in (*PAGES, "GMA121", "GMA125", "GMA129")} == {Outcome.UNKNOWN}


class Answers:
    """A fetcher with one answer for every page."""

    def __init__(self, status: int) -> None:
        self._status = status

    async def fetch(self, place: Place, most: int) -> Fetched:
        return Fetched(self._status, b"Unauthorized")


def read_pages(status: int, **scrape: object) -> ExporterPage:
    facts = clean()
    settings = Settings.model_validate({"source": {"scrape": scrape}})
    release = facts.release.read()
    assert release is not None
    facts.release = Fact(release._replace(settings=settings))
    pages = asyncio.run(exporter_pages(Answers(status), facts, []))
    return pages[KEY_B]


@pytest.mark.parametrize("status", [401, 403])
def test_a_page_that_asks_for_credentials_says_which_setting_sends_them(status: int) -> None:
    page = read_pages(status)
    assert page.trouble is Trouble.STATUS
    facts = clean()
    facts.pages = Fact({**facts.pages.read(), KEY_B: page})
    (result,) = run(facts, ("GMA104",))
    (finding,) = result.findings
    assert f"HTTP status {status}: the page needs credentials" in finding.message
    assert finding.fix.startswith("set authorization or basic_auth in a rule of source.scrape")


def test_a_page_whose_credentials_doctor_lacks_could_not_be_checked() -> None:
    page = read_pages(401, bearer_token_file="/token")
    assert (page.trouble, "which doctor does not have" in page.detail) == (Trouble.UNREAD, True)
    assert read_pages(404, bearer_token_file="/token").trouble is Trouble.STATUS


def test_a_finding_about_a_page_shows_it_as_doctor_has_read_it() -> None:
    page = read_pages(200)
    assert (page.trouble, page.url) == (Trouble.EMPTY, ":9400/metrics")
    facts = clean()
    facts.pages = Fact({**facts.pages.read(), KEY_B: page})
    (result,) = run(facts, ("GMA104",))
    (finding,) = result.findings
    name = KEY_B.partition("/")[2]
    path = f"/api/v1/namespaces/gpu-operator/pods/{name}:9400/proxy/metrics"
    assert finding.command == f"kubectl get --raw {path}"
