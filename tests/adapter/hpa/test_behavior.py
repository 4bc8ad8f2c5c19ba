"""Recommendations at the edge of a window, as ``podautoscaler/horizontal.go`` counts them."""

from __future__ import annotations

import pytest

from adapter.hpa.behavior import Recommendation, stabilize, stabilize_plain

NOW = 1_000.0
WINDOW = 300.0


@pytest.mark.parametrize(("age", "stays"), [(WINDOW - 1, True), (WINDOW, False)])
def test_with_behavior_a_recommendation_as_old_as_the_window_no_longer_counts(
    age: float, stays: bool
) -> None:
    """``rec.timestamp.After(cutoff)`` in ``stabilizeRecommendationWithBehaviors``."""
    past = (Recommendation(8, NOW - age),)
    down, _ = stabilize(past, 8, 2, (0.0, WINDOW), NOW)
    assert down.replicas == (8 if stays else 2)
    past = (Recommendation(2, NOW - age),)
    up, _ = stabilize(past, 2, 8, (WINDOW, 0.0), NOW)
    assert up.replicas == (2 if stays else 8)


@pytest.mark.parametrize(("age", "stays"), [(WINDOW, True), (WINDOW + 1, False)])
def test_without_behavior_a_recommendation_as_old_as_the_window_still_counts(
    age: float, stays: bool
) -> None:
    """``rec.timestamp.Before(cutoff)`` in ``stabilizeRecommendation``."""
    plain, _ = stabilize_plain((Recommendation(8, NOW - age),), 2, WINDOW, NOW)
    assert plain.replicas == (8 if stays else 2)
