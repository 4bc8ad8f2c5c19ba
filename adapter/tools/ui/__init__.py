"""``gpu-metrics-adapter ui``: a page on the user's machine that shows a cluster's GPUs, live.

It listens on loopback only, reads the cluster through the API server with the caller's rights,
and writes nothing.
"""
