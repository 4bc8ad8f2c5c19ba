"""Limits on TLS handshakes: their number and their rate, in total and for each address.

A client before the end of its handshake is known only by its address, and a handshake costs memory
and a millisecond of CPU. So their number and their rate are bounded. If too many handshakes are in
progress, the oldest one of the address that has most of them is cancelled. So an address with one
handshake keeps it, regardless of other clients.

A quarter of the rate is reserved for addresses that were silent for two seconds. So a few addresses
that connect without pause cannot keep out an API server that connects for the first time.

An address from which a client has proven a front proxy's certificate has a rate of its own, so that
strangers cannot use up what the API server needs. The rate is limited too, because strangers behind
the same NAT may share the address.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from cachetools import LRUCache

from apiservice.http.options import ServingOptions, ServingStats

_ADDRESSES: Final = 4096
"""Addresses whose rate is kept; the one that was silent for longest is evicted."""
_PROXIES: Final = 256
"""Addresses of front proxies that are kept."""
_BURST: Final = 2.0
"""Seconds' worth of handshakes that may come at once."""
_QUIET: Final = 0.25
"""Share of the rate of all addresses that is reserved for those that were silent."""


class _Bucket:
    """Fills with ``rate`` tokens for each second, up to two seconds' worth."""

    __slots__ = ("_at", "_rate", "_tokens")

    def __init__(self, rate: float, now: float) -> None:
        self._rate = rate
        self._tokens = max(1.0, rate * _BURST)
        self._at = now

    def quiet(self, now: float) -> bool:
        """Whether no token was taken or requested for as long as it takes to fill."""
        return now - self._at >= _BURST

    def take(self, now: float) -> bool:
        """Take one token, if there is one."""
        most = max(1.0, self._rate * _BURST)
        self._tokens = min(most, self._tokens + (now - self._at) * self._rate)
        self._at = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True


class Handshakes:
    """The handshakes in progress."""

    def __init__(
        self,
        options: ServingOptions,
        stats: ServingStats,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._options = options
        self._stats = stats
        self._clock = clock
        rate = options.handshakes_per_second
        self._all = _Bucket((1 - _QUIET) * rate, clock())
        self._quiet = _Bucket(_QUIET * rate, clock())
        self._rates: LRUCache[str, _Bucket] = LRUCache(_ADDRESSES)
        self._proxies: LRUCache[str, _Bucket] = LRUCache(_PROXIES)
        self._running: dict[str, dict[asyncio.Task[None], None]] = {}
        """Address -> its handshakes, the oldest first."""
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def admit(self, address: str) -> bool:
        """Return whether this address may start another handshake now; count it if not."""
        now = self._clock()
        proxy = self._proxies.get(address)
        if proxy is not None:
            allowed = proxy.take(now)
        else:
            rate = self._rates.get(address)
            quiet = rate is None or rate.quiet(now)
            if rate is None:
                per_address = self._options.handshakes_per_second / 4
                rate = self._rates[address] = _Bucket(per_address, now)
            allowed = rate.take(now) and (self._all.take(now) or (quiet and self._quiet.take(now)))
        if not allowed:
            self._stats.refuse("handshake-rate", address)
        return allowed

    def begin(self, address: str, task: asyncio.Task[None]) -> None:
        """Record that a handshake started; :meth:`end` is called when the task is done."""
        if self._count >= self._options.max_handshakes:
            self.drop_oldest()
        self._running.setdefault(address, {})[task] = None
        self._count += 1
        task.add_done_callback(lambda done: self._end(address, done))

    def note_proxy(self, address: str) -> None:
        """Record that a client at this address has proven a front proxy's certificate."""
        if address not in self._proxies:
            rate = 4 * self._options.handshakes_per_second
            self._proxies[address] = _Bucket(rate, self._clock())

    def drop_oldest(self) -> bool:
        """Cancel the oldest handshake of the address that has most; False if there is none."""
        if not self._running:
            return False
        address = max(self._running, key=lambda client: len(self._running[client]))
        task = next(iter(self._running[address]))
        self._stats.refuse("handshakes", address)
        task.cancel()
        self._end(address, task)
        return True

    async def cancel(self) -> None:
        """Cancel all handshakes."""
        tasks = [task for some in self._running.values() for task in some]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def wait_for_end(self) -> None:
        """Wait until no handshake is in progress."""
        while self._running:
            tasks = [task for some in self._running.values() for task in some]
            await asyncio.wait(tasks)

    def _end(self, address: str, task: asyncio.Task[None]) -> None:
        running = self._running.get(address, {})
        if task not in running:
            return
        del running[task]
        self._count -= 1
        if not running:
            del self._running[address]
