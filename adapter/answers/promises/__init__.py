"""Latency promises: read them, learn the capacity that keeps them, and say how near a pod is."""
