"""Counters and histograms of the server itself, and how metrics are declared."""
