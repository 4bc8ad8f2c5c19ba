"""Request counts read as Prometheus expects a counter and a histogram to."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest

from apiservice.selfmetrics.requeststats import RequestStats


def test_counts_and_buckets() -> None:
    registry = CollectorRegistry()
    stats = RequestStats(registry)
    stats.series("custom", "v1beta2", 200).observe(0.0001)
    stats.series("custom", "v1beta2", 200).observe(0.002)
    stats.series("custom", "v1beta2", 404).observe(30.0)
    lines = generate_latest(registry).decode().splitlines()
    labels = 'route="custom",version="v1beta2"'
    assert f'gma_http_requests_total{{code="200",{labels}}} 2.0' in lines
    assert f'gma_http_requests_total{{code="404",{labels}}} 1.0' in lines
    name = "gma_http_request_duration_seconds"
    assert f'{name}_bucket{{le="0.0001",{labels}}} 1.0' in lines
    assert f'{name}_bucket{{le="0.001",{labels}}} 1.0' in lines
    assert f'{name}_bucket{{le="0.0025",{labels}}} 2.0' in lines
    assert f'{name}_bucket{{le="1.0",{labels}}} 2.0' in lines
    assert f'{name}_bucket{{le="+Inf",{labels}}} 3.0' in lines
    assert f"{name}_count{{{labels}}} 3.0" in lines
    assert f"{name}_sum{{{labels}}} 30.0021" in lines


def test_a_series_is_the_same_object_every_time() -> None:
    stats = RequestStats(CollectorRegistry())
    assert stats.series("custom", "v1beta1", 200) is stats.series("custom", "v1beta1", 200)
