"""Forecast how many pods a workload may want when a node ordered now has booted. Pure.

The forecast is one quantile of one distribution of the highest demand within the lead time. The
distribution mixes two sources:

- the fitted tables (:mod:`adapter.nodepool.learn.quantiles`), for the situation of the last hour
  and for what earlier days did at this time. The better a table would have forecast the workload's
  last hours, the more it counts. Their weighted mean ends at the largest rise that the workload has
  shown in these hours, so a workload that does not change gets no headroom;
- the rises of earlier days at this time, so that a burst that returns each day is expected whole.

A share that grows with the quantile replaces the forecast until enough forecasts have been checked,
and later while it would have cost less in the workload's own last hours. The text gives the reason.
The tables describe services. Queues of Jobs are filled by their submitters, and Jobs end. So for a
queue, the rises that its own past supports (:mod:`adapter.nodepool.learn.arrivals`) take the place
of the tables, on top of the pods that exist.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from adapter.nodepool.learn.arrivals import rise_at, rise_chances, rise_since
from adapter.nodepool.learn.checks import FEWEST_MOVING, pods_of, with_share
from adapter.nodepool.learn.quantiles import MOST
from adapter.nodepool.learn.record import Record, record
from adapter.nodepool.learn.situation import LEVEL, earlier_days
from adapter.nodepool.model.history import MINUTE, DemandHistory
from adapter.nodepool.model.reason import count_pods

_DAYS_WEIGHT: Final = 0.25
"""Weight of earlier days in the distribution."""
_FEWEST_DAYS: Final = 2
"""Minimum number of earlier days with observations at this time."""
_FEWEST_MINUTES: Final = 3
"""Minimum number of observed minutes for a forecast."""
_KEEP_ODDS: Final = 2 / 3
"""Odds that a GPU is used at which a free node is kept, relative to those at which a node is
ordered. A free node costs its scale-down delay (10 minutes by default), a new one its boot time
(5 minutes) too."""
PROMPT: Final = 5
"""Pending pods without a node for which one more pod of headroom always pays. A buffer that does
not fit makes the Cluster Autoscaler order at once instead of after 30 s. A node that is ordered
before its pod saves about half a boot time, 150 s. Chosen on the days and traces of the fit."""
_SHARE_QUANTILE: Final = 0.8
"""Quantile at which a share is taken as it is set."""


_Quantiles = Callable[[float], float]
"""Probability -> pods."""


class Forecast(NamedTuple):
    """A number of pods, and what decided it."""

    pods: int
    """At least the pods that are needed now."""
    code: str
    """``need``, ``forecast``, ``unsure`` or ``share``. Stable: a label of the metric."""
    text: str
    """For people."""
    expects: str = ""
    """What is expected if it is not more than the need."""
    kept: int = 0
    """Pods whose capacity is kept where it exists already; not less than :attr:`pods`."""
    prompt: int = 0
    """Fewest pods waiting for a node that nobody has ordered with which one more pod of headroom
    pays; 0 if it never does."""


class ForecastRequest(NamedTuple):
    """What is asked of a forecast."""

    lead: float
    """Seconds from the order of a node until it is usable."""
    quantile: float
    """0 to 1: the probability that the capacity suffices."""
    share: float
    """Share of the pods at a quantile of 0.8. :func:`share_at` of it is added instead of a forecast
    that has not been checked or that costs more; 0 for the forecast in any case."""
    queue: bool = False
    """Whether the workload is a queue of Jobs."""
    present: int = 0
    """Pods that exist or will soon: a load within the tolerance of them adds none."""
    tolerance: float = 0.0
    """Fraction of the pods."""
    pending: int = 0
    """Pods that wait for a node."""


def forecast(history: DemandHistory, need: int, request: ForecastRequest, now: float) -> Forecast:
    """Return how many pods the workload may want within the lead time.

    Args:
        history: its past, without which there is no forecast.
        need: pods wanted now, not clamped.
        now: epoch seconds.
    """
    if request.queue:
        return _forecast_queue(history, need, request, now)
    bare = Forecast(need, "need", f"its metrics ask for {count_pods(need)}", kept=need)
    ahead = load_ahead(history, request, now)
    if isinstance(ahead, str):
        return _add_share(bare, request, ahead)
    past, rises = ahead.own, ahead.rises
    level = past.situation.level
    most = ahead.quantile(request.quantile)
    foreseen = _describe_forecast(most, level, rises, past, request)
    kept_load = ahead.quantile(keep_quantile(request.quantile))
    if foreseen.pods <= need:
        foreseen = bare._replace(expects=foreseen.text)
    return foreseen._replace(
        kept=max(foreseen.pods, pods_of(kept_load, request.present, request.tolerance)),
        prompt=_prompt(ahead, need, request),
    )


class LoadAhead(NamedTuple):
    """The distribution of the highest load within the lead time."""

    own: Record
    """What the past of the workload says about forecasts of it."""
    rises: Sequence[float]
    """Of earlier days at this time, smallest first; empty if too few days are known."""
    below: _Quantiles
    """Quantiles of the fitted tables, or of the share that takes their place."""

    def quantile(self, probability: float) -> float:
        """Return the load in pods that is not exceeded with this probability."""
        level = self.own.situation.level
        return _mixture_quantile(self.below, [level + rise for rise in self.rises], probability)


def load_ahead(history: DemandHistory, request: ForecastRequest, now: float) -> LoadAhead | str:
    """Return what a service's load may be within the lead time, or why that is unknown."""
    lead = max(request.lead, float(MINUTE))
    past = None
    if history.recent:
        past = record(
            history.recent, lead, request.quantile, share_at(request.quantile, request.share)
        )
    if past is None or past.newest <= now - LEVEL * MINUTE:
        return "the last minutes of its demand are unknown"
    if past.minutes < _FEWEST_MINUTES:
        return f"only {past.minutes} min of its demand are known"
    days = earlier_days(history.days, lead, now)
    rises = days.rises if len(days.rises) >= _FEWEST_DAYS else ()
    if _takes_share(past, request):
        return LoadAhead(past, rises, _share_of(past, request.share))
    return LoadAhead(past, rises, past.quantiles(days.usual, lead))


def _forecast_queue(
    history: DemandHistory, need: int, request: ForecastRequest, now: float
) -> Forecast:
    """Return how many pods a queue of Jobs may have within the lead time."""
    recent = history.recent
    if not recent or recent[-1].time <= now - LEVEL * MINUTE:
        return Forecast(need, "need", "its last minutes are unknown", kept=need)
    lead = max(request.lead, float(MINUTE))
    chances = rise_chances(recent, lead)
    due = due_rises(history, lead, now)
    peaks = [need + rise for rise in due]

    def below(quantile: float) -> float:
        chance = rise_at(chances, quantile)
        return need + (0.0 if chance is None else chance.pods)

    pods = max(need, pods_of(_mixture_quantile(below, peaks, request.quantile)))
    kept_pods = max(pods, pods_of(_mixture_quantile(below, peaks, keep_quantile(request.quantile))))
    if pods == need:
        text = "none of the rises that its past has shown is likely within a boot time"
        return Forecast(need, "need", text, text, kept_pods)
    based = []
    chance = rise_at(chances, request.quantile)
    if chance is not None:
        based.append(
            f"+{chance.pods:.0f} followed in {chance.followed} of {chance.cases} cases with the "
            f"last such rise {chance.age / MINUTE:.0f} min ago"
        )
    if due:
        based.append(_usual_rise(due))
    expected = f"expected within {_minutes(lead)} min with {request.quantile:.0%}"
    text = f"at most {count_pods(pods)} are {expected} ({'; '.join(based)})"
    return Forecast(pods, "forecast", text, kept=kept_pods)


def due_rises(history: DemandHistory, lead: float, now: float) -> Sequence[float]:
    """Return the rises of earlier days at this time that today has not shown, smallest first."""
    days = earlier_days(history.days, lead, now)
    if len(days.rises) < _FEWEST_DAYS:
        return ()
    shown = rise_since(sorted(history.recent), days.since)
    return [max(0.0, rise - shown) for rise in days.rises]


def share_at(quantile: float, share: float) -> float:
    """Return the share that replaces a forecast: the surer the forecast, the larger.

    An exponential tail reaches so far beyond the need with the probability of the quantile.
    """
    return share * math.log1p(-min(quantile, MOST)) / math.log1p(-_SHARE_QUANTILE)


def keep_quantile(quantile: float) -> float:
    """Return the probability up to which existing free capacity is kept."""
    odds = _KEEP_ODDS * (1 - quantile) / quantile
    return 1 / (1 + odds)


def prompt_quantile(quantile: float, pending: int) -> float:
    """Return the probability up to which one pod of headroom is ordered beside pending pods.

    Args:
        pending: pods without a node that has been ordered.
    """
    return 1 - (1 - quantile) * max(0.0, 1 - pending / PROMPT)


def _prompt(ahead: LoadAhead, need: int, request: ForecastRequest) -> int:
    """Return :attr:`Forecast.prompt`."""
    enough = max(need, request.present)
    for pending in range(1, min(request.pending, PROMPT - 1) + 1):
        most = ahead.quantile(prompt_quantile(request.quantile, pending))
        if pods_of(most, request.present, request.tolerance) > enough:
            return pending
    return PROMPT


def _takes_share(past: Record, request: ForecastRequest) -> bool:
    """Return whether a share replaces the fitted distribution."""
    return past.takes_share and request.share > 0


def _share_of(past: Record, share: float) -> _Quantiles:
    """Return a share of the pods as a distribution, up to the largest rise as a forecast is."""
    return lambda quantile: min(past.most, with_share(past.pods, share_at(quantile, share)))


def _mixture_quantile(below: _Quantiles, days: Sequence[float], probability: float) -> float:
    """Return the quantile of a mixture: a distribution, and a point of each earlier day.

    Args:
        days: pods that each day's rise would bring, smallest first.
    """
    if not days:
        return below(probability)
    for passed in range(len(days)):
        quantile = (probability - _DAYS_WEIGHT * passed / len(days)) / (1 - _DAYS_WEIGHT)
        least = days[passed - 1] if passed else 0.0
        most = math.inf if quantile >= 1 else below(quantile) if quantile > 0 else 0.0
        if most < days[passed]:
            return max(least, most)
    return max(days[-1], below((probability - _DAYS_WEIGHT) / (1 - _DAYS_WEIGHT)))


def _add_share(bare: Forecast, request: ForecastRequest, why: str) -> Forecast:
    """Return the need and a share of it."""
    share = share_at(request.quantile, request.share)
    pods = with_share(bare.pods, share)
    if pods == bare.pods:
        return bare
    text = f"{why}: {share:.0%} more than the {count_pods(bare.pods)} of its metrics"
    return Forecast(pods, "share", text, kept=pods)


def _why_share(past: Record) -> str:
    if past.unchecked:
        return f"until {past.fewest} past forecasts have been checked"
    return f"which would have cost {1 - past.share_cost / past.cost:.0%} less than forecasts"


def _describe_forecast(
    most: float, level: float, rises: Sequence[float], past: Record, request: ForecastRequest
) -> Forecast:
    """Return the forecast with a text that says how sure it is, and on what it is based."""
    based = [f"level {level:.1f}"]
    shared = _takes_share(past, request)
    if shared:
        based = [f"a share of {share_at(request.quantile, request.share):.0%}, {_why_share(past)}"]
    if rises:
        based.append(_usual_rise(rises))
    if past.checks:
        such = "forecasts" if shared else "such forecasts"
        only = "only " if past.seldom else ""
        based.append(f"{such} held {only}in {past.held} of {past.judged} checks")
    if past.unproven and not shared:
        based.append(f"a probability needs {FEWEST_MOVING} checks")
    pods = pods_of(most, request.present, request.tolerance)
    within = ""
    if pods < pods_of(most):
        within = f"; {count_pods(pods)} carry it within the HPA's tolerance"
    how = f"assumed within {_minutes(request.lead)} min"
    if not (shared or past.unsure):
        how = f"expected within {_minutes(request.lead)} min with {request.quantile:.0%}"
    text = f"load for at most {most:.1f} pods is {how} ({'; '.join(based)}){within}"
    code = "share" if shared else "unsure" if past.unsure else "forecast"
    return Forecast(pods, code, text)


def _usual_rise(rises: Sequence[float]) -> str:
    usual = rises[len(rises) // 2]
    return f"{usual:+.0f} at this time on most of {len(rises)} earlier days"


def _minutes(lead: float) -> int:
    return max(1, round(lead / MINUTE))
