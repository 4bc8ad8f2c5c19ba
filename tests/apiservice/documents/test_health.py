"""Health endpoints name what fails, tell why to who may know, and log when it turns."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from structlog.testing import capture_logs

from apiservice.documents.health import Check, HealthRegistry
from tests.apiservice.world import World


class Switch:
    """A check that can be turned."""

    def __init__(self, reason: str | None = None) -> None:
        self.reason = reason

    def __call__(self) -> str | None:
        return self.reason


class Case(NamedTuple):
    """The reasons of two checks, a request, and its answer."""

    loop: str | None
    data: str | None
    endpoint: str
    verbose: bool
    exclude: list[str]
    code: int
    text: str


def _registry(loop: str | None, data: str | None) -> HealthRegistry:
    return HealthRegistry(
        live=[Check("scrape-loop", Switch(loop))], ready=[Check("fresh-data", Switch(data))]
    )


REPORTS = {
    "well": Case(None, None, "readyz", False, [], 200, "ok"),
    "well, verbose": Case(
        None,
        None,
        "readyz",
        True,
        [],
        200,
        "[+]ping ok\n[+]scrape-loop ok\n[+]fresh-data ok\nreadyz check passed\n",
    ),
    "liveness has no readiness": Case(
        None,
        "no exporter",
        "livez",
        True,
        [],
        200,
        "[+]ping ok\n[+]scrape-loop ok\nlivez check passed\n",
    ),
    "healthz is liveness": Case(
        None,
        "no exporter",
        "healthz",
        True,
        [],
        200,
        "[+]ping ok\n[+]scrape-loop ok\nhealthz check passed\n",
    ),
    "not ready": Case(
        None,
        "no exporter",
        "readyz",
        False,
        [],
        500,
        (
            "[+]ping ok\n[+]scrape-loop ok\n[-]fresh-data failed: reason withheld\n"
            "readyz check failed\n"
        ),
    ),
    "not live is not ready": Case(
        "stuck",
        None,
        "readyz",
        False,
        [],
        500,
        (
            "[+]ping ok\n[-]scrape-loop failed: reason withheld\n[+]fresh-data ok\n"
            "readyz check failed\n"
        ),
    ),
    "excluded": Case(
        None,
        "no exporter",
        "readyz",
        True,
        ["fresh-data"],
        200,
        "[+]ping ok\n[+]scrape-loop ok\n[+]fresh-data excluded: ok\nreadyz check passed\n",
    ),
    "excluding what is not there": Case(
        None,
        None,
        "livez",
        True,
        ["b", "a"],
        200,
        (
            "[+]ping ok\n[+]scrape-loop ok\n"
            'warn: some health checks cannot be excluded: no matches for "a","b"\n'
            "livez check passed\n"
        ),
    ),
}


@pytest.mark.parametrize("case", REPORTS.values(), ids=REPORTS)
def test_a_report(case: Case) -> None:
    registry = _registry(case.loop, case.data)
    report = registry.report(case.endpoint, verbose=case.verbose, exclude=case.exclude)
    assert report == (case.code, case.text)


async def test_over_http(world: World) -> None:
    check = Switch("no exporter was read yet")
    world.health.add_ready(Check("fresh-data", check))
    response = await world.get("/readyz")
    assert (response.status_code, response.text) == (
        500,
        "[+]ping ok\n[-]fresh-data failed: reason withheld\nreadyz check failed\n",
    )
    assert response.headers["content-type"] == "text/plain; charset=utf-8"
    assert (await world.get("/readyz?exclude=fresh-data")).text == "ok"
    check.reason = None
    assert (await world.get("/readyz?verbose")).text == (
        "[+]ping ok\n[+]fresh-data ok\nreadyz check passed\n"
    )


async def test_a_single_check_shows_its_reason(world: World) -> None:
    world.health.add_ready(Check("fresh-data", Switch("no exporter was read yet")))
    response = await world.get("/readyz/fresh-data")
    assert (response.status_code, response.text) == (
        500,
        "internal server error: no exporter was read yet\n",
    )
    response = await world.get("/readyz/ping")
    assert (response.status_code, response.text) == (200, "ok")
    assert (await world.get("/livez/fresh-data")).status_code == 404


def test_a_check_that_breaks_is_a_failing_check() -> None:
    def broken() -> str | None:
        message = "bug"
        raise RuntimeError(message)

    registry = HealthRegistry(live=[Check("loop", broken)])
    assert registry.report("livez", verbose=False).code == 500
    assert registry.single("livez", "loop") == (500, "internal server error: RuntimeError: bug\n")


def test_a_turn_is_logged_once() -> None:
    check = Switch("no exporter")
    registry = HealthRegistry(ready=[Check("fresh-data", check)])
    with capture_logs() as logs:
        for reason in ("no exporter", None, "no exporter"):
            check.reason = reason
            for _ in range(3):
                registry.report("readyz", verbose=False)
    assert [(entry["event"], entry["log_level"]) for entry in logs] == [
        ("health check does not pass yet", "info"),
        ("health check passes", "info"),
        ("health check fails", "warning"),
    ]


def test_a_check_that_does_not_pass_within_a_minute_is_a_warning() -> None:
    now = [0.0]
    registry = HealthRegistry(ready=[Check("data", Switch("none"))], clock=lambda: now[0])
    with capture_logs() as logs:
        for now[0] in (0.0, 59.0, 60.0, 61.0):
            registry.report("readyz", verbose=False)
    assert [(entry["event"], entry["log_level"]) for entry in logs] == [
        ("health check does not pass yet", "info"),
        ("health check fails", "warning"),
    ]


def test_an_orderly_end_is_not_a_warning() -> None:
    check = Switch()
    registry = HealthRegistry(ready=[Check("shutdown", check, expected=True)])
    with capture_logs() as logs:
        registry.report("readyz", verbose=False)
        check.reason = "the server is draining"
        assert registry.report("readyz", verbose=False).code == 500
    assert [entry["log_level"] for entry in logs] == ["info"]


def test_checks_can_be_added_later() -> None:
    registry = HealthRegistry()
    registry.add_live(Check("loop", Switch()))
    registry.add_ready(Check("data", Switch()))
    assert registry.names("livez") == ["ping", "loop"]
    assert registry.names("readyz") == ["ping", "loop", "data"]
