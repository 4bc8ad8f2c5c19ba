"""What the cluster says, each object reduced to what a plan needs of it."""
