"""Look up host names without a pool of threads that one bad name could fill.

uvloop looks up names on libuv's pool: two at a time (``uv_getaddrinfo`` counts as slow work, which
may take half of the four threads), so two names whose server does not answer held up every other
name of the process for as long as the system's resolver waits, 10 s by default (``resolv.conf(5)``,
timeout and attempts). Here each look-up has a thread of its own, a name is looked up once at a
time, and names that were slow before wait for each other only.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import threading
from collections import OrderedDict
from contextlib import suppress
from ipaddress import ip_address
from typing import Any, Final

from aiohttp.abc import AbstractResolver, ResolveResult

from apiservice.runtime.flight import SingleFlight

_QUICK: Final = 16
"""Look-ups at once of names that were not slow before."""
_SLOW: Final = 4
"""Look-ups at once of those that were."""
_PATIENCE: Final = 1.0
"""Seconds after which a look-up counts as slow, and waits no more in others' places."""
_REMEMBERED: Final = 1024
"""Names that were slow."""


class NameLookups:
    """Looks up the addresses of host names."""

    def __init__(self) -> None:
        self._flights: SingleFlight[tuple[str, int, int], list[str]] = SingleFlight()
        self._quick = asyncio.Semaphore(_QUICK)
        self._slow = asyncio.Semaphore(_SLOW)
        self._suspects: OrderedDict[str, None] = OrderedDict()

    async def find(self, host: str, port: int, family: int = socket.AF_UNSPEC) -> list[str]:
        """Return the addresses of a name, IPv6 or IPv4, at least one; an address is its own.

        A caller that is cancelled leaves the look-up to the next one.

        Raises:
            OSError: the name has none, or its server did not answer.
        """
        with suppress(ValueError):
            ip_address(host)
            return [host]
        key = (host, port, family)
        return await self._flights.ask(key, lambda: self._find(host, port, family))

    async def _find(self, host: str, port: int, family: int) -> list[str]:
        slow = host in self._suspects
        async with self._slow if slow else self._quick:
            answer = _start(host, port, family)
            await asyncio.wait((answer,), timeout=None if slow else _PATIENCE)
        late = slow or not answer.done()
        if late:
            self._suspects[host] = None
            if len(self._suspects) > _REMEMBERED:
                self._suspects.popitem(last=False)
        found = await answer
        self._suspects.pop(host, None)
        return found


def _start(host: str, port: int, family: int) -> asyncio.Future[list[str]]:
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[list[str]] = loop.create_future()

    def settle(found: list[str] | None, error: OSError | None) -> None:
        if answer.cancelled():
            return
        if error is not None:
            answer.set_exception(error)
        else:
            answer.set_result(found or [])

    def work() -> None:
        found, failed = None, None
        try:
            infos = socket.getaddrinfo(
                host, port, family, socket.SOCK_STREAM, 0, socket.AI_ADDRCONFIG
            )
            found = list(dict.fromkeys(_text(address) for _, _, _, _, address in infos))
        except OSError as error:
            failed = error
        except UnicodeError as error:  # a label of more than 63 characters
            failed = socket.gaierror(socket.EAI_NONAME, f"not a host name: {error}")
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(settle, found, failed)

    # A daemon: a look-up that hangs does not hold up the end of the process.
    thread = threading.Thread(target=work, name=f"look up {host}"[:40], daemon=True)
    try:
        thread.start()
    except RuntimeError as error:  # the process may have no more threads
        raise OSError(errno.EAGAIN, f"{host} is not looked up: {error}") from None
    return answer


class Resolver(AbstractResolver):
    """Looks up names for aiohttp."""

    def __init__(self) -> None:
        self._names = NameLookups()

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
            for address in await self._names.find(host, port, family)
        ]

    async def close(self) -> None:
        """See :class:`AbstractResolver`."""


def _text(address: tuple[Any, ...]) -> str:
    """Return an address with its interface, if it is local to one."""
    if len(address) > 3 and address[3]:
        return f"{address[0]}%{address[3]}"
    return str(address[0])
