"""The demo as a cluster: a read-only API server on loopback, for kubectl and the user commands.

Nodes, pods, workloads, HPAs and events are those of the simulation. The groups of the metrics API
and the view API are forwarded to ``serve``, as kube-apiserver's aggregation layer does it.
"""
