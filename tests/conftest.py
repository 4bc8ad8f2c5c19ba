"""What every test process does once."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st

from tests import needs
from tests.examples import EVERY_TEST, leave_out_constants

settings.register_profile("every test", EVERY_TEST)
settings.load_profile("every test")

# Reading the system's certificate authorities takes 50 ms of CPU time for each TLS context, and no
# test connects to a server that they signed. The processes that tests start inherit this setting.
os.environ["SSL_CERT_FILE"] = os.devnull
# No test leaves a certificate in the home directory.
os.environ["XDG_STATE_HOME"] = os.devnull


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--may-lack",
        action="append",
        metavar="NEED",
        help="fail if a test is skipped for another reason than lacking this (may be repeated)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """With a seed, try the same examples in every run of a commit."""
    if config.getoption("--hypothesis-seed") is not None:
        leave_out_constants()


def _skipped(reporter: pytest.TerminalReporter) -> list[str]:
    """Why each skipped test was skipped."""
    reports = reporter.stats.get("skipped", [])
    return [str(report.longrepr[2]).removeprefix("Skipped: ") for report in reports]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was skipped, why, and how to run it."""
    for line in needs.summary(_skipped(terminalreporter)):
        terminalreporter.write_line(line)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail where a test was skipped for a reason that the command line does not allow."""
    lacking = session.config.getoption("--may-lack")
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if lacking is None or hasattr(session.config, "workerinput") or reporter is None:
        return
    if reasons := needs.unexpected(_skipped(reporter), lacking):
        reporter.write_line("", red=True)
        for reason in reasons:
            reporter.write_line(f"a test may not be skipped {reason}", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(trylast=True)  # Hypothesis ends its own initialization in this hook
def pytest_sessionstart(session: pytest.Session) -> None:
    """Let the process that waits for the workers compute Hypothesis' table of characters.

    It takes seconds in a fresh clone, and each worker would compute it for itself.
    """
    if getattr(session.config.option, "numprocesses", None):
        threading.Thread(target=st.text().validate).start()


@pytest.hookimpl(tryfirst=True)  # before -m selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip each test whose needs are not met."""
    needs.mark(items)


@pytest.hookimpl(tryfirst=True)  # before fixtures are made
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let a test use the programs that it is marked with."""
    needs.run(item)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Keep the thousands of collected tests out of every later garbage collection.

    Collections are rare then too: with Python's threshold they take a tenth of the CPU time.
    """
    gc.disable()
    _import_share(session.config)
    yield
    gc.freeze()
    gc.set_threshold(20_000)
    gc.enable()


def _import_share(config: pytest.Config) -> None:
    """Import every n-th test module first, in each of n workers.

    In a fresh clone pytest compiles each module, and keeps the result for the other workers. All
    workers collect in the same order: without this, each compiles each module at the same time.
    """
    worker = getattr(config, "workerinput", None)
    if worker is None:
        return
    ignored = tuple(Path(path).resolve() for path in config.getoption("ignore") or ())
    folders = [config.invocation_params.dir / name for name in config.args]
    modules = [
        path.relative_to(config.rootpath)
        for folder in folders
        for path in sorted(folder.rglob("test_*.py"))
        if not any(path.is_relative_to(other) for other in ignored)
    ]
    first, step = int(worker["workerid"].removeprefix("gw")), worker["workercount"]
    for path in modules[first::step]:
        # The collection imports a module that failed again, and reports the failure.
        with contextlib.suppress(Exception):
            importlib.import_module(".".join(path.with_suffix("").parts))
