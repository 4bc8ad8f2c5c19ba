"""Waiting for replicas and GPU-hours: what ``serve`` expects beside other ways to be early."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Final, NamedTuple

from adapter.config.settings.ahead import AheadSettings
from load.aheadplays import RECURS, panel
from load.aheadworld import (
    AheadOutcome,
    lower_target,
    oracle,
    play,
    play_ahead,
    reactive,
    schedule,
    surplus,
)
from load.table import Goal, Run, Table
from research.sweep import Cost, Result, Setting, pending_at
from research.traces import DAYS, Part, Trace, TracesMissingError, folder, load_traces

START: Final = 240.0
"""Seconds from the creation of a replica to Ready."""
DEAR: Final = 110
"""Percent of the reactive GPU-hours at which policies are compared."""
HALF: Final = 50
NEAR: Final = 5
"""Points by which a probability may be missed."""
SEED: Final = 2
"""Of the made-up services that are judged; settings were chosen on others."""
_DEFAULT: Final = AheadSettings().probability
_PROBABILITIES: Final = (0.6, _DEFAULT, 0.8)
_TRACES: Final = ("genai", "genai-qps", DAYS)
"""Recorded services of a day or more."""
_TARGET, _SURPLUS, _CRON, _OURS = "lower target", "fixed surplus", "schedule", "expected"
_OTHERS: Final = {
    _TARGET: (lower_target, (0.02, 0.05, 0.1, 0.15, 0.2, 0.3)),
    _SURPLUS: (surplus, (0.25, 0.5, 0.75, 1.0, 2.0, 3.0)),
    _CRON: (schedule, (0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)),
}
_MINUTES: Final = 30 * 60
"""Minutes of each service in a smoke run."""


class Played(NamedTuple):
    """A service under all policies."""

    part: Part
    reactive: AheadOutcome
    oracle: AheadOutcome
    others: Mapping[Setting, AheadOutcome]
    ours: Mapping[float, AheadOutcome]

    @property
    def result(self) -> Result:
        """The same for comparisons at one number of GPU-hours."""
        swept = {setting: _cost(outcome) for setting, outcome in self.others.items()}
        swept |= {Setting(_OURS, chance): _cost(outcome) for chance, outcome in self.ours.items()}
        base = _cost(self.reactive)
        return Result(self.part.name, False, base, _cost(self.oracle), base, swept)

    @property
    def waits(self) -> bool:
        """Whether a replica is missing at all."""
        return self.reactive.waiting > 0


def ahead(run: Run) -> Table:
    """Simulate every policy on the made-up services, and on recorded days where they are."""
    services = list(panel(SEED))
    missing = False
    try:
        services += [trace for trace in load_traces(folder()) if trace.name in _TRACES]
    except TracesMissingError:
        missing = True
    if run.quick:
        services = [_shorten_trace(trace) for trace in services[:2]]
    parts = [(trace, part) for trace in services for part in trace.parts if _is_judged(part)]
    with ProcessPoolExecutor(max_workers=os.cpu_count()) as pool:
        played = list(pool.map(partial(_play), *zip(*parts, strict=True), chunksize=1))
    return Table(
        (
            *("service", "reactive waits %", *_OTHERS, _OURS),
            *(f"at {_DEFAULT}", "held %", "stated %", "oracle"),
        ),
        tuple(map(_row, played)),
        tuple(_goals(played)),
        tuple(_notes(missing=missing)),
    )


def _is_judged(part: Part) -> bool:
    return part.name != f"{DAYS} fit"


def _shorten_trace(trace: Trace) -> Trace:
    end = min(len(trace.work), _MINUTES)
    return trace._replace(work=trace.work[:end], split=(Part(trace.name, True, end // 2, end),))


def _play(trace: Trace, part: Part) -> Played:
    """Simulate one service."""
    return Played(
        part,
        play(trace, part, reactive(trace), START),
        play(trace, part, oracle(trace, START), START),
        {
            Setting(family, value): play(trace, part, policy(trace, value), START)
            for family, (policy, values) in _OTHERS.items()
            for value in values
        },
        {chance: play_ahead(trace, part, chance, START) for chance in _PROBABILITIES},
    )


def _cost(outcome: AheadOutcome) -> Cost:
    return Cost(outcome.waiting, outcome.gpu_hours)


def _row(played: Played) -> tuple[str, ...]:
    ours = played.ours[_DEFAULT]
    minutes = played.part.end - played.part.first
    return (
        played.part.name,
        f"{100 * played.reactive.waiting / played.reactive.needed:.1f}",
        *(_waiting_text(played, family) for family in (*_OTHERS, _OURS)),
        _cost_text(ours, played),
        f"{_held_percent(ours):.0f}" if ours.stated else "-",
        f"{100 * ours.stated / minutes:.0f}",
        _cost_text(played.oracle, played),
    )


def _waiting_text(played: Played, family: str) -> str:
    percent = pending_at(played.result, family, DEAR) if played.waits else None
    return "-" if percent is None else f"{percent:.0f}"


def _cost_text(outcome: AheadOutcome, played: Played) -> str:
    waiting = 100 * outcome.waiting / played.reactive.waiting if played.waits else 0.0
    return f"{waiting:.0f} / {_hours_percent(outcome, played):.0f}"


def _hours_percent(outcome: AheadOutcome, played: Played) -> float:
    """Return GPU-hours in percent of reactive's."""
    return 100 * outcome.gpu_hours / played.reactive.gpu_hours


def _held_percent(outcome: AheadOutcome) -> float:
    return 100 * outcome.held / outcome.stated


def _goals(all_played: Sequence[Played]) -> list[Goal]:
    waiting = [service for service in all_played if service.waits]
    recurring = [service for service in waiting if service.part.name in RECURS]
    recorded = [service for service in waiting if service.part.name.startswith(_TRACES)]
    still = [service for service in all_played if not service.waits]
    stated = [service for service in waiting if service.ours[_DEFAULT].stated]
    off = {
        service.part.name: _held_percent(service.ours[_DEFAULT])
        for service in stated
        if abs(_held_percent(service.ours[_DEFAULT]) - 100 * _DEFAULT) > NEAR
    }
    dear = [service for service in still if _hours_percent(service.ours[_DEFAULT], service) > 100]
    return [
        _half_goal("made up: half of reactive's waiting", recurring),
        *([_half_goal("recorded: half of reactive's waiting", recorded)] if recorded else ()),
        Goal(
            f"expectations at {_DEFAULT} hold within {NEAR} points",
            ", ".join(f"{name} {held:.0f} %" for name, held in off.items()) or "on all",
            not off,
        ),
        Goal(
            "nothing is ordered where the load does not change",
            ", ".join(service.part.name for service in dear) or "nothing",
            not dear,
        ),
    ]


def _half_goal(text: str, services: Sequence[Played]) -> Goal:
    met = [service.part.name for service in services if _halves(service)]
    measured = f"on {len(met)} of {len(services)}: {', '.join(met) or 'none'}"
    text = f"{text} at {DEAR} % of its GPU-hours"
    return Goal(text, measured, len(met) == len(services) > 0)


def _halves(played: Played) -> bool:
    """Return whether half of the waiting is left, or less, at so many GPU-hours or with fewer."""
    between = pending_at(played.result, _OURS, DEAR)
    default = played.ours[_DEFAULT]
    cheap = _hours_percent(default, played) <= DEAR
    waiting = 100 * default.waiting / played.reactive.waiting
    return (between is not None and between <= HALF) or (cheap and waiting <= HALF)


def _notes(*, missing: bool) -> list[str]:
    notes = [
        (
            f"A replica takes {START:.0f} s from its creation to Ready. Waiting are the "
            "pod-seconds in which a replica that the load needs was not Ready, in percent of the "
            "pod-seconds that it needs (*reactive waits*), and for the others in percent of "
            f"reactive's, at {DEAR} % of its GPU-hours: the line between two settings, and - where "
            "no setting is so dear. The last columns have waiting / GPU-hours. *Held* is how often "
            "a load did not exceed what was stated, *stated* in how many minutes a probability was."
        ),
        (
            "The made-up services run for nine days, of which Sunday to Tuesday are judged. "
            "A schedule sets minReplicas for each hour by the same hour of the days before."
        ),
    ]
    return [*notes, "The recorded traces are not on this machine."] if missing else notes
