"""What every test process does once."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.examples import EVERY_TEST

settings.register_profile("every test", EVERY_TEST)
settings.load_profile("every test")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Keep the thousands of collected tests out of every later garbage collection."""
    gc.disable()
    yield
    gc.enable()
    gc.collect()
    gc.freeze()
