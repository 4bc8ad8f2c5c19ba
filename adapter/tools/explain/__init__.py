"""``gpu-metrics-adapter explain``: why a pod has its value or none, and why an HPA decides so.

It reads the cluster through the API server with the caller's rights, and writes nothing.
"""
