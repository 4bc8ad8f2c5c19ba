"""The `nodepool` controller: it requests GPU capacity before pods need it.

It shares no state with ``serve``: it reads GPU values through the Kubernetes API, as any
client does. Each package is one stage of a round: ``seen`` reads the cluster, ``learn`` evaluates
its history, ``plan`` decides and has no side effects, ``act`` writes to the API server, and ``run``
is the process around them. ``model`` has the records that the stages share.
"""
