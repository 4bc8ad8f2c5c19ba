"""Query a store with the Prometheus query API."""
