"""One stage for all end-to-end tests; each test uses a namespace of its own."""

from __future__ import annotations

from collections.abc import Generator, Iterator

import pytest

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


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Function, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the ends of all logs beside a failure."""
    report = yield
    running = item.funcargs.get("stage") if report.failed and call.when == "call" else None
    if isinstance(running, Stage):
        report.sections.append(("the ends of the logs", running.tails()))
    return report
