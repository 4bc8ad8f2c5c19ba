"""Servers and channels of gRPC end in the test that made them."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def released() -> Iterator[None]:
    """Free what is left of gRPC's objects, which are in cycles, while their runtime exists.

    Objects of ``grpc.aio`` count in one runtime of the process, which is bound to an event loop. A
    server that a later collection freed, in the loop of another test, made that count wrong
    (``cygrpc.shutdown_grpc_aio``), and in two of three runs the process ended by a segmentation
    fault.
    """
    yield
    gc.collect()
