"""A store with the Prometheus query API as a source."""
