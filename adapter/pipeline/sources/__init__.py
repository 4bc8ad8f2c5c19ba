"""Read samples from exporters' pages, or a Prometheus-compatible store."""
