"""Mirrors a collection of the Kubernetes API by list and watch, and retries with a back-off.

A cut connection resumes from the last version seen. Anything that may have lost an event (410, an
ERROR event, garbage, a second failure in a row) lists again, so that a missed deletion is noticed.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Generic, Protocol, TypeVar

import msgspec

from apiservice.kube.clusterclient import ClusterClient
from apiservice.kube.failures import transport_failure
from apiservice.kube.listwatch import (
    ExpiredError,
    GarbledError,
    ListWatch,
    ListWatchOptions,
    RefusedError,
    WatchError,
    WatchEvent,
)
from apiservice.kube.outages import Outages
from apiservice.kube.pages import Pages
from apiservice.runtime.log import LateLog
from apiservice.runtime.steps import Steps, run_in_slices

log = LateLog(__name__)

_AT_ONCE: Final = 1.0
"""Seconds that a watch lasts at least on a server that works: it was asked for a minute."""

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


class _Key(msgspec.Struct):
    name: str = ""
    namespace: str = ""


class _Named(msgspec.Struct):
    metadata: _Key = msgspec.field(default_factory=_Key)


_named: Final = msgspec.json.Decoder(_Named)


class EventType(StrEnum):
    """What happened to an object."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


class Collection(Protocol[T_contra]):
    """The local copy that a reflector updates. Called from the event loop; must not block."""

    def replace(self, items: Sequence[T_contra]) -> None:
        """Take the whole collection from one list. What is not in it no longer exists."""

    def apply(self, event: EventType, item: T_contra) -> None:
        """Take one change. An ADDED item may be known already, a DELETED one unknown."""


class Large(Collection[T], Protocol[T]):
    """A collection with so many objects that replacing them takes long."""

    def lose(self, namespace: str, name: str) -> None:
        """Remove an object that can no longer be read. The namespace of a node is empty."""

    def replace_in_steps(self, items: Sequence[T]) -> Steps[None]:
        """``replace`` in steps. Readers see the collection between the steps."""

    def intern(self, item: T) -> T:
        """Return the collection's own object if it equals ``item``, else ``item``.

        So a list of objects that are known already takes no memory beside the collection.
        """


@dataclass(frozen=True, slots=True)
class ReflectorOptions(ListWatchOptions):
    """Limits of one reflector; durations in seconds."""

    backoff_min: float = 0.5
    backoff_max: float = 30.0
    """As in client-go's reflector: 0.8 s, doubling up to 30 s."""


class Reflector(Generic[T]):
    """Keeps ``into`` equal to the server's collection while ``run`` runs.

    Args:
        client: a :class:`apiservice.kube.clusterclient.ClusterClient` (credentials, TLS, URL).
        path: the collection, such as ``/api/v1/pods``; the selectors narrow it
            (``metadata.name=x`` for one object).
        decode: reads one object's JSON; an object for which it raises is left out and counted.
        into: what to update. A collection that has ``replace_in_steps`` is replaced in steps.
    """

    def __init__(
        self,
        client: ClusterClient,
        path: str,
        decode: Callable[[msgspec.Raw], T],
        into: Collection[T] | Large[T],
        *,
        field_selector: str = "",
        label_selector: str = "",
        options: ReflectorOptions | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._options = options or ReflectorOptions()
        self._requests = ListWatch(
            client,
            path,
            field_selector=field_selector,
            label_selector=label_selector,
            options=self._options,
        )
        self.path = path
        """The collection's path."""
        self._decode = decode
        self._into = into
        self._clock = clock
        self._outages: Outages = getattr(client, "outages", None) or Outages()
        self._version: str | None = None
        self._failures = 0
        """Failures since the last event or normal end. The second one lists again."""
        self._pauses = 0
        """Failures since a watch was last established. Each doubles the pause."""
        self.synced_event = asyncio.Event()
        """Set after the first complete list."""
        self.connected = False
        """The server is answering a watch now."""
        self.last_contact = 0.0
        """Epoch seconds of the last byte from the server; 0 before the first."""
        self.last_error = ""
        """Why the collection may be out of date. Empty if it is current."""
        self.denied = False
        """The last response was 401 or 403: credentials or RBAC must be corrected."""
        self.rejected = 0
        """Objects left out because they could not be decoded or are too large."""
        self.lists = 0
        self.events = 0

    @property
    def synced(self) -> bool:
        """The collection has been listed completely at least once."""
        return self.synced_event.is_set()

    def age(self, now: float) -> float:
        """Seconds since the server last sent anything; ``inf`` before the first list."""
        return max(0.0, now - self.last_contact) if self.synced else float("inf")

    async def run(self, *, once: bool = False) -> None:
        """List, watch, resume and list again until cancelled. No failure ends it.

        Args:
            once: return after the first complete list. It needs no server that can watch.
        """
        try:
            while True:
                try:
                    if self._version is None:
                        await self._list()
                    if once:
                        self.last_error = ""
                        return
                    await self._watch(self._version or "")
                except Exception as error:  # one bad response must never end the loop
                    self._note_failure(error)
                    await asyncio.sleep(self._pause())
        finally:
            self.connected = False

    async def _list(self) -> None:
        items: list[T] = []
        pages = Pages()
        token = ""
        while True:
            page = await self._requests.page(token)
            self.last_contact = self._clock()
            await asyncio.sleep(0)
            await run_in_slices(self._decode_page(page.items, items))
            token = page.token
            if not pages.more(token, page.items):
                break
        replace_in_steps = getattr(self._into, "replace_in_steps", None)
        if replace_in_steps is None:
            self._into.replace(items)
        else:
            await run_in_slices(replace_in_steps(items))
        self._version = page.version
        self.lists += 1
        self.synced_event.set()

    async def _watch(self, version: str) -> None:
        """Apply events until the server ends the watch normally."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        answered = 0.0

        def note_answer() -> None:
            nonlocal answered
            answered = answered or loop.time()
            self._note_contact()

        try:
            async with asyncio.timeout(self._options.longest_watch) as deadline:
                async for event in self._requests.watch(version, note_answer):
                    self._apply(event)
                    self._failures = 0
        except TimeoutError:
            if deadline.expired():
                raise WatchError(
                    f"GET {self.path}: the server did not end the watch at its timeoutSeconds"
                ) from None
            raise
        finally:
            self.connected = False
            if answered and loop.time() - answered >= self._options.backoff_min:
                # Even a quiet watch shows that the server works: a proxy that sometimes cuts
                # connections must not add up to the longest pause.
                self._pauses = 0
        if loop.time() - began < _AT_ONCE:
            raise WatchError(f"GET {self.path}: the server ends every watch at once")
        self._failures = self._pauses = 0

    def _apply(self, event: WatchEvent) -> None:
        if event.type in EventType.__members__:
            self.events += 1
            item = self._read(event.object)
            if item is not None:
                self._into.apply(EventType(event.type), item)
            else:
                self._lose(event.object)
        elif event.type != "BOOKMARK":
            raise GarbledError(f"GET {self.path}: unknown watch event {event.type[:40]!r}")
        if event.version:
            self._version = event.version

    def _decode_page(self, page: Sequence[msgspec.Raw], into: list[T]) -> Steps[None]:
        intern = getattr(self._into, "intern", None)
        for raw in page:
            if (item := self._read(raw)) is not None:
                into.append(item if intern is None else intern(item))
            yield

    def _read(self, raw: msgspec.Raw) -> T | None:
        try:
            return self._decode(raw)
        except Exception as error:  # one bad object must not stop the collection
            self.rejected += 1
            if self.rejected == 1:
                text = f"{type(error).__name__}: {error}"
                log.warning("object cannot be decoded", path=self.path, error=text)
            return None

    def _lose(self, raw: msgspec.Raw) -> None:
        """Remove an object that can no longer be read: its earlier state is not its state."""
        lose = getattr(self._into, "lose", None)
        try:
            key = _named.decode(raw).metadata
        except msgspec.MsgspecError:
            return
        if lose is not None and key.name:
            lose(key.namespace, key.name)

    def _note_contact(self) -> None:
        self.connected = True
        self.last_contact = self._clock()
        self.denied = False
        if self.last_error:
            log.info("watch restored", path=self.path)
            self.last_error = ""
            self._outages.ends(self)

    def _note_failure(self, error: Exception) -> None:
        """Record the error, and decide whether to resume or to list again."""
        if isinstance(error, ExpiredError | GarbledError | RefusedError) or self._failures > 0:
            # After more than one lost connection, resuming is not reliable: a restored etcd
            # numbers its versions again and would not report deleted objects.
            self._version = None
        self._failures += 1
        self._pauses += 1
        self.denied = isinstance(error, RefusedError) and error.status in (401, 403)
        text = f"GET {self.path}: {transport_failure(error)}"
        if isinstance(error, WatchError):
            text = str(error)
        if text != self.last_error:
            # The other collections of an unavailable API server fail for the same cause.
            first = self._outages.begins(self, text.partition(": ")[2])
            say = log.warning if first else log.debug
            say("watch failed", path=self.path, error=text)
        self.last_error = text

    def _pause(self) -> float:
        """Seconds to wait after a failure: doubling, bounded, jittered."""
        ceiling = self._options.backoff_min * 2.0 ** min(self._pauses - 1, 16)
        return min(self._options.backoff_max, ceiling) * random.uniform(0.5, 1.0)  # noqa: S311 - no secret
