"""Releases: one version in every file, and everything that a tag publishes."""
