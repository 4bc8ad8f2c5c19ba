"""Whether a device's fields can all be true together.

Each number may be in range and still be wrong: DCGM's profiling counters stick at 0 while
the device works (dcgm-exporter#662, DCGM#303: GPU_UTIL 100 beside GR_ENGINE_ACTIVE 0), and
GPU_UTIL sticks at 0 or at 100 (dcgm-exporter#301, #341). What contradicts better evidence
is missing, never 0 and never replaced by another field: GR_ENGINE_ACTIVE of a busy T4 is
0.156 where GPU_UTIL is 91 (gpu-telemetry, section 6), so neither tells the other's value,
only that it cannot be 0.

A false 0 scales a workload in, so a 0 is doubted at once where others say busy. The other
rules wait until two readings of the exporter at least agree, since fields of one page are
not measured in the same instant.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from adapter.catalog import ENGINE, POWER, UTIL
from adapter.catalog.layout import Layout
from adapter.devices.extents import Extents
from adapter.devices.history import History
from adapter.devices.idlepower import IdleRange
from adapter.devices.series import CLEAR, Doubt, Verdict

SM: Final = "DCGM_FI_PROF_SM_ACTIVE"
OCCUPANCY: Final = "DCGM_FI_PROF_SM_OCCUPANCY"
DRAM: Final = "DCGM_FI_PROF_DRAM_ACTIVE"
COPY: Final = "DCGM_FI_DEV_MEM_COPY_UTIL"
_CODECS: Final = ("DCGM_FI_DEV_ENC_UTIL", "DCGM_FI_DEV_DEC_UTIL")
_PROFILING: Final = "DCGM_FI_PROF_"
ENGINES: Final = (ENGINE, SM, OCCUPANCY)
"""Above 0 whenever a kernel runs: one warp on one of 132 SMs still shows as 0.0001. Pipes
and memory may rest under a running kernel, so their 0 proves nothing."""

_ACTIVE: Final = 0.1
"""Mean share of engine activity that GPU_UTIL 0 contradicts. GPU_UTIL samples up to a second,
so short bursts pass it by; a tenth of the window does so too often to be called 0."""
_BUSY: Final = 50.0
"""Percent of GPU_UTIL, at every sample of the window, that idle counters contradict."""
_REST: Final = 0.01
"""Share up to which a counter does not say busy: DCGM itself measures a little."""
_COPYING: Final = 10.0
"""Percent of MEM_COPY_UTIL, at every sample, that DRAM_ACTIVE 0 contradicts. It says nothing
of the engine: copies need no kernel."""
_AT_IDLE: Final = 1.05
"""Times the lowest idle power that still counts as idle. A device at
100 % with little work draws more: 66 W beside 53 W at 0 % on one V100 node (GLM-130B#32)."""
_AT_WORK: Final = 3.0
"""Times the highest idle power above which the device works, whatever its counters say. A
context without work also raises the power; by how much was not measured, so this is wide."""


class Circumstances(NamedTuple):
    """What is known beside the device's own fields."""

    now: float
    """Epoch seconds."""
    window: float
    """Seconds over which fields are compared."""
    patience: float
    """Seconds that a suspicion must stand: the exporter's collect interval."""
    idle: IdleRange | None
    """What the device draws when idle, as far as it was learnt."""
    alone: bool = True
    """The board's power is this device's: False for a MIG instance whose board has another
    that is active."""


_IDLE: Final = "idle"


def judge(history: History, before: Verdict, at: Circumstances) -> Verdict:
    """What is believed of a device's fields after a scrape result.

    Args:
        history: the device's samples; not those of a pod on a device whose exporter accounts
            some fields per process and others per device.
        before: the verdict after the scrape result before, of this device whoever held it.
        at: what else is known.
    """
    if not history.times or _beyond_suspicion(history, at):
        return CLEAR
    return _Case(history, before, at).verdict()


def idle_watts(history: History, verdict: Verdict, at: Circumstances) -> IdleRange | None:
    """What a device draws that has been idle by every field long enough to teach it."""
    since = verdict.since.get((POWER, _IDLE))
    if since is None or at.now - since <= at.patience:
        return None
    watts = Extents(history, at.window)[POWER]
    return IdleRange(watts.low, watts.high) if watts.low > 0 else None


class _Columns(NamedTuple):
    """Where the fields are that decide most cases at a glance."""

    util: int | None
    power: int | None
    counters: tuple[int, ...]


@lru_cache(maxsize=512)
def _columns(layout: Layout) -> _Columns | None:
    """None where a field has several columns, or there is nothing to compare."""
    held = {name: layout.of_field.get(name, ()) for name in (UTIL, POWER, DRAM, *ENGINES)}
    if any(len(columns) > 1 for columns in held.values()):
        return None
    first = {name: columns[0] for name, columns in held.items() if columns}
    counters = tuple(first[name] for name in (*ENGINES, DRAM) if name in first)
    if not counters and UTIL not in first:
        return None
    return _Columns(first.get(UTIL), first.get(POWER), counters)


def at_work(history: History) -> bool:
    """The newest samples alone rule every suspicion out, whatever else is known: the rule for
    a device at work whose exporter writes profiling counters."""
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
    """The newest samples alone, or with the circumstances, rule every suspicion out."""
    columns = _columns(history.layout)
    if columns is None:
        return not _compared(history)
    if columns.counters or columns.util is None:
        return at_work(history)
    row = history.values[-history.layout.width :]
    util = row[columns.util]
    if util <= 0 or columns.power is None or at.idle is None:
        return util > 0 or columns.power is None
    return util < _BUSY or row[columns.power] > _AT_IDLE * at.idle.low


def _compared(history: History) -> bool:
    fields = history.layout.of_field
    return UTIL in fields or any(name in fields for name in (*ENGINES, DRAM))


class _Case:
    """One device's fields, held against each other."""

    __slots__ = ("_at", "_before", "_doubts", "_fields", "_since", "_window")

    def __init__(self, history: History, before: Verdict, at: Circumstances) -> None:
        self._window = Extents(history, at.window)
        self._fields = history.layout.of_field
        self._at = at
        self._before = before.since
        self._doubts: dict[str, Doubt] = {}
        self._since: dict[tuple[str, str], float] = {}

    def verdict(self) -> Verdict:
        """Every rule in turn: what is doubted already bears no witness."""
        self._zero_util()
        self._high_util()
        self._stuck_counters()
        if self._idle:
            self._stands(POWER, _IDLE)
        return Verdict(self._doubts, self._since) if self._doubts or self._since else CLEAR

    def _zero_util(self) -> None:
        """GPU_UTIL is 0 over the whole window and the engines were active in it."""
        if self._window[UTIL].high == 0 and self._active_engine:
            self._doubts[UTIL] = Doubt.ZERO_UTIL

    def _high_util(self) -> None:
        """GPU_UTIL is high, the device draws what an idle one draws and nothing else moves."""
        window, idle = self._window, self._at.idle
        busy = window[UTIL].low >= _BUSY
        if busy and idle and self._at_rest and window[POWER].high <= _AT_IDLE * idle.low:
            self._suspect(UTIL, Doubt.IDLE_POWER)

    def _stuck_counters(self) -> None:
        """Counters are exactly 0 over the whole window and the device was busy in it."""
        window = self._window
        busy = self._busy_by_util or self._busy_by_power or self._active_engine
        engines = [name for name in ENGINES if name in self._fields]
        for name in engines:
            if busy and window[name].high == 0:
                self._suspect(name, Doubt.STUCK)
        if engines and all(name in self._doubts for name in engines):
            # One module of DCGM writes all counters: the others' 0 is worth no more.
            self._doubts |= {name: Doubt.STUCK for name in self._counters if self._zero(name)}
        if window[DRAM].high == 0 and window[COPY].low >= _COPYING:
            self._suspect(DRAM, Doubt.STUCK)

    @property
    def _active_engine(self) -> bool:
        return any(self._window[name].mean >= _ACTIVE for name in (ENGINE, SM))

    @property
    def _busy_by_util(self) -> bool:
        return UTIL not in self._doubts and self._window[UTIL].low >= _BUSY

    @property
    def _busy_by_power(self) -> bool:
        """Only where no GPU_UTIL speaks: power also rises with codecs and copies."""
        idle = self._at.idle
        if idle is None or not self._at.alone or UTIL in self._fields:
            return False
        return self._window[POWER].low > _AT_WORK * idle.high

    @property
    def _at_rest(self) -> bool:
        """Whatever else is reported says that nothing happens."""
        rest = {name: _REST for name in self._counters if "PCIE" not in name}
        rest |= {COPY: 100 * _REST} | dict.fromkeys(_CODECS, 0.0)
        return not any(self._window[name].high > limit for name, limit in rest.items())

    @property
    def _idle(self) -> bool:
        return self._window[UTIL].high == 0 and UTIL not in self._doubts and self._at_rest

    @property
    def _counters(self) -> list[str]:
        return [name for name in self._fields if name.startswith(_PROFILING)]

    def _zero(self, name: str) -> bool:
        return self._window[name].high == 0

    def _suspect(self, name: str, doubt: Doubt) -> None:
        """Doubt the field once the suspicion has outlived one collect interval."""
        if self._at.now - self._stands(name, doubt) > self._at.patience:
            self._doubts[name] = doubt

    def _stands(self, name: str, suspicion: str) -> float:
        """Epoch seconds since when the suspicion stands."""
        key = (name, suspicion)
        return self._since.setdefault(key, self._before.get(key, self._at.now))
