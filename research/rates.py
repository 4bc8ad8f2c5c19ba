"""What the past of ``lora`` says about the rate of its requests: a Bayes-optimal observer.

The rate is constant in each quarter of an hour and in proportion to a recorded count. The observer
knows the counts of all earlier quarters, when a quarter begins, and the requests since then. Its
prior is a mixture of two negative binomial distributions of the next count. Their parameters
have the most likelihood for all quarters from the first day of the fit on, which includes what is
judged and what lies ahead. So it knows more than a controller can learn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from research.forecasts import Array
from research.traces import DAY, QUARTER

DAYS: Final = 5
"""Earlier days that count."""
OLDER: Final = 0.6
"""Weight of a day relative to the next day."""
MOST: Final = 200
"""Largest count of a quarter; the record has 107 at most."""
_QUARTERS: Final = DAY // QUARTER
_PARAMETERS: Final = 25
STEPS: Final = 300
_RATE: Final = 0.03
_TINY: Final = 1e-12
_BUSY: Final = 0.5
"""Added to counts before their logarithm."""
_START: Final = (
    *(0, 0.6, 0.2, 0.1, 0.05, 0.3, -0.25, 1, 0.5, 0, 0),
    *(0, 0.3, 0.1, 0.1, 0.1, 0.5, -0.2, 0, 0, 0, 0),
    *(1, 0, 0),
)
"""Of the search: two means and two dispersions, and the weight of the first distribution."""


class Prior:
    """Distributions of the count of a quarter, given those before it."""

    def __init__(self, counts: Sequence[int], first: int, steps: int = STEPS) -> None:
        """Fit to the quarters from the first one on.

        Args:
            counts: recorded requests of every quarter.
            steps: of the search for the parameters.
        """
        self._counts = np.array(counts, dtype=np.float64)
        self._inputs = np.array([self._input(quarter) for quarter in range(len(counts))])
        self._gammas = np.array([math.lgamma(count + 1) for count in range(MOST)])
        self._row = self._fit_parameters(self._inputs[first:], self._counts[first:], steps)

    def likelihoods(self, quarter: int) -> Array:
        """Return the probability of each count from 0 on."""
        inputs = np.repeat(self._inputs[quarter][None], MOST, axis=0)
        weights = np.exp(self._logs(self._row, inputs, np.arange(MOST, dtype=np.float64)))
        return np.asarray(weights / weights.sum(), dtype=np.float64)

    def next(self, draw: np.random.Generator, quarter: int, counts: Array) -> Array:
        """Draw the count of the quarter after one, for each possible count of that."""
        after = min(quarter + 1, len(self._counts) - 1)
        inputs = np.repeat(self._inputs[after][None], len(counts), axis=0)
        inputs[:, 1] = np.log(_BUSY + counts)
        first, second, weight = _shapes(self._row, inputs)
        mean, size = np.where(draw.random(len(counts)) < weight, first, second)
        return np.asarray(draw.poisson(draw.gamma(size, mean / size)), dtype=np.float64)

    def _input(self, quarter: int) -> Array:
        """Return the inputs: 1, and logarithms of means of the counts before and of other days."""
        spans = [(1, 0), (2, 1), (4, 2), (8, 4)]
        recent = [self._mean(quarter - begin, quarter - end) for begin, end in spans]
        ahead = before = weights = 0.0
        for back in range(1, DAYS + 1):
            then = quarter - back * _QUARTERS
            if then < spans[-1][0]:
                break
            weight = OLDER**back
            ahead += weight * self._mean(then - 1, then + 2)
            before += weight * self._mean(then - 4, then)
            weights += weight
        days = [total / weights if weights else 0.0 for total in (ahead, before)]
        return np.array([1.0, *(math.log(_BUSY + mean) for mean in (*recent, *days))])

    def _mean(self, first: int, end: int) -> float:
        return float(self._counts[max(0, first) : end].mean()) if end > 0 else 0.0

    def _fit_parameters(self, inputs: Array, counts: Array, turns: int) -> Array:
        """Climb to the most likely parameters with Adam and numerical gradients."""
        row = np.array(_START, dtype=np.float64)
        slope, square = np.zeros(_PARAMETERS), np.zeros(_PARAMETERS)
        steps = 1e-4 * np.eye(_PARAMETERS)
        for turn in range(1, turns + 1):
            change = np.array(
                [
                    float(
                        self._logs(row + step, inputs, counts).mean()
                        - self._logs(row - step, inputs, counts).mean()
                    )
                    / 2e-4
                    for step in steps
                ]
            )
            slope = 0.9 * slope + 0.1 * change
            square = 0.99 * square + 0.01 * change * change
            up = slope / (1 - 0.9**turn) / (np.sqrt(square / (1 - 0.99**turn)) + 1e-8)
            row = row + _RATE * up
        return row

    def _logs(self, row: Array, inputs: Array, counts: Array) -> Array:
        """Return the logarithm of the probability of each count."""
        first, second, weight = _shapes(row, inputs)
        return np.logaddexp(
            np.log(weight + _TINY) + self._log(counts, *first),
            np.log1p(_TINY - weight) + self._log(counts, *second),
        )

    def _log(self, counts: Array, mean: Array, size: Array) -> Array:
        gammas = np.array(
            [
                math.lgamma(count + row_size) - math.lgamma(row_size)
                for count, row_size in zip(counts, size, strict=True)
            ]
        )
        share = np.log(size + mean)
        return np.asarray(
            gammas
            - self._gammas[counts.astype(int)]
            + size * (np.log(size) - share)
            + counts * (np.log(mean) - share),
            dtype=np.float64,
        )


def posterior(likelihoods: Array, requests: int, per_count: float) -> Array:
    """Return the probability of each count after some requests.

    Args:
        per_count: requests that one recorded request stands for until now.
    """
    expected = per_count * np.arange(len(likelihoods))
    logs = np.log(likelihoods + 1e-300) + requests * np.log(expected + _TINY) - expected
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum(), dtype=np.float64)


def _shapes(row: Array, inputs: Array) -> tuple[Array, Array, Array]:
    """Return mean and size of both distributions, and the weight of the first."""
    first = _shape(row[:11], inputs)
    second = _shape(row[11:22], inputs)
    weight = 1 / (1 + np.exp(-(row[22] + row[23] * inputs[:, 1] + row[24] * inputs[:, 5])))
    return first, second, np.asarray(weight, dtype=np.float64)


def _shape(row: Array, inputs: Array) -> Array:
    mean = np.exp(np.clip(inputs @ row[:7], -8, 6))
    size = row[7] + row[8] * np.log(mean + 0.1) + row[9] * inputs[:, 5] + row[10] * inputs[:, 1]
    return np.array([mean, np.exp(np.clip(size, -5, 6))])
