"""GPU metrics for Kubernetes autoscaling: the GPU half, and the command line."""

__version__ = "0.1.0"
