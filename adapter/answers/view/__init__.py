"""The view API: GPUs, the pods that hold them and their workloads, with the reason for each gap."""
