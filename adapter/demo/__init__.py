"""The ``demo`` command: the whole main job on one machine, without a cluster.

Simulated are the nodes, their GPUs, the pods and the load; real are the exporters' HTTP,
``serve`` in a process of its own, its TLS and front-proxy authentication, the requests,
the HPA algorithm and the ``nodepool`` controller's plan. One clock drives the simulation, some
times faster than real time, and every interval of ``serve`` is divided by the same factor.
"""
