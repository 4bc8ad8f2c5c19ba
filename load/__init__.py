"""Benchmarks: scenarios as a table, one command (``python -m load``), published results."""
