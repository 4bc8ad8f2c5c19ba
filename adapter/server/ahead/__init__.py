"""Replicas ahead of demand: learn the load of workloads, and serve what it will not exceed."""
