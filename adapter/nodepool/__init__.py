"""The companion controller: node-pool headroom before pods are stuck.

It shares no state with ``serve``: it reads GPU values through the Kubernetes API, as any
client does. The plan is pure (:mod:`adapter.nodepool.plan`); everything around it watches
and applies.
"""
