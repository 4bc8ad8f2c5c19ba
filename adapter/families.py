"""Metric families with one label or none, as ``/metrics`` shows them."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily


def gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    """One number."""
    return GaugeMetricFamily(name, text, value=float(value))


def gauges(name: str, text: str, label: str, counts: Mapping[str, int]) -> GaugeMetricFamily:
    """A number per value of a label."""
    family = GaugeMetricFamily(name, text, labels=[label])
    for key, count in sorted(counts.items()):
        family.add_metric([key], float(count))
    return family


def counter(name: str, text: str, label: str, counts: Mapping[str, int]) -> CounterMetricFamily:
    """A count per value of a label."""
    family = CounterMetricFamily(name, text, labels=[label])
    for key, count in sorted(counts.items()):
        family.add_metric([str(key)], count)
    return family
