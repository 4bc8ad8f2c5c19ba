"""Look up host names without a pool of threads that one bad name could fill.

uvloop looks up names on libuv's pool: two at a time (``uv_getaddrinfo`` counts as slow work, which
may take half of the four threads), so two names whose server does not answer held up every other
name of the process for as long as the system's resolver waits, 10 s by default (``resolv.conf(5)``,
timeout and attempts). Here each look-up has a thread of its own, a name is looked up once at a
time, and names that were slow before wait for each other only.

A caller waits for a bounded time. The look-up goes on without it, and its answer is for the next
caller: a name that takes longer than every caller waits is found nevertheless.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import threading
from collections import OrderedDict
from contextlib import suppress
from ipaddress import ip_address
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

from aiohttp.abc import AbstractResolver, ResolveResult

from apiservice.runtime.flight import SingleFlight

_QUICK: Final = 16
"""Look-ups at once of names that were not slow before."""
_SLOW: Final = 4
"""Look-ups at once of those that were."""
_PATIENCE: Final = 1.0
"""Seconds after which a look-up counts as slow, and waits no more in others' places."""
_REMEMBERED: Final = 1024
"""Names that were slow; and answers that came late."""
_WAIT: Final = 8.0
"""Seconds that a caller waits: a name server that is down costs 5 s before the next one is asked
(``resolv.conf(5)``), and most requests of this process may take 10 s."""
_KEPT: Final = 30.0
"""Seconds for which an answer that came late is used: as long as many records of DNS."""


class NameLookups:
    """Looks up the addresses of host names."""

    def __init__(self) -> None:
        self._flights: SingleFlight[_Key, list[str]] = SingleFlight()
        self._quick = asyncio.Semaphore(_QUICK)
        self._slow = asyncio.Semaphore(_SLOW)
        self._suspects: OrderedDict[str, None] = OrderedDict()
        self._late: OrderedDict[_Key, tuple[list[str], float]] = OrderedDict()
        """Answers that came late, and until when they are used."""

    async def find(
        self,
        host: str,
        port: int,
        family: int = socket.AF_UNSPEC,
        *,
        wait: float | None = None,
    ) -> list[str]:
        """Return the addresses of a name, IPv6 or IPv4, at least one; an address is its own.

        A caller that is cancelled, or has waited for ``wait`` seconds, leaves the look-up to the
        next one.

        Raises:
            OSError: the name has none, or its server did not answer, or not yet.
        """
        with suppress(ValueError):
            ip_address(host)
            return [host]
        key, most = (host, port, family), _WAIT if wait is None else wait
        addresses, until = self._late.get(key, ([], 0.0))
        if asyncio.get_running_loop().time() < until:
            return addresses
        try:
            async with asyncio.timeout(most):
                return await self._flights.ask(key, lambda: self._find(key))
        except TimeoutError as error:
            why = f"its name server has not answered within {most:g} s"
            raise socket.gaierror(socket.EAI_AGAIN, why) from error

    async def _find(self, key: _Key) -> list[str]:
        host = key[0]
        slow = host in self._suspects
        async with self._slow if slow else self._quick:
            answer = _start(*key)
            await asyncio.wait((answer,), timeout=_PATIENCE)
            late = not answer.done()
            if late:
                _remember(self._suspects, host, None)
            if slow:
                await asyncio.wait((answer,))
        addresses = await answer
        self._suspects.pop(host, None)
        if late:
            until = asyncio.get_running_loop().time() + _KEPT
            _remember(self._late, key, (addresses, until))
        return addresses


_Key = tuple[str, int, int]
"""Host, port, family."""
_K = TypeVar("_K")
_V = TypeVar("_V")
_rooms: WeakKeyDictionary[asyncio.AbstractEventLoop, NameLookups] = WeakKeyDictionary()


def lookups() -> NameLookups:
    """Return the look-ups of the running event loop, which all clients of the process share."""
    loop = asyncio.get_running_loop()
    room = _rooms.get(loop)
    if room is None:
        room = _rooms[loop] = NameLookups()
    return room


def _remember(memory: OrderedDict[_K, _V], key: _K, thing: _V) -> None:
    """Add to a bounded memory; the oldest goes."""
    memory[key] = thing
    memory.move_to_end(key)
    if len(memory) > _REMEMBERED:
        memory.popitem(last=False)


def _start(host: str, port: int, family: int) -> asyncio.Future[list[str]]:
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[list[str]] = loop.create_future()

    def settle(addresses: list[str] | None, error: OSError | None) -> None:
        if answer.cancelled():
            return
        if error is not None:
            answer.set_exception(error)
        else:
            answer.set_result(addresses or [])

    def work() -> None:
        addresses, failed = None, None
        try:
            infos = socket.getaddrinfo(
                host, port, family, socket.SOCK_STREAM, 0, socket.AI_ADDRCONFIG
            )
            addresses = list(dict.fromkeys(_text(address) for _, _, _, _, address in infos))
        except OSError as error:
            failed = error
        except UnicodeError as error:  # a label of more than 63 characters
            failed = socket.gaierror(socket.EAI_NONAME, f"not a host name: {error}")
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(settle, addresses, failed)

    # A daemon: a look-up that hangs does not hold up the end of the process.
    thread = threading.Thread(target=work, name=f"look up {host}"[:40], daemon=True)
    try:
        thread.start()
    except RuntimeError as error:  # the process may have no more threads
        raise OSError(errno.EAGAIN, f"{host} is not looked up: {error}") from None
    return answer


class Resolver(AbstractResolver):
    """Looks up names for aiohttp, with all other clients of the event loop."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """See :class:`AbstractResolver`."""
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for address in await lookups().find(host, port, family)
        ]

    async def close(self) -> None:
        """See :class:`AbstractResolver`."""


def _text(address: tuple[Any, ...]) -> str:
    """Return an address with its interface, if it is local to one."""
    if len(address) > 3 and address[3]:
        return f"{address[0]}%{address[3]}"
    return str(address[0])
