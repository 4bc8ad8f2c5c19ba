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

from typing import Final, NamedTuple

from adapter.pipeline.catalog.nvidia import BUSY, CODECS, ENGINES, POWER, PROFILING, UTIL
from adapter.pipeline.catalog.vendors import CONTRADICTIONS
from adapter.pipeline.devices.extents import Extents
from adapter.pipeline.devices.history import History
from adapter.pipeline.devices.idlepower import IdleRange
from adapter.pipeline.devices.quickchecks import (
    AT_IDLE,
    REST,
    contradictions_in,
    is_beyond_suspicion,
    rest_limits,
)
from adapter.pipeline.devices.series import CLEAR, DEVICE, IDLE, Doubt, Verdict

FIELDS: Final = frozenset(
    (POWER, *CODECS, *(name for entry in CONTRADICTIONS for name in (entry.zero, entry.by)))
)
"""The fields that are compared with each other, with all of :data:`PROFILING`."""
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
    if not history.times or is_beyond_suspicion(history, at.idle):
        return CLEAR
    return _Case(history, before, at).verdict()


def idle_watts(history: History, verdict: Verdict, at: Circumstances) -> IdleRange | None:
    """Return the power of a device that was idle by all fields for long enough, else None."""
    since = verdict.since.get((POWER, IDLE))
    if since is None or at.now - since <= at.patience:
        return None
    watts = Extents(history, at.window)[POWER]
    return IdleRange(watts.low, watts.high) if watts.low > 0 else None


class _Case:
    """Compares the fields of one device."""

    __slots__ = ("_at", "_before", "_contradictions", "_doubts", "_fields", "_since", "_window")

    def __init__(self, history: History, before: Verdict, at: Circumstances) -> None:
        self._window = Extents(history, at.window)
        self._fields = history.layout.of_field
        self._contradictions = contradictions_in(history.layout)
        self._at = at
        self._before = before.since
        self._doubts: dict[str, Doubt] = {}
        self._since: dict[tuple[str, str], float] = {}

    def verdict(self) -> Verdict:
        """Apply each rule in turn; a field that is doubted is no longer evidence for later
        rules."""
        self._false_zeros(at_once=True)
        self._high_util()
        self._false_zeros(at_once=False)
        self._stuck_counters()
        if self._idle:
            self._note_suspicion(POWER, IDLE)
        if self._rests:
            self._note_suspicion(DEVICE, IDLE)
        return Verdict(self._doubts, self._since) if self._doubts or self._since else CLEAR

    def _false_zeros(self, *, at_once: bool) -> None:
        """Doubt fields that are 0 over the window in which the catalogue's evidence shows work."""
        window = self._window
        for entry in self._contradictions:
            if entry.at_once is not at_once or entry.by in self._doubts:
                continue
            shown = window[entry.by]
            working = shown.mean >= entry.mean or shown.low >= entry.least
            if not working or window[entry.zero].high != 0:
                continue
            if at_once:
                self._doubts[entry.zero] = Doubt.ZERO_UTIL
            else:
                self._suspect(entry.zero, Doubt.STUCK)

    def _high_util(self) -> None:
        """Doubt a high GPU_UTIL if the device draws idle power and no other field shows work."""
        window, idle = self._window, self._at.idle
        busy = window[UTIL].low >= BUSY
        if busy and idle and self._at_rest and window[POWER].high <= AT_IDLE * idle.low:
            self._suspect(UTIL, Doubt.IDLE_POWER)

    def _stuck_counters(self) -> None:
        """Doubt DCGM's counters by the power of the board, and all of them if no engine moves."""
        window = self._window
        engines = [name for name in ENGINES if name in self._fields]
        if self._busy_by_power:
            for name in engines:
                if window[name].high == 0:
                    self._suspect(name, Doubt.STUCK)
        if engines and all(name in self._doubts for name in engines):
            # One DCGM module writes all counters, so a 0 of the others is not reliable either.
            self._doubts |= {name: Doubt.STUCK for name in self._counters if window[name].high == 0}

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
        limits = rest_limits(self._counters)
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
        return any(self._window[name].high <= REST for name in ENGINES)

    @property
    def _counters(self) -> list[str]:
        return [name for name in self._fields if name.startswith(PROFILING)]

    def _suspect(self, name: str, doubt: Doubt) -> None:
        """Doubt the field once the suspicion has persisted for one collect interval."""
        if self._at.now - self._note_suspicion(name, doubt) > self._at.patience:
            self._doubts[name] = doubt

    def _note_suspicion(self, name: str, suspicion: str) -> float:
        """Return the epoch seconds since which the suspicion has persisted."""
        key = (name, suspicion)
        return self._since.setdefault(key, self._before.get(key, self._at.now))
