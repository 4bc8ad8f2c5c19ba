"""Read-only resources with columns: lists, single objects and tables for ``kubectl get``."""
