"""The `nodepool` controller: capacity for pods that will be wanted, ordered ahead of need.

It shares no state with ``serve``: it reads GPU values through the Kubernetes API, as any
client does. Each package is one stage of a round: ``seen`` is what the cluster says, ``learn``
what its past teaches, ``plan`` the pure decision, ``act`` the writes, ``run`` the process
around them. ``model`` has the records that the stages share.
"""
