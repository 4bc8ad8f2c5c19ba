"""Counters and histograms of the server itself."""
