"""What the cluster says: pods, services and nodes, watched or read from a file."""
