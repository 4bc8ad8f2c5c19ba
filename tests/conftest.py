"""What every test process does once."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from hypothesis import settings

settings.register_profile("patient", deadline=None)
settings.load_profile("patient")  # no test is about how long something takes


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Keep the thousands of collected tests out of every later garbage collection."""
    gc.disable()
    yield
    gc.enable()
    gc.collect()
    gc.freeze()
