"""Where samples come from: exporters scraped directly, or a Prometheus query API."""
