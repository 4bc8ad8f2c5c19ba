"""One stage and one site for the end-to-end tests of a process, each started at its first use.

Each test uses its own namespace on the stage. The site is cleared after each test.
`make e2e E2E_WORKERS=2` runs two processes, each in a network of its own: mostly they wait.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Final

import pytest

from tests.e2e.site import Site
from tests.e2e.stage import Stage
from tests.needs import OWN_NETWORK, needed_by_fixture

LONGEST: Final = (
    "test_nodepool_lab",
    "test_install",
    "test_nodepool_orders",
    "test_rules",
    "test_doctor",
    "test_nodepool",
    "test_maintain",
    "test_chart_move",
)
"""The modules that take longest, which several processes start first: none then waits long for
the others."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not hasattr(config, "workerinput"):
        return
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path.stem, len(places)))


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
@needed_by_fixture(OWN_NETWORK)
def running_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The running site."""
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
