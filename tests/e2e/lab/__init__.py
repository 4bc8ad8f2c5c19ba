"""A control plane with a real scheduler and a real node autoscaler: Karpenter over kwok."""
