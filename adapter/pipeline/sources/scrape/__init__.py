"""Scrape exporters and server pages directly."""
