"""A generic aggregated API server for custom.metrics.k8s.io and external.metrics.k8s.io."""
