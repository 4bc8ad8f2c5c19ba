"""Slots for open connections: which connection gets one, and which is closed for it.

A connection is a front proxy's if its certificate proves that. Every other client is a stranger at
this level, because a bearer token comes with a request and not with a connection. Strangers cannot
take the slots that are reserved for front proxies. If strangers fill theirs, the stranger that has
been idle for longest is closed for the new one: one of the new client's address if that has reached
its limit, else one of an address that has most connections. So an address with one connection keeps
it. A stranger whose request is being answered is not closed for another, unless the options allow
it.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from typing import Protocol

from apiservice.http.options import ServingOptions, ServingStats


class Holder(Protocol):
    """A connection that holds a slot."""

    address: str
    """The client's address."""
    proxy: bool
    """Whether it is a front proxy's."""

    def evict(self) -> None:
        """End at once; the slot is free already."""


class Slots:
    """Gives slots to connections."""

    def __init__(self, options: ServingOptions, stats: ServingStats) -> None:
        self._stats = stats
        self._evict_busy = options.evict_busy
        self._each = options.max_connections_per_address
        # Handshakes in progress count towards the limit of all connections.
        self._most = max(1, options.max_connections - options.max_handshakes)
        self._strangers_most = max(1, self._most - options.reserved_connections)
        self._holders: set[Holder] = set()
        self._by_address: Counter[str] = Counter()
        self._idle: OrderedDict[Holder, None] = OrderedDict()
        """Strangers without a request in progress; the one that is idle for longest first."""
        self.strangers = 0
        """Connections that are not a front proxy's."""

    def take(self, holder: Holder) -> bool:
        """Give a slot. Return False, and count the refusal, if there is none."""
        full = len(self._holders) >= self._most
        if holder.proxy:
            if full and not self.evict():
                self._stats.refuse("connections", holder.address)
                return False
            self._holders.add(holder)
            return True
        if self._by_address[holder.address] >= self._each:
            if not self._evict_of(holder.address):
                self._stats.refuse("connections-per-address", holder.address)
                return False
        elif (full or self.strangers >= self._strangers_most) and not self.evict():
            self._stats.refuse("connections", holder.address)
            return False
        self._holders.add(holder)
        self.strangers += 1
        self._by_address[holder.address] += 1
        self._idle[holder] = None
        return True

    def leave(self, holder: Holder) -> None:
        """Free the slot of a connection that ends."""
        if holder not in self._holders:
            return
        self._holders.discard(holder)
        if holder.proxy:
            return
        self._idle.pop(holder, None)
        self.strangers -= 1
        self._by_address[holder.address] -= 1
        if not self._by_address[holder.address]:
            del self._by_address[holder.address]

    def busy(self, holder: Holder) -> None:
        """Record that a stranger's request is being answered."""
        if not self._evict_busy:
            self._idle.pop(holder, None)

    def idle(self, holder: Holder) -> None:
        """Record that all of a stranger's requests are answered."""
        if holder in self._holders:
            self._idle[holder] = None

    def evict(self) -> bool:
        """Close an idle stranger, as the module describes; False if none is idle."""
        if not self._idle:
            return False
        most = max(self._by_address.values())
        crowd = (stranger for stranger in self._idle if self._by_address[stranger.address] == most)
        return self._close(next(crowd, None) or next(iter(self._idle)))

    def _evict_of(self, address: str) -> bool:
        victim = next((stranger for stranger in self._idle if stranger.address == address), None)
        return victim is not None and self._close(victim)

    def _close(self, victim: Holder) -> bool:
        self.leave(victim)
        self._stats.refuse("idle-connections", victim.address)
        victim.evict()
        return True
