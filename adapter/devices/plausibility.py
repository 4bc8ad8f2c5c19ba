"""Check whether the fields of a device can all be true at once, and since when it is idle.

A number may be in range and still be wrong. DCGM's profiling counters stick at 0 while
the device works (dcgm-exporter#662, DCGM#303: GPU_UTIL 100 beside GR_ENGINE_ACTIVE 0), and
GPU_UTIL sticks at 0 or at 100 (dcgm-exporter#301, #341). A value that better evidence contradicts
is missing. It never becomes 0, and another field never replaces it: GR_ENGINE_ACTIVE of a
busy T4 is 0.156 while GPU_UTIL is 91, so one field only shows that the other cannot be 0.

A false 0 scales a workload in, so a 0 is doubted as soon as other fields show work. The other
rules need agreement for at least two readings of the exporter, because the fields of one page are
not measured at the same instant.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from math import inf, nextafter
from typing import Final, NamedTuple

from adapter.catalog import ENGINE, POWER, UTIL
from adapter.catalog.layout import Layout
from adapter.devices.extents import Extents
from adapter.devices.history import History
from adapter.devices.idlepower import IdleRange
from adapter.devices.series import CLEAR, DEVICE, IDLE, Doubt, Verdict

SM: Final = "DCGM_FI_PROF_SM_ACTIVE"
OCCUPANCY: Final = "DCGM_FI_PROF_SM_OCCUPANCY"
DRAM: Final = "DCGM_FI_PROF_DRAM_ACTIVE"
COPY: Final = "DCGM_FI_DEV_MEM_COPY_UTIL"
_CODECS: Final = ("DCGM_FI_DEV_ENC_UTIL", "DCGM_FI_DEV_DEC_UTIL")
PROFILING: Final = "DCGM_FI_PROF_"
"""How the names of the counters begin."""
ENGINES: Final = (ENGINE, SM, OCCUPANCY)
"""Counters that are above 0 while a kernel runs: one warp on one of 132 SMs shows as 0.0001.

Pipes and memory may be idle while a kernel runs, so a 0 of theirs proves nothing.
"""

EVIDENCE: Final = (UTIL, POWER, COPY, *_CODECS, DRAM, *ENGINES)
"""The fields that are compared with each other, with all of :data:`PROFILING`."""
_ACTIVE: Final = 0.1
"""Mean share of engine activity that contradicts GPU_UTIL 0.

GPU_UTIL samples a period of up to a second and misses short bursts. It cannot miss a tenth of
the window.
"""
_BUSY: Final = 50.0
"""Percent of GPU_UTIL, at every sample of the window, that contradicts counters at 0."""
_REST: Final = 0.01
"""Share up to which a counter does not show work: DCGM's own measurement causes a little."""
_COPYING: Final = 10.0
"""Percent of MEM_COPY_UTIL, at every sample, that contradicts DRAM_ACTIVE 0.

It does not show engine activity: copies need no kernel.
"""
_AT_IDLE: Final = 1.05
"""Factor on the lowest idle power up to which a device counts as idle.

A device at 100 % with little work draws more: 66 W beside 53 W at 0 % on one V100 node
(GLM-130B#32).
"""
_AT_WORK: Final = 3.0
"""Factor on the highest idle power above which a device counts as busy.

A context without work also raises the power: on an H100 to 1.7 times that of an unused device, and
to 1.9 times in the seconds after work, while the least work measured took 2.9 times and a copy of
memory 5.4 times (docs/sharing.md, "Measured on a GPU").
"""


class Circumstances(NamedTuple):
    """What is known about a device besides its own fields."""

    now: float
    """Epoch seconds."""
    window: float
    """Seconds over which fields are compared."""
    patience: float
    """Seconds for which a suspicion must persist: the exporter's collect interval."""
    idle: IdleRange | None
    """What the device draws when idle, if known."""
    alone: bool = True
    """Whether the board's power is this device's alone.

    False for a MIG instance whose board has another active instance.
    """


def judge(history: History, before: Verdict, at: Circumstances) -> Verdict:
    """Return the verdict on a device's fields after a scrape result.

    Args:
        history: the device's samples. Do not pass those of a pod on a device whose exporter
            accounts some fields per process and others per device.
        before: the device's verdict after the previous scrape result, regardless of its pod.
    """
    if not history.times or _beyond_suspicion(history, at):
        return CLEAR
    return _Case(history, before, at).verdict()


def idle_watts(history: History, verdict: Verdict, at: Circumstances) -> IdleRange | None:
    """Return the power of a device that was idle by all fields for long enough, else None."""
    since = verdict.since.get((POWER, IDLE))
    if since is None or at.now - since <= at.patience:
        return None
    watts = Extents(history, at.window)[POWER]
    return IdleRange(watts.low, watts.high) if watts.low > 0 else None


class _Columns(NamedTuple):
    """The columns of the fields that decide most cases quickly."""

    util: int | None
    power: int | None
    counters: tuple[int, ...]


@lru_cache(maxsize=512)
def _columns(layout: Layout) -> _Columns | None:
    """Return the columns, or None if a field has several or nothing can be compared."""
    held = {name: layout.of_field.get(name, ()) for name in (UTIL, POWER, DRAM, *ENGINES)}
    if any(len(columns) > 1 for columns in held.values()):
        return None
    first = {name: columns[0] for name, columns in held.items() if columns}
    counters = tuple(first[name] for name in (*ENGINES, DRAM) if name in first)
    if not counters and UTIL not in first:
        return None
    return _Columns(first.get(UTIL), first.get(POWER), counters)


def at_work(history: History) -> bool:
    """Return whether the newest samples alone rule out every suspicion.

    This is the quick check for a busy device whose exporter writes profiling counters.
    """
    columns = _columns(history.layout)
    if columns is None or not columns.counters or not history.times:
        return False
    values, first = history.values, len(history.values) - history.layout.width
    least = 0.0
    if columns.util is not None:
        util = values[first + columns.util]
        if not util > 0:
            return False
        least = _REST if util >= _BUSY else 0.0
    return all(values[first + column] > least for column in columns.counters)


def _beyond_suspicion(history: History, at: Circumstances) -> bool:
    """Return whether the newest samples and the circumstances rule out every suspicion."""
    columns = _columns(history.layout)
    if columns is None:
        return not any(name in history.layout.of_field for name in (UTIL, *ENGINES, DRAM))
    if columns.counters or columns.util is None:
        return at_work(history)
    row = history.values[-history.layout.width :]
    util = row[columns.util]
    if util <= 0 or columns.power is None or at.idle is None:
        return util > 0
    return util < _BUSY or row[columns.power] > _AT_IDLE * at.idle.low


class Bound(NamedTuple):
    """What a number of the next page must be."""

    column: int
    """Of the device's history."""
    above: float
    """The number is greater than this one."""
    most: float
    """The number is at most this one."""


def lasts(verdict: Verdict, layout: Layout) -> bool:
    """Return whether the verdict stays the same while no field shows work.

    It does for a device that was idle over the whole window. Without GPU_UTIL it does not: power,
    or counters slightly above 0, may end the verdict although no field shows work.
    """
    kinds = verdict.since.keys() - {(POWER, IDLE)}
    return kinds == {(DEVICE, IDLE)} and not verdict.doubts and UTIL in layout.of_field


@lru_cache(maxsize=512)
def resting_bounds(layout: Layout) -> tuple[Bound, ...]:
    """Return bounds within which numbers leave a verdict that :func:`lasts` as it is."""
    fields = layout.of_field
    limits = _at_rest(name for name in fields if name.startswith(PROFILING)) | {UTIL: 0.0}
    return tuple(
        Bound(column, -inf, limit)
        for name, limit in limits.items()
        for column in fields.get(name, ())
    )


@lru_cache(maxsize=512)
def working_bounds(layout: Layout) -> tuple[Bound, ...]:
    """Return bounds within which numbers show work, so that no field can be doubted.

    They are narrower than the rules of :class:`_Case`: numbers outside show nothing.
    """
    columns = _columns(layout)
    if columns is None:
        compared = any(name in layout.of_field for name in (UTIL, *ENGINES, DRAM))
        return (Bound(0, inf, inf),) if compared else ()
    busy = () if columns.util is None else (Bound(columns.util, 0.0, inf),)
    if columns.counters or columns.power is None:
        return *busy, *(Bound(column, _REST, inf) for column in columns.counters)
    return tuple(Bound(bound.column, 0.0, nextafter(_BUSY, 0.0)) for bound in busy)


def _at_rest(counters: Iterable[str]) -> dict[str, float]:
    """Return field -> the highest number that does not show work."""
    rest = {name: _REST for name in counters if "PCIE" not in name}
    return rest | {COPY: 100 * _REST} | dict.fromkeys(_CODECS, 0.0)


class _Case:
    """Compares the fields of one device."""

    __slots__ = ("_at", "_before", "_doubts", "_fields", "_since", "_window")

    def __init__(self, history: History, before: Verdict, at: Circumstances) -> None:
        self._window = Extents(history, at.window)
        self._fields = history.layout.of_field
        self._at = at
        self._before = before.since
        self._doubts: dict[str, Doubt] = {}
        self._since: dict[tuple[str, str], float] = {}

    def verdict(self) -> Verdict:
        """Apply each rule in turn; a field that is doubted is no longer evidence for later
        rules."""
        self._zero_util()
        self._high_util()
        self._stuck_counters()
        if self._idle:
            self._stands(POWER, IDLE)
        if self._rests:
            self._stands(DEVICE, IDLE)
        return Verdict(self._doubts, self._since) if self._doubts or self._since else CLEAR

    def _zero_util(self) -> None:
        """Doubt GPU_UTIL if it is 0 over the whole window in which the engines were active."""
        if self._window[UTIL].high == 0 and self._active_engine:
            self._doubts[UTIL] = Doubt.ZERO_UTIL

    def _high_util(self) -> None:
        """Doubt a high GPU_UTIL if the device draws idle power and no other field shows work."""
        window, idle = self._window, self._at.idle
        busy = window[UTIL].low >= _BUSY
        if busy and idle and self._at_rest and window[POWER].high <= _AT_IDLE * idle.low:
            self._suspect(UTIL, Doubt.IDLE_POWER)

    def _stuck_counters(self) -> None:
        """Doubt counters that are exactly 0 over a window in which the device was busy."""
        window = self._window
        by_util = UTIL not in self._doubts and window[UTIL].low >= _BUSY
        busy = by_util or self._busy_by_power or self._active_engine
        engines = [name for name in ENGINES if name in self._fields]
        for name in engines:
            if busy and window[name].high == 0:
                self._suspect(name, Doubt.STUCK)
        if engines and all(name in self._doubts for name in engines):
            # One DCGM module writes all counters, so a 0 of the others is not reliable either.
            self._doubts |= {name: Doubt.STUCK for name in self._counters if window[name].high == 0}
        if window[DRAM].high == 0 and window[COPY].low >= _COPYING:
            self._suspect(DRAM, Doubt.STUCK)

    @property
    def _active_engine(self) -> bool:
        return any(self._window[name].mean >= _ACTIVE for name in (ENGINE, SM))

    @property
    def _busy_by_power(self) -> bool:
        """Use power only without GPU_UTIL: codecs and copies also raise it."""
        idle = self._at.idle
        if idle is None or not self._at.alone or UTIL in self._fields:
            return False
        return self._window[POWER].low > _AT_WORK * idle.high

    @property
    def _at_rest(self) -> bool:
        """Return whether no reported field shows work."""
        limits = _at_rest(self._counters)
        return not any(self._window[name].high > limit for name, limit in limits.items())

    @property
    def _idle(self) -> bool:
        return self._window[UTIL].high == 0 and UTIL not in self._doubts and self._at_rest

    @property
    def _rests(self) -> bool:
        """Return whether no field shows work, with GPU_UTIL or a counter among them.

        MIG instances have no GPU_UTIL. The power of a doubted device is never learnt from this.
        """
        if self._doubts or not self._at_rest:
            return False
        if UTIL in self._fields:
            return self._window[UTIL].high == 0
        return any(self._window[name].high <= _REST for name in ENGINES)

    @property
    def _counters(self) -> list[str]:
        return [name for name in self._fields if name.startswith(PROFILING)]

    def _suspect(self, name: str, doubt: Doubt) -> None:
        """Doubt the field once the suspicion has persisted for one collect interval."""
        if self._at.now - self._stands(name, doubt) > self._at.patience:
            self._doubts[name] = doubt

    def _stands(self, name: str, suspicion: str) -> float:
        """Return the epoch seconds since which the suspicion has persisted."""
        key = (name, suspicion)
        return self._since.setdefault(key, self._before.get(key, self._at.now))
