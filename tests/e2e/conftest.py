"""One stage and one site for all end-to-end tests, each started at its first use.

Each test uses its own namespace on the stage. The site is cleared after each test.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

import pytest

from tests.e2e import privatenetwork
from tests.e2e.site import Site
from tests.e2e.stage import Stage


@pytest.fixture(scope="session")
def running_stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """The running stage."""
    with Stage(tmp_path_factory.mktemp("stage")) as stage:
        yield stage


@pytest.fixture
def stage(running_stage: Stage) -> Iterator[Stage]:
    """The stage, without workloads."""
    yield running_stage
    running_stage.clear()


@pytest.fixture(scope="session")
def running_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The running site."""
    if reason := privatenetwork.missing():
        pytest.skip(reason)
    with Site(tmp_path_factory.mktemp("site")) as site:
        yield site


@pytest.fixture
def site(running_site: Site) -> Iterator[Site]:
    """The site, with nothing installed."""
    yield running_site
    running_site.clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Function, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the ends of all logs beside a failure."""
    report = yield
    if report.failed and call.when == "call":
        for running in item.funcargs.values():
            if isinstance(running, (Stage, Site)):
                report.sections.append(("the ends of the logs", running.tails()))
    return report
