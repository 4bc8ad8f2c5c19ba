"""Judge the variants of a replay: which one to recommend, and whether the recording supports it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from adapter.figures import age, percent
from adapter.tools.replay.study import Study, VariantRun

_DAY: Final = 86_400.0
SHORTEST: Final = 0.98 * _DAY
"""Seconds of a recording that has a daily peak; 24 hours without the first and the last syncs."""
_UNKNOWN: Final = 0.05
"""Share of the time, or of the pods, for which the demand may be unknown."""
_SATURATED: Final = 0.05
_AGREEMENT: Final = 0.98
_SAVES: Final = 0.02
"""Share of the GPU-hours below which a saving is noise."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """Which variant is best, and why there is no recommendation if there is none."""

    best: VariantRun | None
    """The cheapest variant within the allowance; None if none is."""
    doubts: Sequence[str] = ()
    """Why the recording does not support a recommendation."""
    lacking: float = 0.0
    """Share of the recorded demand that has no value, if it is too much to ignore."""

    @property
    def recommended(self) -> VariantRun | None:
        """The variant to use instead of the present settings."""
        if self.doubts or self.best is None or self.best.variant.now:
            return None
        return self.best


def judge(study: Study, allowed: float) -> Judgement:
    """Choose among the variants.

    Args:
        study: with at least one run.
        allowed: seconds a day that may be over the limit.
    """
    within = [run for run in study.runs if a_day(run, run.outcome.over) <= allowed]
    best = min(within, key=lambda run: (run.outcome.gpu_seconds, run.outcome.over), default=None)
    now = study.runs[0]
    if best is not None and now in within and not _saves(best, now):
        best = now
    lacking = study.lacking if study.lacking > _UNKNOWN else 0.0
    return Judgement(best, tuple(_doubts(study)), lacking)


def verdict(run: VariantRun, judgement: Judgement, allowed: float) -> str:
    """Return a run's verdict for the table."""
    if run is judgement.recommended:
        return "recommended"
    if a_day(run, run.outcome.over) > allowed:
        return f"more than {age(allowed)} a day over the limit"
    if run is judgement.best and not has_unknown_demand(run):
        share = f", but {_share(judgement.lacking)} of the demand has no value"
        return f"cheapest within the limit{share if judgement.lacking else ''}"
    return ""


def has_unknown_demand(run: VariantRun) -> bool:
    """Return whether too much of the demand is unknown to judge a run."""
    return run.outcome.unknown > _UNKNOWN * run.outcome.seconds


def _saves(best: VariantRun, now: VariantRun) -> bool:
    return best.outcome.gpu_seconds < (1 - _SAVES) * now.outcome.gpu_seconds


def a_day(run: VariantRun, seconds: float) -> float:
    """Return seconds as a share of a day; of less than a day, the seconds themselves."""
    return seconds * _DAY / max(run.outcome.seconds, _DAY)


def _share(part: float) -> str:
    return percent(round(100 * part))


def _doubts(study: Study) -> list[str]:
    doubts = []
    now = study.runs[0].outcome
    agreement = study.agreement
    if now.seconds < SHORTEST:
        doubts.append(
            f"the recording has {age(now.seconds)}: a recommendation needs a day with its peak"
        )
    if agreement.compared and agreement.equal < _AGREEMENT * agreement.compared:
        share = percent(100 * agreement.equal / agreement.compared)
        doubts.append(
            f"the replay of the present settings agrees with the controller at {share} of the "
            "syncs only: the manifest may differ from the HPA that was recorded"
        )
    if not study.gpus:
        doubts.append("GPU-hours are not known: no pod of the recording requests a GPU")
    if has_unknown_demand(study.runs[0]):
        doubts.append(
            f"the demand is unknown for {age(now.unknown)}: no pod had a value; `explain` says why"
        )
    if study.lacking > _UNKNOWN:
        doubts.append(
            f"{_share(study.lacking)} of the recorded demand has no value, because pods that were "
            "ready had none: what they did is not counted; `explain` says why"
        )
    if now.saturated > _SATURATED * now.seconds:
        doubts.append(
            f"the pods were busy to the limit for {age(now.saturated)}: the demand is then known "
            "from below only; scale on the queue of the server, or record with more replicas"
        )
    return doubts
