"""Read the cluster. Each object is reduced to what a plan needs."""
