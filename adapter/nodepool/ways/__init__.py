"""How headroom is ordered from the autoscaler, and which way a cluster has."""
