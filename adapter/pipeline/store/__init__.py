"""Exporter states in memory, and immutable snapshots of them."""
