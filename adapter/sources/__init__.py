"""Where samples come from: scrapes, a Prometheus-compatible store, or Azure Monitor."""
