"""The ``demo`` command: the complete product on one machine, without a cluster.

The nodes, their GPUs, the pods and the load are simulated. The exporters' HTTP, ``serve`` in a
process of its own, its TLS and front-proxy authentication, the requests, the HPA algorithm and the
``nodepool`` controller's plan are real. One clock drives the simulation faster than real time, and
every interval of ``serve`` is divided by the same factor.
"""
