"""The fixture of every attack, and the table that the suite ends with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.attack.siege import Siege, besieged

_ROWS = pytest.StashKey[list[str]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_ROWS] = []


@pytest.fixture
def siege(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[..., Siege]]:
    """Start ``serve``; takes the arguments of :func:`tests.attack.siege.besieged`."""
    started: list[Siege] = []
    with ExitStack() as stack:

        def start(*pods: object, **config: object) -> Siege:
            started.append(stack.enter_context(besieged(tmp_path, *pods, **config)))  # type: ignore[arg-type]  # options by name
            return started[-1]

        yield start
    rows = request.config.stash[_ROWS]
    rows.extend(each.seen.row(request.node.name) for each in started)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    if rows := config.stash[_ROWS]:
        terminalreporter.section("what the observer saw")
        for row in rows:
            terminalreporter.line(row)
