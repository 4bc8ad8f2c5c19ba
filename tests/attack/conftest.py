"""The fixture of every attack, and the table that the suite ends with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.attack.siege import Siege, besieged

_SEEN = "what the observer saw"
"""A property of a test's report, which a process of xdist sends to the one that prints."""


@pytest.fixture
def siege(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[..., Siege]]:
    """Start ``serve``; takes the arguments of :func:`tests.attack.siege.besieged`."""
    started: list[Siege] = []
    with ExitStack() as stack:

        def start(*pods: object, **config: object) -> Siege:
            started.append(stack.enter_context(besieged(tmp_path, *pods, **config)))  # type: ignore[arg-type]  # options by name
            return started[-1]

        yield start
    rows = ((_SEEN, attacked.seen.row(request.node.name)) for attacked in started)
    request.node.user_properties.extend(rows)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = (report for group in terminalreporter.stats.values() for report in group)
    ends = (report for report in reports if getattr(report, "when", "") == "teardown")
    if rows := [row for report in ends for name, row in report.user_properties if name == _SEEN]:
        terminalreporter.section(_SEEN)
        for row in rows:
            terminalreporter.line(row)
