"""The input and the output of a load client."""

from __future__ import annotations

import msgspec


class Plan(msgspec.Struct):
    """What to ask, and for how long."""

    host: str
    port: int
    server_name: str
    ca: str
    cert: str
    key: str
    target: str
    """Request target, path and query."""
    headers: list[tuple[str, str]]
    connections: int
    seconds: float
    warm_up: float
    marker: str = "svc-"
    """Counted in the body of every 64th answer of a connection, and of its first: in the
    name of each pod, whether the answer is JSON or protobuf."""
    expected: int = 100
    """How often ``marker`` must be there."""
    targets: list[str] = []
    """Asked instead of ``target``, when given: in turn, parted among the connections."""
    once: bool = False
    """Ask for every target exactly once, however long it takes, with no warm-up."""
    every: float = 0.0
    """Seconds between two requests of a target, the targets evenly spaced in it, as HPAs ask; 0
    asks again as soon as there is an answer."""


class Calls(msgspec.Struct):
    """What to ask KEDA's external scaler, over one connection as KEDA's operator does."""

    port: int
    """On loopback, without TLS."""
    objects: int
    """ScaledObjects, each with metadata of its own; asked in turn."""
    in_flight: int
    """Calls under way at once."""
    seconds: float
    warm_up: float
    rate: float = 0.0
    """Calls a second, evenly spaced; 0 asks again as soon as there is an answer."""


class Outcome(msgspec.Struct):
    """What came of it. Latencies are microseconds, one per answer."""

    elapsed: float
    """Seconds from the first request to the last answer."""
    cpu: float
    """CPU seconds of the client itself."""
    body: int
    """Bytes of the last body."""
    latencies: list[int]
