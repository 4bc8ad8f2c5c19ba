"""What every test process does once."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator

import pytest
from hypothesis import settings
from hypothesis import strategies as st

from tests.examples import EVERY_TEST

settings.register_profile("every test", EVERY_TEST)
settings.load_profile("every test")


@pytest.hookimpl(trylast=True)  # Hypothesis ends its own initialization in this hook
def pytest_sessionstart(session: pytest.Session) -> None:
    """Let the process that waits for the workers compute Hypothesis' table of characters.

    It takes seconds in a fresh clone, and each worker would compute it for itself.
    """
    if getattr(session.config.option, "numprocesses", None):
        threading.Thread(target=st.text().validate).start()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Keep the thousands of collected tests out of every later garbage collection.

    Collections are rare then too: with Python's threshold they take a tenth of the CPU time.
    """
    gc.disable()
    yield
    gc.freeze()
    gc.set_threshold(20_000)
    gc.enable()
