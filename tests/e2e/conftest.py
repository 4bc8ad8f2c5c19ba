"""One stage and one site for the end-to-end tests of a process, each started at its first use.

Each test uses its own namespace on the stage. The site is cleared after each test.
`make e2e` runs three processes, each in a network of its own. One runs the modules that mostly
wait, so that they need little of what the other two compute with.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Final

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from tests.e2e.site import Site
from tests.e2e.stage import Stage
from tests.needs import OWN_NETWORK, needed_by_fixture

WAITING: Final = (
    "test_nodepool_lab",
    "test_nodepool_orders",
    "test_promise",
    "test_latency",
    "test_expiry",
    "test_nodepool_ahead",
)
"""The modules that wait for boots, syncs and windows most of the time: half an hour in all."""
LONGEST: Final = (
    "test_install",
    "test_rules",
    "test_doctor",
    "test_nodepool",
    "test_maintain",
    "test_chart_move",
)
"""The others that take longest, which several processes start first: none then waits long for
the others."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not hasattr(config, "workerinput"):
        return
    places = {name: place for place, name in enumerate(WAITING + LONGEST)}
    items.sort(key=lambda item: places.get(item.path.stem, len(places)))


class ModuleScheduling(LoadFileScheduling):
    """Runs each module in one process, and those that wait in the same one."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return "waiting" if Path(file).stem in WAITING else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ModuleScheduling:
    return ModuleScheduling(config, log)


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
