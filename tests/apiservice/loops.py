"""What runs the body of a test on one of the event loops that the server supports."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

Body = Callable[[], Awaitable[None]]
Run = Callable[[Body], None]
