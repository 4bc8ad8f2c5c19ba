"""Read samples from exporters' pages, a Prometheus-compatible store, or Azure Monitor."""
